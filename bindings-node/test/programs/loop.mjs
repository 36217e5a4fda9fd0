// Waits for a change, which keeps it running, and nothing else does.
import { connect, Server } from "tricorn";

const app = new Server("news").tool("hello", () => "hello");
const client = await connect(app);
const changes = client.listen({ tools: true });
await changes.honoured;
setTimeout(() => app.tool("more", () => "more"), 100).unref();
for await (const { type } of changes) {
  console.error(`heard ${type}`);
  break;
}
