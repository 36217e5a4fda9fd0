// Compiled, never run: the types of resources, prompts, questions and lists. See types.ts for the rest.

import {
  assistant,
  type Change,
  type Client,
  type Completion,
  type Context,
  type CreateMessageResult,
  concurrencyLimit,
  connect,
  Form,
  type GetPromptResult,
  type Honoured,
  jsonSchema,
  logging,
  type Middleware,
  type Prompt,
  type ReadResourceResult,
  type RequestContext,
  type Resource,
  type Result,
  type Root,
  rateLimit,
  Server,
  timing,
  type UrlElicitation,
  user,
  type Whole,
} from "tricorn";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_proof: Same<A, B>): void {}

const app = new Server("features");

// What a URI says of its variables, the function knows.
app.resource("test://fixed", (args, ctx) => {
  same<typeof args, { readonly uri: string }>(true);
  same<typeof ctx, Context>(true);
  return args.uri;
});
app.resource("notes://{day}/{id:3}", { title: "Notes" }, ({ day, id }) => {
  same<typeof day, string>(true);
  same<typeof id, string>(true);
  return day + id;
});
app.resource("files://x{/path*}{?q,limit}{&more}", async ({ path, q, limit, more }) => {
  same<typeof path, readonly string[] | undefined>(true);
  same<typeof q, string | undefined>(true);
  same<typeof limit, string | undefined>(true);
  same<typeof more, string | undefined>(true);
});
app.resource("plus://{+a,b}", ({ a, b }) => {
  same<typeof a, string>(true);
  same<typeof b, string | undefined>(true);
});
// @ts-expect-error: there is no such variable
app.resource("notes://{day}", ({ night }) => night);
app.resource("users://{id}", { input: z.object({ id: z.int() }) }, ({ id }) => {
  same<typeof id, number>(true);
  return { id };
});
app.resource("raw://{id}", { input: jsonSchema<{ id: number }>({ type: "object" }) }, ({ id }) => id.toFixed());
declare const unknown: string;
app.resource(unknown, (args) => {
  same<typeof args, Record<string, string>>(true);
});

// Values, and what stands for contents.
app.resource("test://text", "text");
app.resource("test://bytes", { mimeType: "image/png" }, new Uint8Array(1));
app.resource("test://json", {}, { any: ["thing"] });
app.resource("test://several", {}, [{ text: "a" }, { blob: new Uint8Array(1), mimeType: "image/png" }]);
// @ts-expect-error: options are not contents
app.resource("test://options", { mimeType: "image/png" });
// @ts-expect-error: an option that does not exist
app.resource("test://options", { mime: "image/png" }, "");

// Suggestions are for what there is.
app.resource("maps://{city}", { complete: { city: (value) => [value] } }, () => "");
// @ts-expect-error: there is no such variable
app.resource("maps://{city}", { complete: { town: () => [] } }, () => "");
app.prompt(
  "trip",
  {
    input: z.object({ city: z.string(), days: z.int() }),
    complete: {
      city: (value, args, ctx) => {
        same<typeof value, string>(true);
        same<typeof args, Readonly<Record<string, string>>>(true);
        same<typeof ctx, Context>(true);
        return { values: [value], total: 3 };
      },
    },
  },
  ({ city, days }) => {
    same<typeof city, string>(true);
    same<typeof days, number>(true);
    return [user(city), assistant(String(days))];
  },
);
// @ts-expect-error: there is no such argument
app.prompt("trip", { input: z.object({ city: z.string() }), complete: { town: () => [] } }, () => "");
app.prompt("colours", { input: z.object({ colour: z.string() }), complete: { colour: ["red"] } }, () => "");
app.onComplete(({ ref, argument }): Completion => [ref.type, argument.value]);

// Prompts.
app.prompt("plain", (args) => {
  same<typeof args, Record<string, string>>(true);
  return { role: "assistant", content: "text" };
});
app.prompt("whole", async () => ({ messages: [user("a")] }));
// @ts-expect-error: a number is no message
app.prompt("number", () => 7);
// @ts-expect-error: nobody else speaks
app.prompt("role", () => ({ role: "system", content: "x" }));

// Questions.
app.tool("ask", async (_, ctx) => {
  const answer = await ctx.elicit("?", z.object({ size: z.enum(["S", "M"]), count: z.int().default(1) }));
  if (answer.action === "accept") same<typeof answer.content, { size: "S" | "M"; count: number }>(true);
  else same<typeof answer.content, undefined>(true);
  const single = await ctx.elicit("?", z.enum(["S", "M"]).nullable());
  if (single.action === "accept") same<typeof single.content, "S" | "M" | null>(true);
  const form = new Form(z.object({ size: z.enum(["S", "M"]), count: z.int().default(1) }));
  const formed = await ctx.elicit("?", form);
  if (formed.action === "accept") same<typeof formed.content, { size: "S" | "M"; count: number }>(true);
  const raw = await ctx.elicit("?", { type: "object" });
  if (raw.action === "accept") same<typeof raw.content, Record<string, unknown>>(true);
  const { action } = await ctx.elicitUrl("?", "https://example.com", "1");
  same<typeof action, "accept" | "decline" | "cancel">(true);
  const sampled = await ctx.sample("?", { maxTokens: 1, includeContext: "none" }, { timeout: null });
  same<typeof sampled, CreateMessageResult>(true);
  same<typeof sampled.text, string>(true);
  await ctx.sample([user("a"), { role: "assistant", content: "b" }], { maxTokens: 1 });
  // @ts-expect-error: how much is not for the library to decide
  await ctx.sample("?", {});
  same<Awaited<ReturnType<typeof ctx.listRoots>>, Root[] & Whole>(true);
  ctx.logger.child("part").child({ module: "x" }).info({ a: 1 }, "text %s", "x");
  ctx.setEnabled("resource_template", "notes://{day}", false);
  // @ts-expect-error: no such kind
  ctx.setEnabled("tools", "x", true);
});

