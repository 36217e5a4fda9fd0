// A server whose tools misbehave on request. `server.mjs` serves stdio.
import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { Server } from "tricorn";

const storage = new AsyncLocalStorage();
const app = new Server("misbehaving", { version: "1.2.3" });
const gate = Promise.withResolvers?.() ?? withResolvers();
let calls = 0;

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

app.tool(
  "add",
  { input: { type: "object", properties: { a: { type: "integer" } }, required: ["a"] } },
  ({ a }) => a + 1,
);
app.tool("later", async ({ n }) => {
  await turn();
  return `later ${n}`;
});
app.tool("forever", async (_, ctx) => {
  console.error("forever started");
  try {
    await sleep(3_600_000, undefined, { signal: ctx.signal });
  } catch (error) {
    console.error(`forever saw ${error.name}, cancelled ${ctx.cancelled}`);
    throw error;
  }
});
app.tool("stubborn", async () => {
  console.error("stubborn started");
  await sleep(3_600_000);
});
app.tool("blocks", () => {
  console.error("blocks started");
  for (;;);
});
app.tool("gated", async () => {
  console.error("gated started");
  await gate.promise;
  return "through the gate";
});
app.tool("open_gate", () => {
  gate.resolve();
  return "open";
});
app.tool("exit_at", ({ n, code }) => {
  if (++calls === n) process.exit(code);
  return `call ${calls}`;
});
app.tool("reject", () => {
  Promise.reject(new Error("nobody handles this"));
  return "rejecting";
});
app.tool("throw_later", () => {
  setImmediate(() => {
    throw new Error("out of nowhere");
  });
  return "throwing";
});
app.tool("print", ({ text }) => {
  // biome-ignore lint/suspicious/noConsole: printing to stdout is the case under test.
  console.log(text);
  process.stdout.write(`${text} again\n`);
  return "printed";
});
app.tool("ask", async (_, ctx) => (await ctx.elicit("?", { type: "object", properties: {} })).action);
app.tool("where", () => `in ${storage.getStore()}`);

await storage.run("the scope of serve", () => app.run());
console.error("served");
