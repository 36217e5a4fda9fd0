// What a server on the official TypeScript SDK offers in the newest revision alone.
import { randomBytes } from "node:crypto";
import { acceptedContent, createRequestStateCodec, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod/v4";
import { text } from "./fixture.mjs";

/** Seals what a call has to know when it is made again. */
const sealed = createRequestStateCodec({ key: randomBytes(32) });

export const options = {
  requestState: { verify: sealed.verify },
  cacheHints: { "tools/list": { ttlMs: 60_000, cacheScope: "public" } },
};

/** Cache hints of `test://static-text`. */
export const kept = { ttlMs: 5_000, cacheScope: "public" };

/** A question is what a call returns; with the answer it is made again. */
export function rerun(ctx, method, params, say) {
  const answer = ctx.mcpReq.inputResponses?.answer;
  return answer ? say(answer) : inputRequired({ inputRequests: { answer: { method, params } } });
}

function asked(message, name) {
  const requestedSchema = { type: "object", properties: { [name]: { type: "string" } }, required: [name] };
  return inputRequired.elicit({ message, requestedSchema });
}

const QUESTIONS = [
  ["First?", "a"],
  ["Second?", "b"],
  ["Third?", "c"],
];

/** `told()` tells those who listen that the list of tools has changed. */
export function offer(server, told) {
  const nothing = z.object({});
  const three = { description: "Ask three things, one after the other", inputSchema: nothing };
  server.registerTool("three_questions", three, async (_, ctx) => {
    const given = ctx.mcpReq.requestState() ?? [];
    const answer = acceptedContent(ctx.mcpReq.inputResponses, "answer");
    if (answer) given.push(answer[QUESTIONS[given.length][1]]);
    if (given.length === QUESTIONS.length) return text(given.join(" "));
    const requestState = await sealed.mint(given);
    return inputRequired({ inputRequests: { answer: asked(...QUESTIONS[given.length]) }, requestState });
  });
  const two = { description: "Ask two things at once", inputSchema: nothing };
  server.registerTool("two_questions", two, async (_, ctx) => {
    const left = acceptedContent(ctx.mcpReq.inputResponses, "left");
    const right = acceptedContent(ctx.mcpReq.inputResponses, "right");
    if (left && right) return text(`${left.left} ${right.right}`);
    return inputRequired({ inputRequests: { left: asked("Left?", "left"), right: asked("Right?", "right") } });
  });
  const header = {
    description: "Return the region, which also travels as a header",
    inputSchema: z.object({ region: z.string().optional().meta({ "x-mcp-header": "Region" }) }),
  };
  server.registerTool("test_x_mcp_header", header, async ({ region }) => text(`region: ${region ?? "none"}`));
  const change = { description: "Say that the list of tools has changed", inputSchema: nothing };
  server.registerTool("test_trigger_tool_change", change, async () => {
    await told();
    return text("The list of tools has changed");
  });
  const prompt = { description: "Ask before it is made" };
  server.registerPrompt("test_input_required_result_prompt", prompt, async (ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, "user_context");
    if (!answer) return inputRequired({ inputRequests: { user_context: asked("In which context?", "context") } });
    return { messages: [{ role: "user", content: { type: "text", text: `Context: ${answer.context}` } }] };
  });
}
