// npm `@modelcontextprotocol/client`, 2.x, which asks for the newest revision first.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { lastText, main, model, textOf, USER } from "./checks.mjs";

await main(async (target) => {
  const options = { versionNegotiation: { mode: "auto" }, capabilities: { elicitation: {}, sampling: {} } };
  const client = new Client({ name: "sdk2", version: "1.0.0" }, options);
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: USER }));
  client.setRequestHandler("sampling/createMessage", ({ params }) => ({
    role: "assistant",
    model: "none",
    content: { type: "text", text: model(lastText(params.messages)) },
  }));
  await client.connect(
    typeof target === "string"
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }),
  );
  return {
    cancels: true,
    answers: ["elicitation", "sampling"],
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, signal) => {
      const result = await client.callTool({ name, arguments: args }, { signal });
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    progress: async (name, args) => {
      const heard = [];
      await client.callTool({ name, arguments: args }, { onprogress: (p) => heard.push(p.progress) });
      return heard;
    },
    read: async (uri) => textOf((await client.readResource({ uri })).contents),
    prompt: async (name, args) =>
      textOf((await client.getPrompt({ name, arguments: args })).messages.map((m) => m.content)),
    close: () => client.close(),
  };
});
