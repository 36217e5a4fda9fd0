// The official suite's tools that keep their rounds of questions themselves, under the keys that it knows.
import { InputRequired, Question } from "tricorn";
import { z } from "zod";

const form = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });

const NAME = Question.elicit("What is your name?", form("name", "string"));
const CAPITAL = Question.sample("What is the capital of France?", { maxTokens: 100 });
const GREETING = Question.sample("Greet the user.", { maxTokens: 100 });
const ROOTS = Question.listRoots();
const OK = Question.elicit("Confirm?", form("ok", "boolean"));

// What came back is as the client sent it: what is no answer is none, and asked for again.
const accepted = (member, type) =>
  z.object({ action: z.literal("accept"), content: z.object({ [member]: type }) }).transform((answer) => {
    return answer.content[member];
  });
const name = accepted("name", z.string());
const ok = accepted("ok", z.boolean());
const color = accepted("color", z.string());
const context = accepted("context", z.string());
const message = z.object({ content: z.object({ text: z.string() }) }).transform(({ content }) => content.text);
const roots = z.object({ roots: z.array(z.object({ uri: z.string() })) }).transform((answer) => {
  return answer.roots.map((root) => root.uri).join(" ");
});
const read = (schema, answer) => schema.safeParse(answer).data;

export function addByHand(app) {
  app.tool("test_input_required_result_elicitation", { description: "Ask for a name" }, (_, ctx) => {
    const user = read(name, ctx.inputResponses.user_name);
    return user === undefined ? new InputRequired({ user_name: NAME }) : `Hello, ${user}!`;
  });

  app.tool("test_input_required_result_sampling", { description: "Ask the client's model" }, (_, ctx) => {
    const said = read(message, ctx.inputResponses.capital_question);
    return said === undefined ? new InputRequired({ capital_question: CAPITAL }) : `The model says: ${said}`;
  });

  app.tool("test_input_required_result_list_roots", { description: "Ask for the roots" }, (_, ctx) => {
    const listed = read(roots, ctx.inputResponses.client_roots);
    return listed === undefined ? new InputRequired({ client_roots: ROOTS }) : `Roots: ${listed}`;
  });

  app.tool("test_input_required_result_request_state", { description: "Keep a state" }, (_, ctx) => {
    const confirmed = read(ok, ctx.inputResponses.confirm) !== undefined;
    if (confirmed && ctx.requestState === "kept") return "state-ok";
    throw new InputRequired({ confirm: OK }, { state: "kept" });
  });

  app.tool("test_input_required_result_multiple_inputs", { description: "Ask three things" }, (_, ctx) => {
    const { user_name, greeting, client_roots } = ctx.inputResponses;
    const given = [read(name, user_name), read(message, greeting), read(roots, client_roots)];
    if (given.every((one) => one !== undefined)) return given.join(" ");
    throw new InputRequired({ user_name: NAME, greeting: GREETING, client_roots: ROOTS }, { state: "asked" });
  });

  app.tool("test_input_required_result_multi_round", { description: "Ask twice" }, (_, ctx) => {
    const { step1, step2 } = ctx.inputResponses;
    const { requestState: state } = ctx;
    const user = state?.user ?? read(name, step1);
    if (user === undefined) {
      throw new InputRequired(
        { step1: Question.elicit("Step 1: what is your name?", form("name", "string")) },
        { state: {} },
      );
    }
    const favorite = read(color, step2);
    if (favorite !== undefined) return `${user} likes ${favorite}`;
    throw new InputRequired(
      { step2: Question.elicit("Step 2: which color?", form("color", "string")) },
      { state: { user } },
    );
  });

  app.tool("test_input_required_result_tampered_state", { description: "Seal a state" }, (_, ctx) => {
    if (ctx.requestState !== undefined) return `kept ${ctx.requestState}`;
    throw new InputRequired({ confirm: OK }, { state: "untouched" });
  });

  app.tool("test_input_required_result_capabilities", { description: "Ask what can be asked" }, (_, ctx) => {
    const { sampling, elicitation } = ctx.request.clientCapabilities;
    const { capital_question, user_name } = ctx.inputResponses;
    const given = [read(message, capital_question), read(name, user_name)].filter((one) => one !== undefined);
    if (given.length > 0) return given.join(" ");
    throw new InputRequired({
      ...(sampling && { capital_question: CAPITAL }),
      ...(elicitation && { user_name: NAME }),
    });
  });

  app.prompt("test_input_required_result_prompt", { description: "Ask before it is made" }, (_, ctx) => {
    const given = read(context, ctx.inputResponses.user_context);
    if (given !== undefined) return `Context: ${given}`;
    throw new InputRequired({ user_context: Question.elicit("In which context?", form("context", "string")) });
  });
}
