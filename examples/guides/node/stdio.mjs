// Standard streams: a client launches its server, here this program with the argument `serve`.
import { EventEmitter, once } from "node:events";
import { fileURLToPath } from "node:url";
import { connect, Server } from "tricorn";
import { z } from "zod";

const app = new Server("stdio");

app.tool("add", { description: "Add two numbers", input: z.object({ a: z.int(), b: z.int() }) }, ({ a, b }) => a + b);

if (process.argv.includes("serve")) {
  console.error("server started");
  await app.run();
} else {
  const child = new EventEmitter();
  const line = once(child, "line");
  const target = { command: process.execPath, args: [fileURLToPath(import.meta.url), "serve"] };
  // What the server writes to standard error is for people: here it is heard line by line.
  const client = await connect(target, { onStderr: (text) => child.emit("line", text) });
  console.log("transport:", client.transport);
  console.log("heard:", ...(await line));
  console.log("add:", (await client.callTool("add", { a: 1, b: 2 })).text);
  await client.close(); // ends the server: its standard input is closed
}
