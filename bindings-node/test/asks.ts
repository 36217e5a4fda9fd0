// Compiled, never run: the types of questions and rounds. See types.ts for the rest.

import {
  type Asked,
  type Context,
  type CreateMessageResult,
  type ErrorKind,
  Form,
  InputRequired,
  Question,
  type Root,
  Server,
  type TricornError,
  type Whole,
} from "tricorn";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_proof: Same<A, B>): void {}

const app = new Server("asks", { requestStateKeys: ["x".repeat(32)], requestStateTtl: 1, maxRequestStateBytes: 1 });
const form = new Form(z.object({ a: z.number().default(1) }));

app.tool("ask", async (_, ctx) => {
  const [name, page, said, roots, typed] = await ctx.askAll([
    Question.elicit("?", z.object({ name: z.string() })),
    Question.elicitUrl("?", "https://example.com", "1"),
    Question.sample("?", { maxTokens: 1 }),
    Question.listRoots(),
    Question.elicit("?", form),
  ]);
  if (name.action === "accept") same<typeof name.content, { name: string }>(true);
  // @ts-expect-error: who declined has not answered
  name.content.name;
  same<typeof page.action, "accept" | "decline" | "cancel">(true);
  same<typeof said, CreateMessageResult>(true);
  same<typeof roots, Root[] & Whole>(true);
  if (typed.action === "accept") same<typeof typed.content.a, number>(true);
  const several = await ctx.askAll(["a", "b"].map((one) => Question.elicit(one, z.object({ one: z.boolean() }))));
  for (const one of several) if (one.content) same<typeof one.content.one, boolean>(true);
  // @ts-expect-error: no question
  await ctx.askAll(["?"]);
  const n = await ctx.step("count", () => 1);
  same<typeof n, number>(true);
  const later = await ctx.step("later", async () => ({ id: "a" }));
  same<typeof later, { id: string }>(true);
  // @ts-expect-error: what it does is missing
  await ctx.step("nothing");
  same<typeof ctx.requestState, unknown>(true);
  same<(typeof ctx.inputResponses)["who"], unknown>(true);
});

const question: Question<Root[]> = Question.listRoots();
same<Asked<[Question<string>, Question<number>]>, [string, number]>(true);
const required = new InputRequired({ question }, { state: { round: 1 } });
const asError: TricornError = required;
const kind: ErrorKind = "input_required";
void [asError, kind];
// @ts-expect-error: a question is made by its functions
new Question("roots/list");

// A handler may return it, whatever else it declares to return.
app.tool("typed", { output: z.object({ sum: z.number() }) }, () => required);
app.tool("either", { output: z.object({ sum: z.number() }) }, async (_, ctx: Context) =>
  ctx.requestState === undefined ? required : { sum: 1 },
);
app.prompt("prompt", () => required);
app.prompt("prompt", async (_, ctx) => (ctx.inputResponses["question"] ? "text" : required));
app.resource("test://x", (_, ctx) => (ctx.inputResponses["question"] ? "text" : required));
