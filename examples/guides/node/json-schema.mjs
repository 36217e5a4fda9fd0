// JSON Schema: given as it is, and checked as it says.
import { connect, MisuseError, Server } from "tricorn";

const app = new Server("schemas", { onError: () => {} });

const contact = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { number: { type: "string", minLength: 3 } },
  properties: { by: { enum: ["phone", "mail"] }, phone: { $ref: "#/$defs/number" }, mail: { type: "string" } },
  required: ["by"],
  if: { properties: { by: { const: "phone" } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: { required: ["phone"] },
  else: { required: ["mail"] },
};
const pair = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { pair: { type: "array", items: [{ type: "string" }, { type: "integer" }] } },
};
const number = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const outside = { type: "object", properties: { home: { $ref: "https://example.com/address.json" } } };

app.tool("contact", { description: "Call or write", input: contact }, ({ by, phone, mail }) =>
  by === "phone" ? `called ${phone}` : `wrote to ${mail}`,
);
app.tool("pair", { description: "Take a pair, as draft-07 describes it", input: pair }, () => "ok");
app.tool("broken", { description: "Break a promise", output: number }, () => ({ n: "not a number" }));

const client = await connect(app);
/** @type {Record<string, unknown>} */
const schema = (await client.listTools())[0]?.inputSchema ?? {};
console.log(`listed: ${schema["$schema"]},`, ["$defs", "if"].filter((key) => key in schema).join(", "));

console.log("contact:", (await client.callTool("contact", { by: "phone", phone: "555-0100" })).text);
/** @type {[string, Record<string, unknown>][]} */
const calls = [
  ["contact", { by: "phone" }],
  ["pair", { pair: ["a", "b"] }],
  ["broken", {}],
];
for (const [name, args] of calls) {
  const result = await client.callTool(name, args);
  console.log(`${name}: is_error=${result.isError}, ${result.text}`);
}
await client.close();

try {
  app.tool("outside", { input: outside }, () => "");
} catch (error) {
  if (error instanceof MisuseError) console.log("refused:", error.message);
}
