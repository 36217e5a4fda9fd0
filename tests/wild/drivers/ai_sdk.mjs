// The AI SDK's client: its tools are executed without a model.
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { main, textOf, USER } from "./checks.mjs";

await main(async (target) => {
  const transport =
    typeof target === "string"
      ? { type: "http", url: target }
      : new StdioTransport({ command: target[0], args: target.slice(1), env: process.env });
  const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
  client.onElicitationRequest(ElicitationRequestSchema, () => ({ action: "accept", content: USER }));
  const tools = await client.tools();
  return {
    cancels: true,
    answers: ["elicitation"],
    tools: async () => Object.keys(tools),
    call: async (name, args, abortSignal) => {
      const result = await tools[name].execute(args, { toolCallId: "1", messages: [], abortSignal });
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    read: async (uri) => textOf((await client.readResource({ uri })).contents),
    prompt: async (name, args) =>
      textOf((await client.experimental_getPrompt({ name, arguments: args })).messages.map((m) => m.content)),
    close: () => client.close(),
  };
});
