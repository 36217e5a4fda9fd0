// Resumption: a stream ends early, and nothing is lost.
import { connect, Server } from "tricorn";

const app = new Server("long");

app.tool("work", { description: "Work long, without a connection all the time" }, (_, ctx) => {
  ctx.progress(1, 2, "on the first stream");
  ctx.closeStream();
  ctx.progress(2, 2, "after the client came back");
  return "all there";
});

const { url } = await app.listen({ port: 0, sseRetry: 100 });
const client = await connect(url, { revision: "2025-11-25" });
const result = await client.callTool(
  "work",
  {},
  { onProgress: ({ progress, total, message }) => console.log(`${progress} of ${total}: ${message}`) },
);
console.log("result:", result.text);
await client.close();
await app.close();
