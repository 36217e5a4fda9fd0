// Testing a server: the real protocol, without a process or a socket.
import assert from "node:assert/strict";
import { connect, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";

const app = new Server("calculator");

app.tool("add", { description: "Add two numbers", input: z.object({ a: z.int(), b: z.int() }) }, ({ a, b }) => a + b);

app.tool("confirm", { description: "Ask before something happens" }, async (_, ctx) => {
  const { action } = await ctx.elicit("Really?", z.object({}));
  return action === "accept" ? "sure" : "no";
});

for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]) {
  await withClient(
    app,
    async (client) => {
      const { text } = await client.callTool("add", { a: 1, b: 2 });
      assert.equal(text, "3");
      console.log(`${revision}: 1 + 2 = ${text}`);
    },
    { revision },
  );
}

await withClient(app, async (client) => {
  console.log("wrong:", (await client.callTool("add", { a: "one", b: 2 })).text);
});

/**
 * The user of a test.
 * @type {import("tricorn").ElicitationHandler}
 */
const yes = ({ message }) => {
  console.log("asked:", message);
  return "accept";
};
await withClient(app, async (client) => console.log("asking:", (await client.callTool("confirm")).text), {
  revision: "2025-11-25",
  elicitation: yes,
});

const { url } = await app.listen({ port: 0 });
const client = await connect(url);
console.log("over http:", (await client.callTool("add", { a: 1, b: 2 })).text);
await client.close();
await app.close();
