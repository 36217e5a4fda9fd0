// The tools of the checks, for what mounts or bundles a server.
import { AsyncLocalStorage } from "node:async_hooks";
import { Server, ToolError } from "tricorn";

const slowCalls = { started: 0, cancelled: 0, finished: 0 };
/** The context of a request, where the web framework carries one: `echo` fails without it. */
export const carrier = new AsyncLocalStorage();
carrier.isCarried = false;
const numbers = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] };
const one = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });

export const app = new Server("mounted", { version: "1.0.0" })
  .tool("add", { description: "Add two numbers", input: numbers }, ({ a, b }) => a + b)
  .tool("echo", { description: "Return the text", input: one("text", "string") }, ({ text }) => {
    if (carrier.isCarried && !carrier.getStore()?.session) throw new ToolError("the request's context is lost");
    return text;
  })
  .tool("fail", { description: "Fail", input: one("kind", "string") }, ({ kind }) => {
    throw new ToolError(`the tool says no: ${kind}`);
  })
  .tool("slow", { description: "Take some milliseconds", input: one("ms", "integer") }, async ({ ms }, { signal }) => {
    slowCalls.started += 1;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        slowCalls.finished += 1;
        resolve(`slept ${ms} ms`);
      }, ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        slowCalls.cancelled += 1;
        reject(signal.reason);
      });
    });
  })
  .tool("count", { description: "Report each number up to this one", input: one("to", "integer") }, ({ to }, ctx) => {
    for (let n = 1; n <= to; n += 1) ctx.progress(n, to);
    return `counted to ${to}`;
  })
  .tool("test_metrics", { description: "Return what became of the slow calls" }, () => {
    const running = slowCalls.started - slowCalls.finished - slowCalls.cancelled;
    return { slow: { ...slowCalls, running } };
  });
const who = {
  type: "object",
  properties: { username: { type: "string" }, email: { type: "string" } },
  required: ["username", "email"],
};
app
  .tool("test_elicitation", { description: "Ask the user", input: one("message", "string") }, async (args, ctx) => {
    const { action, content } = await ctx.elicit(args.message, who);
    return `User response: action=${action}, content=${JSON.stringify(content)}`;
  })
  .tool(
    "test_sampling",
    { description: "Ask the client's model", input: one("prompt", "string") },
    async (args, ctx) => {
      const { text } = await ctx.sample(args.prompt, { maxTokens: 100 });
      return `LLM response: ${text}`;
    },
  );
app.resource("test://static-text", { name: "static-text", mimeType: "text/plain" }, () => "This is a static text.");
app.prompt(
  "test_prompt_with_arguments",
  {
    description: "Say both",
    input: { type: "object", properties: { arg1: { type: "string" }, arg2: { type: "string" } } },
  },
  ({ arg1, arg2 }) => `arg1=${arg1} arg2=${arg2}`,
);
