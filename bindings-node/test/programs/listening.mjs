// Hears notifications: `listening.mjs` goes on for them until its client is closed, `listening.mjs unref` does not.
import { connect, Server } from "tricorn";

const app = new Server("news").tool("hello", () => "hello");
const client = await connect(app, {
  revision: "2025-11-25",
  onListChanged: async (kind) => {
    console.error(`heard ${kind}`);
    await client.close();
  },
});
if (process.argv[2] === "unref") {
  client.unref();
  console.error("unref");
} else {
  // Not by the loop's hand: what is told comes when nothing else is left to do.
  setTimeout(() => app.tool("more", () => "more"), 100).unref();
}
