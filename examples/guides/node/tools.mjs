// Tools: a server that has some, and a client that calls them.
import { audio, connect, image, RpcError, resource, resourceLink, Server, ToolError, text } from "tricorn";
import { z } from "zod";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const Weather = z.object({ city: z.string(), celsius: z.number() });

const app = new Server("tools");

app.tool(
  "add",
  { description: "Add two numbers", input: z.object({ a: z.int(), b: z.int() }), output: z.int() },
  ({ a, b }) => a + b,
);

app.tool(
  "divide",
  {
    description: "Divide one number by another",
    input: z.object({ a: z.number().describe("The dividend"), b: z.number().describe("The divisor") }),
  },
  ({ a, b }) => {
    if (b === 0) throw new ToolError("cannot divide by zero");
    return a / b;
  },
);

app.tool(
  "weather",
  {
    description: "Today's weather",
    annotations: { readOnlyHint: true },
    input: z.object({ city: z.string() }),
    output: Weather,
  },
  ({ city }) => ({ city, celsius: 22.5 }),
);

app.tool("picture", { description: "Draw a dot" }, () => image(PNG, "image/png"));
app.tool("sound", { description: "Record silence" }, () => audio(WAV, "audio/wav"));
app.tool("manual", { description: "The manual" }, () =>
  resource("manual://radio", "Turn it off and on again.", "text/plain"),
);
app.tool("report", { description: "A text with a picture" }, () => [
  text("This is the dot."),
  image(PNG, "image/png"),
  resourceLink({ uri: "manual://radio", name: "manual" }),
]);

const client = await connect(app);

for (const tool of await client.listTools()) console.log(`${tool.name}: ${tool.description}`);

const sum = await client.callTool("add", { a: 1, b: 2 });
console.log("add:", await sum.to(z.int()));

const weather = await (await client.callTool("weather", { city: "Rome" })).to(Weather);
console.log(`weather: ${weather.celsius} °C in ${weather.city}`);

const failed = await client.callTool("divide", { a: 1, b: 0 });
console.log(`divide: is_error=${failed.isError}, ${failed.text}`);
const wrong = await client.callTool("divide", { a: "one", b: 2 });
console.log(`divide: is_error=${wrong.isError}, ${wrong.text}`);
try {
  await client.callTool("multiply");
} catch (error) {
  if (error instanceof RpcError) console.log("multiply: error", error.code);
}

for (const name of ["picture", "sound", "manual", "report"]) {
  const { content } = await client.callTool(name);
  for (const block of content) {
    if (block.type === "text") console.log(`${name}: text ${block.text}`);
    else if (block.type === "image" || block.type === "audio") console.log(`${name}: ${block.type} ${block.mimeType}`);
    else if (block.type === "resource_link") console.log(`${name}: resource_link ${block.uri}`);
    else if ("text" in block.resource) console.log(`${name}: resource ${block.resource.text}`);
  }
}
await client.close();
