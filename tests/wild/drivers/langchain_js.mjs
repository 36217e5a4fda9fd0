// LangChain.js: tools of the adapters.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { main, textOf } from "./checks.mjs";

await main(async (target) => {
  const ours =
    typeof target === "string"
      ? { transport: "http", url: target }
      : { transport: "stdio", command: target[0], args: target.slice(1), env: process.env };
  let heard = [];
  const onProgress = ({ progress }) => heard.push(progress);
  const client = new MultiServerMCPClient({ mcpServers: { ours }, throwOnLoadError: true, onProgress });
  const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
  return {
    cancels: true,
    tools: async () => Object.keys(tools),
    call: async (name, args, signal) => {
      try {
        const said = await tools[name].invoke(args, { signal });
        return { error: false, text: typeof said === "string" ? said : JSON.stringify(said) };
      } catch (error) {
        // A failed call is thrown.
        if (error.name === "ToolException" && !signal?.aborted) return { error: true, text: error.message };
        throw error;
      }
    },
    progress: async (name, args) => {
      heard = [];
      await tools[name].invoke(args);
      return heard;
    },
    read: async (uri) => (await client.readResource("ours", uri)).map((part) => part.text).join("\n"),
    // The adapters have no prompts; the client of the SDK below them has.
    prompt: async (name, args) => {
      const official = await client.getClient("ours");
      return textOf((await official.getPrompt({ name, arguments: args })).messages.map((m) => m.content));
    },
    close: () => client.close(),
  };
});
