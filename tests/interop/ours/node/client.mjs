// Our client in Node: client.mjs TARGET [--revision R] [NAME JSON]...
import { connect } from "tricorn";

const [target, ...words] = process.argv.slice(2);
const options = words[0] === "--revision" ? { revision: words.splice(0, 2)[1] } : {};

const client = await connect(target, options);
const tools = (await client.listTools()).map((tool) => tool.name);
const calls = [];
for (let i = 0; i < words.length; i += 2) {
  const { isError, content, structured } = await client.callTool(words[i], JSON.parse(words[i + 1]));
  calls.push({
    error: isError,
    text: content[0]?.text ?? "",
    types: content.map((block) => block.type),
    structured: structured ?? null,
  });
}
process.stdout.write(`${JSON.stringify({ protocolVersion: client.protocolVersion, tools, calls })}\n`);
await client.close();
