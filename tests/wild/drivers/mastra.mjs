// The client of Mastra: its tools are executed without a model.
import { MCPClient } from "@mastra/mcp";
import { main, textOf, USER } from "./checks.mjs";

await main(async (target) => {
  const there =
    typeof target === "string"
      ? { url: new URL(target) }
      : { command: target[0], args: target.slice(1), env: process.env };
  const inputRequests = async () => ({ action: "accept", content: USER });
  const ours = { ...there, enableProgressTracking: true, inputRequests };
  const client = new MCPClient({ servers: { ours }, timeout: 30_000 });
  const tools = await client.listTools();
  let heard = [];
  await client.progress.onUpdate("ours", ({ progress }) => heard.push(progress));
  return {
    cancels: true,
    answers: ["elicitation"],
    tools: async () => Object.keys(tools),
    call: async (name, args, abortSignal) => {
      try {
        const said = await tools[`ours_${name}`].execute(args, { abortSignal });
        return {
          error: Boolean(said?.isError),
          text: said?.content ? textOf(said.content) : typeof said === "string" ? said : JSON.stringify(said),
        };
      } catch (error) {
        if (error.message.includes("the tool says no")) return { error: true, text: error.message };
        throw error;
      }
    },
    progress: async (name, args) => {
      heard = [];
      await tools[`ours_${name}`].execute(args, {});
      return heard;
    },
    read: async (uri) => textOf((await client.resources.read("ours", uri)).contents),
    prompt: async (name, args) =>
      textOf((await client.prompts.get({ serverName: "ours", name, args })).messages.map((m) => m.content)),
    close: () => client.disconnect(),
  };
});
