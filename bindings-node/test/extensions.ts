// Compiled, never run: the types of extensions and of MCP Apps. See types.ts for the rest.

import {
  apps,
  type Change,
  type Context,
  connect,
  Extension,
  type ExtensionNotification,
  type Honoured,
  jsonSchema,
  type MethodHandler,
  type MethodOptions,
  Server,
  type TaskChanged,
  type Tool,
} from "tricorn";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_proof: Same<A, B>): void {}

// Parameters have the type of the schema, after defaults and transforms.
const search = new Extension("com.example/search", { languages: ["en"] })
  .method(
    "com.example/search",
    ({ query, limit }, ctx) => {
      same<typeof query, string>(true);
      same<typeof limit, number>(true);
      same<typeof ctx, Context>(true);
      same<ReturnType<typeof ctx.extension>, Readonly<Record<string, unknown>> | undefined>(true);
      return { found: [query], limit };
    },
    { schema: z.object({ query: z.string(), limit: z.number().default(10) }), idempotent: true },
  )
  .method("com.example/raw", async (params) => {
    same<typeof params, Record<string, unknown>>(true);
  })
  .method("com.example/typed", ({ a }) => ({ a: a.toFixed() }), {
    schema: jsonSchema<{ a: number }>({ type: "object" }),
  })
  .method("com.example/nothing", () => null)
  .notification("notifications/com.example/found", "com.example/queries");
// @ts-expect-error: a result is an object
search.method("com.example/number", () => 7);
// @ts-expect-error: an option that does not exist
search.method("com.example/options", () => ({}), { shema: {} });
// @ts-expect-error: the member of the filter is missing
search.notification("notifications/com.example/found");
// @ts-expect-error: settings are an object
new Extension("com.example/search", 7);

const handler: MethodHandler<undefined> = (params) => ({ params });
const options: MethodOptions = { idempotent: true };
search.method("com.example/named", handler, options);

// The state is the server's.
const counting = new Extension<{ count: number }>("com.example/counting").method("com.example/count", (_, ctx) => {
  same<typeof ctx.state, { count: number }>(true);
  return { count: ctx.state.count };
});
const app = new Server("types", { state: { count: 1 }, extensions: [search, counting] });
app.tool("count", (_, ctx) => {
  same<typeof ctx.state, { count: number }>(true);
});
app.addExtension(search).addExtension(counting);
// @ts-expect-error: settings and methods are an Extension's
app.addExtension({ id: "com.example/search", settings: {} });
app.notify("notifications/com.example/found", { query: "x" }, "x");
// @ts-expect-error: parameters are an object
app.notify("notifications/com.example/found", "x");

async function client(): Promise<void> {
  await using client = await connect(app, { extensions: { "com.example/search": { limit: 3 } } });
  await client.request("com.example/later", {}, { anyResult: true });
  const tasks = [await client.callToolTask("work"), "id"];
  const changes = client.listen({ tasks, extensions: { "com.example/queries": ["a"], "com.example/all": true } });
  const { extensions } = await changes.honoured;
  same<typeof extensions, Honoured["extensions"]>(true);
  for await (const change of changes) {
    same<typeof change, Change>(true);
    if (change.type === "extensionNotification") {
      same<typeof change, ExtensionNotification>(true);
      void [change.method.length, change.params["query"]];
    } else if (change.type === "taskChanged") {
      same<typeof change, TaskChanged>(true);
      void [change.task.status, change.task["result"]];
    }
  }
  // @ts-expect-error: a key is no list
  client.listen({ extensions: { "com.example/queries": "a" } });
}
void client;

// MCP Apps.
const extension: Extension = apps.uiExtension();
const shows = new Server("apps", { extensions: [extension] });
void connect(shows, { extensions: { [apps.UI_EXTENSION]: apps.uiClientSettings([apps.UI_MIME_TYPE]) } });
shows.tool("forecast", { meta: apps.toolMeta({ resourceUri: "ui://weather/map", visibility: ["app"] }) }, (_, ctx) => {
  same<ReturnType<typeof apps.supportsUi>, boolean>(true);
  return apps.supportsUi(ctx);
});
// @ts-expect-error: nobody else
apps.toolMeta({ visibility: ["user"] });
apps.addUiResource(shows, "ui://weather/map", "<!doctype html>", {
  title: "Map",
  ui: { csp: { frameDomains: [] }, permissions: { camera: true }, domain: "x", prefersBorder: true },
});
apps.addUiResource(shows, "ui://weather/{day}", async ({ day }, ctx) => {
  same<typeof day, string>(true);
  same<typeof ctx, Context>(true);
  return day;
});
// @ts-expect-error: the MIME type is what it is
apps.addUiResource(shows, "ui://weather/map", "", { mimeType: "text/html" });
// @ts-expect-error: HTML is text or bytes
apps.addUiResource(shows, "ui://weather/map", () => 7);
declare const tool: Tool;
same<apps.Visibility, "model" | "app">(true);
void [apps.toolUi(tool)?.visibility.length, apps.visibleToModel(tool), apps.callableByApp(tool)];
void apps.resourceMeta({ prefersBorder: true } satisfies apps.ResourceUi);
