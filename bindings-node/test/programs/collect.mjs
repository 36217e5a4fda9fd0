// Servers nobody refers to any more are collected, handlers that refer to them included. Needs --expose-gc.
import { setImmediate as turn } from "node:timers/promises";
import { connect, Server } from "tricorn";

const made = [];
for (let n = 0; n < 50; n++) {
  const app = new Server(`server ${n}`);
  const ballast = new Uint8Array(1024);
  app.tool("self", () => `${app.name} ${ballast.length}`);
  const client = await connect(app);
  const { text } = await client.callTool("self");
  if (text !== `server ${n} 1024`) throw new Error(text);
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
