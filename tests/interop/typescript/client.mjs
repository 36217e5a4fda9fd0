// A client on the official TypeScript SDK: client.mjs TARGET [--revision R] [NAME JSON]...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [target, ...words] = process.argv.slice(2);
let mode = "auto";
if (words[0] === "--revision") {
  mode = words[1] >= "2026" ? { pin: words[1] } : "legacy";
  words.splice(0, 2);
}

function transport() {
  if (target.startsWith("http")) return new StreamableHTTPClientTransport(new URL(target));
  const [command, ...args] = target.startsWith("[") ? JSON.parse(target) : target.split(/\s+/);
  return new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
}

const client = new Client({ name: "interop", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(transport());
const tools = [];
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? undefined : { cursor });
  tools.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
} while (cursor !== undefined);
const calls = [];
for (let i = 0; i < words.length; i += 2) {
  const result = await client.callTool({ name: words[i], arguments: JSON.parse(words[i + 1]) });
  calls.push({
    error: result.isError === true,
    text: result.content[0]?.text ?? "",
    types: result.content.map((block) => block.type),
    structured: result.structuredContent ?? null,
  });
}
const protocolVersion = client.getNegotiatedProtocolVersion();
process.stdout.write(`${JSON.stringify({ protocolVersion, tools, calls })}\n`);
await client.close();
