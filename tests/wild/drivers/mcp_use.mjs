// The client of mcp-use.
import { MCPClient } from "mcp-use";
import { main, textOf } from "./checks.mjs";

await main(async (target) => {
  const ours =
    typeof target === "string" ? { url: target } : { command: target[0], args: target.slice(1), env: process.env };
  const client = new MCPClient({ mcpServers: { ours } });
  const session = await client.createSession("ours");
  return {
    tools: async () => (await session.listTools()).map((tool) => tool.name),
    call: async (name, args) => {
      const result = await session.callTool(name, args);
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    read: async (uri) => textOf((await session.readResource(uri)).contents),
    prompt: async (name, args) => textOf((await session.getPrompt(name, args)).messages.map((m) => m.content)),
    close: () => client.closeAllSessions(),
  };
});
