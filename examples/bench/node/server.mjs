// The benchmark server: `run --stdio | --http HOST:PORT`. Typed tools, 100 of them.
import { setTimeout as sleep } from "node:timers/promises";
import { Server, text } from "tricorn";
import { z } from "zod";

const app = new Server("bench", { version: "1.0.0", maxMessageBytes: 64 << 20 });

app.tool(
  "add",
  {
    description: "Add two integers.",
    input: z.object({ a: z.int(), b: z.int() }),
    output: z.object({ sum: z.int() }),
  },
  async ({ a, b }) => ({ sum: a + b }),
);

app.tool("echo", { description: "Return the text.", input: z.object({ text: z.string() }) }, async (args) => args.text);

app.tool(
  "sleep_ms",
  { description: "Sleep for some milliseconds.", input: z.object({ ms: z.int() }) },
  async ({ ms }, { signal }) => {
    await sleep(ms, undefined, { signal });
    return text(`slept ${ms}`);
  },
);

const filler = z.object({
  key: z.string().describe("Record key"),
  limit: z.int().default(10).describe("Maximum number of rows"),
  verbose: z.boolean().default(false).describe("Return all columns"),
});
for (let i = 3; i < 100; i++) {
  const description = `Filler tool number ${i}: looks a record up by key and returns at most limit rows.`;
  app.tool(`tool_${String(i).padStart(3, "0")}`, { description, input: filler }, async ({ key }) => `row ${key}`);
}

await app.run();
