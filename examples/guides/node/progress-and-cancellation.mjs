// Progress and cancellation: how far a call is, and that nobody wants its answer any more.
import { EventEmitter, once } from "node:events";
import { connect, Server, TimeoutError } from "tricorn";
import { z } from "zod";

const app = new Server("printer");
const watching = new EventEmitter();

app.tool("print", { description: "Print some pages", input: z.object({ pages: z.int() }) }, ({ pages }, ctx) => {
  for (let page = 1; page <= pages; page++) ctx.progress(page, pages, `page ${page}`);
  return `printed ${pages} pages`;
});

app.tool("watch", { description: "Watch the printer for ever" }, async (_, ctx) => {
  watching.emit("started");
  await once(ctx.signal, "abort");
  console.log("server: stopped");
  watching.emit("stopped");
});

const client = await connect(app);

const result = await client.callTool(
  "print",
  { pages: 3 },
  { onProgress: ({ progress, total, message }) => console.log(`${progress} of ${total}: ${message}`) },
);
console.log("print:", result.text);

const controller = new AbortController();
const started = once(watching, "started");
let stopped = once(watching, "stopped");
const call = client.callTool("watch", {}, { signal: controller.signal }).catch((error) => error);
await started;
controller.abort();
await stopped;
console.log((await call).name === "AbortError" ? "call: cancelled" : "call: answered");

stopped = once(watching, "stopped");
try {
  await client.callTool("watch", {}, { timeout: 200 });
} catch (error) {
  if (!(error instanceof TimeoutError)) throw error;
  await stopped;
  console.log("call: no answer in time");
}
await client.close();
