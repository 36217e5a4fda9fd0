// npm `@modelcontextprotocol/sdk` 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { lastText, main, model, textOf, USER } from "./checks.mjs";

await main(async (target) => {
  const capabilities = { elicitation: {}, sampling: {} };
  const client = new Client({ name: "sdk1", version: "1.0.0" }, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: USER }));
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: "assistant",
    model: "none",
    content: { type: "text", text: model(lastText(params.messages)) },
  }));
  const http = typeof target === "string";
  await client.connect(
    http
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }),
  );
  return {
    cancels: true,
    answers: ["elicitation", "sampling"],
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, signal) => {
      const result = await client.callTool({ name, arguments: args }, undefined, { signal });
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    progress: async (name, args) => {
      const heard = [];
      await client.callTool({ name, arguments: args }, undefined, { onprogress: (p) => heard.push(p.progress) });
      return heard;
    },
    read: async (uri) => textOf((await client.readResource({ uri })).contents),
    prompt: async (name, args) =>
      textOf((await client.getPrompt({ name, arguments: args })).messages.map((m) => m.content)),
    close: () => client.close(),
  };
});
