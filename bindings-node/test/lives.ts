// Compiled, never run: the types of lifespans and groups. See types.ts for the rest.

import {
  type CallToolResult,
  type Client,
  type Context,
  connect,
  connectMany,
  type Middleware,
  Server,
  type Task,
  type TaskHandle,
  type TricornError,
} from "tricorn";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_proof: Same<A, B>): void {}

class Pool {
  readonly size: number = 1;
}

// The state is what start returns.
const app = new Server("state", { lifespan: { start: async () => new Pool(), stop: (pool) => void pool.size } });
same<typeof app, Server<Pool>>(true);
app.tool("size", { input: z.object({ a: z.number() }) }, ({ a }, ctx) => {
  same<typeof ctx, Context<Pool>>(true);
  return a + ctx.state.size;
});
app.tool("plain", (_, ctx) => ctx.state.size.toFixed());
app.resource("pool://{id}", { complete: { id: (value, _, ctx) => [value, ctx.state.size.toFixed()] } }, (_, ctx) => {
  return ctx.state.size;
});
app.prompt("pool", (_, ctx) => ctx.state.size.toFixed());
app.onComplete((_, ctx) => [ctx.state.size.toFixed()]);
app.setSource("tool", { get: (_, ctx) => ctx.state.size });
app.middleware((request, context, next) => {
  same<typeof context.state, Pool>(true);
  return next(request, context);
});
const plain: Middleware = (request, context, next) => next(request, context);
void plain;
// What the web framework knows is not there everywhere.
interface Visitor {
  readonly name: string;
}
app.tool("visitor", (_, ctx: Context<Pool, Visitor>) => ctx.host?.name ?? "nobody");
// @ts-expect-error: over standard streams and in memory there is none
app.tool("visitor", (_, ctx: Context<Pool, Visitor>) => ctx.host.name);

// Functions that do not care about the state fit any server.
const echo = (_: unknown, ctx: Context): string => ctx.request.method;
app.tool("echo", echo);
new Server("value", { state: { n: 1 } }).tool("n", (_, ctx) => ctx.state.n.toFixed());
new Server("none").tool("n", (_, ctx) => same<typeof ctx.state, unknown>(true));
// @ts-expect-error: stop gets what start returns
new Server<Pool>("wrong", { lifespan: { start: () => new Pool(), stop: (pool: string) => void pool } });

async function group(): Promise<void> {
  await connect(app);
  await using group = await connectMany({ a: app, b: "node server.mjs", c: { url: "http://127.0.0.1/mcp" } });
  await connectMany("mcp.json", {
    connectTimeout: 1000,
    prefix: "always",
    forServer: (name) => ({ onLog: () => name }),
  });
  await connectMany("mcp.json", { forServer: () => ({ policy: { roots: [] }, middleware: [], onError: () => {} }) });
  // @ts-expect-error: all servers of a group have the same
  await connectMany("mcp.json", { forServer: () => ({ cache: false }) });
  // @ts-expect-error: so it is with this
  await connectMany("mcp.json", { forServer: () => ({ onLog: () => {}, restart: false }) });
  await connectMany({ mcpServers: { a: { command: "x" } } });
  for (const tool of await group.listTools()) same<typeof tool.server, string>(true);
  same<Awaited<ReturnType<typeof group.callTool<number>>>, CallToolResult<number>>(true);
  same<ReturnType<typeof group.client>, Client | undefined>(true);
  same<typeof group.failures, ReadonlyMap<string, TricornError>>(true);
  const { entries } = await group.list("resource");
  void entries[0]?.definition.uri;
  // @ts-expect-error: which entry is not a question here
  await connectMany("mcp.json", { server: "a" });
}
void group;

// Tasks.
const tasked = new Server("tasks", { tasks: { maxTasks: 5, taskTtl: 60_000 } });
tasked.tool("slow", { taskSupport: "optional" }, (_, ctx) => {
  same<typeof ctx.request.taskId, string | undefined>(true);
  same<ReturnType<typeof ctx.runAsTask>, boolean>(true);
  // @ts-expect-error: there is nothing to say
  ctx.runAsTask({ ttl: 1 });
  return ctx.setStatus("working");
});
// @ts-expect-error: no such support
tasked.tool("slow", { taskSupport: "always" }, () => "");
async function tasks(): Promise<void> {
  const client = await connect(tasked, { tasks: true });
  const handle = await client.callToolTask<number>("slow", {}, { ttl: 1000 });
  same<typeof handle, TaskHandle<number>>(true);
  const result = await handle.result({ timeout: 1000 });
  same<typeof result, CallToolResult<number>>(true);
  for await (const task of handle.changes()) same<typeof task, Task>(true);
  same<Awaited<ReturnType<typeof client.listTasks>>, Task[]>(true);
  await client.callTool("slow", {}, { task: { ttl: 1000 } });
  await client.callTool("slow", {}, { task: true });
  // @ts-expect-error: a number alone says too little
  await client.callTool("slow", {}, { task: 1000 });
}
void tasks;

// Sessions.
app.tool("unlock", (_, ctx) => {
  ctx.session.tool("own", { input: z.object({ a: z.int() }) }, ({ a }, inner) => {
    same<typeof inner, Context<Pool>>(true);
    return a + inner.state.size;
  });
  ctx.session.resource("own://{id}", ({ id }) => id).prompt("own", () => "");
  same<ReturnType<typeof ctx.session.removeTool>, boolean>(true);
});
new Server("ahead", { capabilities: ["prompts"] });
// @ts-expect-error: a client's capability
new Server("ahead", { capabilities: ["sampling"] });
