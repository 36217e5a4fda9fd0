// Sampling: a tool has the client's model write something.
import { assistant, connect, RpcError, Server, user } from "tricorn";
import { z } from "zod";

const app = new Server("sampling");
const input = z.object({ text: z.string() });

app.tool("summarize", { description: "Sum up a text", input }, async ({ text }, ctx) => {
  ctx.require("sampling");
  const result = await ctx.sample(`Sum up: ${text}`, { maxTokens: 50, systemPrompt: "Be brief." });
  return `${result.text} (${result.model}, ${result.stopReason})`;
});

app.tool("translate", { description: "Sum up a text in French", input }, async ({ text }, ctx) => {
  const conversation = [user(`Sum up: ${text}`), assistant("A fox jumps."), user("And in French?")];
  return (await ctx.sample(conversation, { maxTokens: 20 })).text;
});

/**
 * Stands for a real model, which the user lets answer.
 * @type {import("tricorn").SamplingHandler}
 */
function sampling({ messages, maxTokens }) {
  const content = [messages.at(-1)?.content].flat()[0];
  const asked = content?.type === "text" ? content.text : "";
  console.log(`model: ${asked} (at most ${maxTokens} tokens)`);
  if (asked.includes("secret")) throw new RpcError(-1, "the user said no");
  return {
    content: asked.includes("French") ? "Un renard saute." : "A fox jumps.",
    model: "tiny-1",
    stopReason: "endTurn",
  };
}

const client = await connect(app, { revision: "2025-11-25", sampling });
let result = await client.callTool("summarize", { text: "The quick brown fox jumps." });
console.log("summary:", result.text);
result = await client.callTool("translate", { text: "The quick brown fox jumps." });
console.log("translation:", result.text);
result = await client.callTool("summarize", { text: "secret" });
console.log("refused:", result.text);
await client.close();

const other = await connect(app, { revision: "2025-11-25" });
try {
  await other.callTool("summarize", { text: "x" });
} catch (error) {
  if (error instanceof RpcError) console.log(`no model: error ${error.code}, ${error.message}`);
}
await other.close();
