// The benchmark server: `run --stdio | --http HOST:PORT`. 100 tools with plain JSON Schemas; with BENCH_SCHEMAS=zod
// in the environment the same tools with zod's, which cost its import and a second check of every call.
import { setTimeout as sleep } from "node:timers/promises";
import { jsonSchema, Server, text } from "tricorn";

const plain = (properties, required) => jsonSchema({ type: "object", properties, required });
const schemas =
  process.env.BENCH_SCHEMAS === "zod"
    ? await zodSchemas()
    : {
        add: plain({ a: { type: "integer" }, b: { type: "integer" } }, ["a", "b"]),
        sum: plain({ sum: { type: "integer" } }, ["sum"]),
        echo: plain({ text: { type: "string" } }, ["text"]),
        sleep: plain({ ms: { type: "integer" } }, ["ms"]),
        greet: plain({ name: { type: "string" } }, ["name"]),
        ask: plain({ question: { type: "string" } }, ["question"]),
        filler: plain(
          {
            key: { type: "string", description: "Record key" },
            limit: { type: "integer", description: "Maximum number of rows", default: 10 },
            verbose: { type: "boolean", description: "Return all columns", default: false },
          },
          ["key"],
        ),
      };

async function zodSchemas() {
  const { z } = await import("zod");
  return {
    add: z.object({ a: z.int(), b: z.int() }),
    sum: z.object({ sum: z.int() }),
    echo: z.object({ text: z.string() }),
    sleep: z.object({ ms: z.int() }),
    greet: z.object({ name: z.string() }),
    ask: z.object({ question: z.string() }),
    filler: z.object({
      key: z.string().describe("Record key"),
      limit: z.int().default(10).describe("Maximum number of rows"),
      verbose: z.boolean().default(false).describe("Return all columns"),
    }),
  };
}

const app = new Server("bench", { version: "1.0.0", maxMessageBytes: 64 << 20 });

app.tool("add", { description: "Add two integers.", input: schemas.add, output: schemas.sum }, async ({ a, b }) => ({
  sum: a + b,
}));

app.tool("echo", { description: "Return the text.", input: schemas.echo }, async (args) => args.text);

app.tool(
  "sleep_ms",
  { description: "Sleep for some milliseconds.", input: schemas.sleep },
  async ({ ms }, { signal }) => {
    await sleep(ms, undefined, { signal });
    return text(`slept ${ms}`);
  },
);

app.resource("bench://hello", { mimeType: "text/plain" }, async () => "hello from bench");
app.resource("bench://item/{id}", { mimeType: "text/plain" }, async ({ id }) => `item ${id}`);
app.prompt(
  "greet",
  { description: "Greet somebody.", input: schemas.greet },
  async ({ name }) => `Say hello to ${name}.`,
);

app.tool(
  "ask_model",
  { description: "Ask the client's model.", input: schemas.ask },
  async ({ question }, ctx) => (await ctx.sample(question, { maxTokens: 100 })).text,
);

const form = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] };
app.tool(
  "ask_user",
  { description: "Ask the user.", input: schemas.ask },
  async ({ question }, ctx) => (await ctx.elicit(question, form)).content?.answer ?? "",
);

for (let i = 5; i < 100; i++) {
  const description = `Filler tool number ${i}: looks a record up by key and returns at most limit rows.`;
  const name = `tool_${String(i).padStart(3, "0")}`;
  app.tool(name, { description, input: schemas.filler }, async ({ key }) => `row ${key}`);
}

await app.run();
