// Tasks: tool calls that go on after their answer.
import { connect, Server, UnsupportedError } from "tricorn";
import { z } from "zod";

const app = new Server("bakery", { tasks: true });

/** @type {(() => void)[]} */
const waiting = [];
const step = () => new Promise((resolve) => waiting.push(() => resolve(undefined)));

app.tool(
  "bake",
  { description: "Bake something", input: z.object({ what: z.string() }), taskSupport: "optional" },
  async ({ what }, ctx) => {
    const kneaded = step();
    ctx.setStatus("kneading");
    await kneaded;
    const baked = step();
    ctx.setStatus("in the oven");
    await baked;
    return `one ${what}`;
  },
);
app.tool("cater", { description: "Food for everybody, which takes days", taskSupport: "required" }, () => "a feast");
app.tool("price", { description: "What it costs" }, () => "3 euros");

const client = await connect(app, { revision: "2025-11-25" });
for (const { name, execution } of await client.listTools()) {
  console.log(`${name}: ${execution?.taskSupport ?? "forbidden"}`);
}

const task = await client.callToolTask("bake", { what: "cake" }, { ttl: 600_000 });
console.log("task:", (await task.status()).status);
for await (const { status, statusMessage } of task.changes()) {
  if (status !== "working" || !statusMessage) continue;
  console.log(`${status}: ${statusMessage}`);
  waiting.shift()?.();
}
console.log("over:", (await task.status()).status);
// The id is all it takes to come back.
console.log("result:", (await client.task(task.id).result()).text);

console.log("cater:", (await client.callTool("cater")).text);

const other = await client.callToolTask("bake", { what: "bread" });
console.log("cancelled:", (await other.cancel()).status);
console.log("all:", (await client.listTasks()).map(({ status }) => status).join(", "));

try {
  await client.callTool("price", {}, { task: true });
} catch (error) {
  if (error instanceof UnsupportedError) console.log("price: not as a task");
}
await client.close();

const modern = await connect(app, { revision: "2026-07-28", tasks: true });
console.log("2026-07-28:", (await modern.callTool("cater")).text);
await modern.close();
