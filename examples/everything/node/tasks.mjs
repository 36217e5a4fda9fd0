// Tools that run as tasks: the extension of 2026-07-28 where the client declares it, those of 2025-11-25 where the client
// asks for one.
import { setTimeout as sleep } from "node:timers/promises";
import { Question, RpcError, ToolError } from "tricorn";
import { z } from "zod";

const form = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });

export function addTasks(app) {
  app.tool(
    "greet",
    { description: "Greet someone, at once", input: z.object({ name: z.string() }) },
    ({ name }) => `Hello, ${name}!`,
  );

  app.tool(
    "slow_compute",
    {
      description: "Compute for some seconds",
      taskSupport: "optional",
      input: z.object({ seconds: z.number().default(0), label: z.string().default("") }),
    },
    async ({ seconds, label }, ctx) => {
      await sleep(seconds * 1000, undefined, { signal: ctx.signal });
      return `computed ${label} in ${seconds} s`;
    },
  );

  app.tool(
    "failing_job",
    { description: "Work for a second and fail", taskSupport: "required" },
    async (_, { signal }) => {
      await sleep(1000, undefined, { signal });
      throw new ToolError("the job failed");
    },
  );

  app.tool("protocol_error_job", { description: "End with a JSON-RPC error", taskSupport: "required" }, () => {
    throw new RpcError(-32603, "the job broke");
  });

  app.tool(
    "confirm_delete",
    {
      description: "Ask before something is deleted",
      taskSupport: "required",
      input: z.object({ filename: z.string() }),
    },
    async ({ filename }, ctx) => {
      const { content } = await ctx.elicit(`Delete ${filename}?`, form("confirm", "boolean"));
      return `${content?.confirm === true ? "deleted" : "kept"} ${filename}`;
    },
  );

  app.tool("multi_input", { description: "Ask two things at once", taskSupport: "required" }, async (_, ctx) => {
    const [left, right] = await ctx.askAll([
      Question.elicit("Left?", form("name", "string")),
      Question.elicit("Right?", form("confirm", "boolean")),
    ]);
    return `${left.content?.name} ${right.content?.confirm}`;
  });

  app.tool("test_tool_with_task", { description: "Ask, then go on as a task" }, async (_, ctx) => {
    const { content } = await ctx.elicit("What is your name?", form("name", "string"));
    ctx.runAsTask();
    await sleep(100, undefined, { signal: ctx.signal });
    return `Hello, ${content?.name ?? ""}!`;
  });
}
