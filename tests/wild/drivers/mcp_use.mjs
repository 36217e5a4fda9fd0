// The client of mcp-use.
import { MCPClient } from "mcp-use";
import { lastText, main, model, textOf, USER } from "./checks.mjs";

await main(async (target) => {
  const ours =
    typeof target === "string" ? { url: target } : { command: target[0], args: target.slice(1), env: process.env };
  const content = (messages) => ({ type: "text", text: model(lastText(messages)) });
  const answers = {
    onElicitation: async () => ({ action: "accept", content: USER }),
    onSampling: async ({ messages }) => ({ role: "assistant", model: "none", content: content(messages) }),
  };
  const client = new MCPClient({ mcpServers: { ours } }, answers);
  const session = await client.createSession("ours");
  return {
    cancels: true,
    answers: ["elicitation", "sampling"],
    tools: async () => (await session.listTools()).map((tool) => tool.name),
    call: async (name, args, signal) => {
      const result = await session.callTool(name, args, { signal });
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    progress: async (name, args) => {
      const heard = [];
      await session.callTool(name, args, { onprogress: ({ progress }) => heard.push(progress) });
      return heard;
    },
    read: async (uri) => textOf((await session.readResource(uri)).contents),
    prompt: async (name, args) => textOf((await session.getPrompt(name, args)).messages.map((m) => m.content)),
    close: () => client.closeAllSessions(),
  };
});
