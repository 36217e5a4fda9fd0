// Servers nobody refers to any more are collected, handlers that refer to them included, and not before. Needs
// --expose-gc.
import { setImmediate as turn } from "node:timers/promises";
import { connect, Server } from "tricorn";

const made = [];
for (let n = 0; n < 50; n++) {
  const app = new Server(`server ${n}`);
  const ballast = new Uint8Array(1024);
  app.tool("self", () => `${app.name} ${ballast.length}`);
  const self = (_, ctx) => `${app.name} ${ctx.request.method}`;
  app.resource("test://self", self).prompt("self", { arguments: [{ name: "a" }] }, self);
  app.resource("test://{a}", { complete: { a: (_value, _args, ctx) => [self({}, ctx)] } }, self);
  app.onComplete((_, ctx) => [self({}, ctx)]).setSource("tool", { get: self });
  app.tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  const client = await connect(app, { revision: "2025-11-25", sampling: self });
  if (n === 0) {
    globalThis.gc();
    await turn();
  }
  const values = async (ref) => (await client.complete(ref, "a", "")).values[0];
  for (const [expected, found] of [
    [`server ${n} 1024`, (await client.callTool("self")).text],
    [`server ${n} sampling/createMessage`, (await client.callTool("ask")).text],
    [`server ${n} tools/call`, (await client.callTool("unlisted")).text],
    [`server ${n} resources/read`, (await client.readResource("test://self")).text],
    [`server ${n} completion/complete`, await values({ type: "ref/resource", uri: "test://{a}" })],
    [`server ${n} completion/complete`, await values({ type: "ref/prompt", name: "self" })],
    [`server ${n} prompts/get`, (await client.getPrompt("self")).messages[0].content.text],
  ]) {
    if (found !== expected) throw new Error(`expected ${expected}, got ${found}`);
  }
  await client.close();
  made.push(new WeakRef(app));
}
let left = made.length;
for (let round = 0; round < 100 && left > 1; round++) {
  globalThis.gc();
  await turn();
  left = made.filter((ref) => ref.deref()).length;
}
// The last one may still be on the stack of this very loop.
console.error(left <= 1 ? "collected" : `${left} servers left`);