// Sources.
declare const upstream: Client;
app.setSource("tool", { list: (cursor) => upstream.listToolsPage(cursor) });
app.setSource("resource", { list: (cursor) => upstream.listResourcesPage(cursor) });
app.setSource("resource_template", { list: (cursor) => upstream.listResourceTemplatesPage(cursor) });
app.setSource("prompt", {
  list: (cursor) => upstream.listPromptsPage(cursor),
  get: ({ name, arguments: args }) => upstream.getPrompt(name, args),
});
app.setSource("tool", { get: ({ name, arguments: args }) => [name, args], list: async () => [] });
app.setSource("prompt", { list: (cursor) => ({ prompts: [], nextCursor: cursor ?? "1" }), get: () => "text" });
// @ts-expect-error: templates are read as resources
app.setSource("resource_template", { get: () => "" });
// @ts-expect-error: these are no tools
app.setSource("tool", { list: () => [{ uri: "x" }] });
app.onSubscribe(({ uri, subscribed }) => void [uri.length, subscribed === true]);

async function client(): Promise<void> {
  await using client = await connect(app, {
    sampling: async ({ messages, maxTokens }, ctx) => {
      same<typeof ctx, RequestContext>(true);
      ctx.progress(1);
      return messages.length + maxTokens > 0 ? "text" : { content: "x", model: "m" };
    },
    elicitation: {
      form: ({ message, requestedSchema }) => ({ [message]: Object.keys(requestedSchema.properties) }),
      url: ({ url }) => (url ? "accept" : undefined),
    },
    roots: ["/home", { uri: "file:///x", name: "X" }, new URL("file:///y")],
    onLog: ({ level, logger, data }) => void [level, logger, data],
    onListChanged: (kind) => same<typeof kind, "tool" | "resource" | "prompt">(true),
    onResourceUpdated: (uri) => same<typeof uri, string>(true),
  });
  await connect(app, { sampling: { answer: () => "", tools: true }, elicitation: () => null, roots: () => [] });
  // @ts-expect-error: a number is no answer
  await connect(app, { elicitation: () => 7 });
  for await (const resource of client.resources()) same<typeof resource, Resource>(true);
  same<Awaited<ReturnType<typeof client.listPrompts>>, Prompt[]>(true);
  const read = await client.readResource(new URL("test://x"), { meta: {} });
  same<typeof read, ReadResourceResult>(true);
  same<typeof read.blob, Uint8Array | undefined>(true);
  same<Awaited<ReturnType<typeof client.getPrompt>>, GetPromptResult>(true);
  const { values } = await client.complete({ type: "ref/prompt", name: "trip" }, "city", "A", { days: "1" });
  same<typeof values, string[]>(true);
  await using changes = client.listen({ tools: true, uris: [new URL("test://x"), "test://y"] });
  for await (const change of changes) {
    same<typeof change, Change>(true);
    if (change.type === "resourceUpdated") same<typeof change.uri, string>(true);
    // @ts-expect-error: a list has no URI
    else change.uri;
  }
  same<Awaited<typeof changes.honoured>, Honoured>(true);
  // @ts-expect-error: an option that does not exist
  client.listen({ tool: true });
  // @ts-expect-error: no such level
  await client.setLogLevel("loud");
  client.setRoots([]);
}
void client;
void ((page: UrlElicitation) => page.elicitationId);

// Middleware.
app.middleware(async (request, context, next) => {
  same<typeof context, Context>(true);
  context.values.set("a", request.params?.["name"]);
  if (request.method === "tools/call") {
    same<typeof request.params.name, string>(true);
    request.params.arguments = { ...request.params.arguments, a: request.params._meta?.["com.example/a"] };
  } else if (request.method === "resources/read") same<typeof request.params.uri, string>(true);
  const result = await next({ ...request, params: {} }, context, { signal: context.signal });
  same<typeof result, Result>(true);
  return { ...result, content: [] };
});
app.middleware(rateLimit(5, { burst: 10, perSession: true })).middleware(concurrencyLimit(10, { maxWaiting: 0 }));
app
  .middleware(timing())
  .middleware(logging(console))
  .middleware(logging(({ seconds }) => void seconds.toFixed()));
// @ts-expect-error: what comes of it is missing
app.middleware(async (request, context, next) => void (await next(request, context)));
// @ts-expect-error: no middleware
app.middleware({});
// @ts-expect-error: an option that does not exist
app.middleware(rateLimit(5, { bursts: 10 }));
const retry: Middleware<RequestContext> = (request, context, next) => {
  return next(request, context).catch(() => next(request, context));
};
void connect(app, { middleware: [retry, timing()] }).then((client) => client.metrics().timing?.["tools/call"]?.longest);
