// The client of Mastra: its tools are executed without a model.
import { MCPClient } from "@mastra/mcp";
import { main, textOf } from "./checks.mjs";

await main(async (target) => {
  const ours =
    typeof target === "string"
      ? { url: new URL(target) }
      : { command: target[0], args: target.slice(1), env: process.env };
  const client = new MCPClient({ servers: { ours }, timeout: 30_000 });
  // Names and arguments of both generations; the second needs Node 22.
  const second = client.listTools !== undefined;
  const tools = await (second ? client.listTools() : client.getTools());
  return {
    tools: async () => Object.keys(tools),
    call: async (name, args) => {
      try {
        const said = await tools[`ours_${name}`].execute(second ? args : { context: args }, {});
        return {
          error: Boolean(said?.isError),
          text: said?.content ? textOf(said.content) : typeof said === "string" ? said : JSON.stringify(said),
        };
      } catch (error) {
        if (error.message.includes("the tool says no")) return { error: true, text: error.message };
        throw error;
      }
    },
    read: async (uri) => textOf((await client.resources.read("ours", uri)).contents),
    prompt: async (name, args) =>
      textOf((await client.prompts.get({ serverName: "ours", name, args })).messages.map((m) => m.content)),
    close: () => client.disconnect(),
  };
});
