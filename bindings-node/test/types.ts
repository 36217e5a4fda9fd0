// Compiled, never run: what the types promise to users, and what they refuse.

import {
  type AuthStep,
  type CallToolResult,
  type ClientAuth,
  type ClientGroup,
  type Context,
  connect,
  type Fetch,
  image,
  jsonSchema,
  Principal,
  result,
  Server,
  type StandardSchema,
  type TokenStore,
} from "tricorn";
import type { withClient } from "tricorn/testing";
import { z } from "zod";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_proof: Same<A, B>): void {}

const app = new Server("types", { instructions: "none", pageSize: 10 });

// @ts-expect-error: an option that does not exist
new Server("types", { pageSise: 10 });

// Arguments have the type of the schema, after defaults and transforms.
app.tool("add", { input: z.object({ a: z.number(), b: z.number().default(2) }) }, ({ a, b }, ctx) => {
  same<typeof a, number>(true);
  same<typeof b, number>(true);
  same<typeof ctx, Context>(true);
  same<typeof ctx.signal, AbortSignal>(true);
  // @ts-expect-error: a is no string
  const _wrong: string = a;
  return a + b;
});

app.tool("length", { input: z.object({ text: z.string().transform((text) => text.length) }) }, async ({ text }) => {
  same<typeof text, number>(true);
  return text;
});

// @ts-expect-error: the handler wants an argument the schema does not have
app.tool("wants", { input: z.object({ a: z.number() }) }, ({ c }: { c: string }) => c);

// A declared output is what the handler must return, now or later.
app.tool("sum", { output: z.object({ sum: z.number() }) }, () => ({ sum: 3 }));
app.tool("sum", { output: z.object({ sum: z.number() }) }, async () => ({ sum: 3 }));
app.tool("sum", { output: z.object({ sum: z.number() }) }, () => result({ structured: { sum: 3 } }));
// @ts-expect-error: a string is no number
app.tool("sum", { output: z.object({ sum: z.number() }) }, () => ({ sum: "3" }));
// @ts-expect-error: a result must come from result()
app.tool("sum", { output: z.object({ sum: z.number() }) }, () => ({ content: [] }));

// Without one, anything goes.
app.tool("any", () => undefined);
app.tool("any", { description: "a picture" }, () => image("AAAA", "image/png"));

// Plain JSON Schema: untyped, or typed by hand.
app.tool("raw", { input: { type: "object", properties: { a: { type: "number" } } } }, (args) => {
  same<typeof args, Record<string, unknown>>(true);
  return args["a"];
});
app.tool("raw", { input: jsonSchema<{ a: number }>({ type: "object" }) }, ({ a }) => {
  same<typeof a, number>(true);
  return a;
});

// Any Standard Schema will do, with an explicit JSON Schema when it cannot make one.
declare const foreign: StandardSchema<{ when: string }, { when: Date }>;
app.tool("foreign", { input: foreign, inputSchema: { type: "object" } }, ({ when }) => {
  same<typeof when, Date>(true);
  return when.toISOString();
});

// @ts-expect-error: the function is missing
app.tool("none", {});
// @ts-expect-error: hints are booleans
app.tool("hints", { annotations: { readOnlyHint: "yes" } }, () => 1);

async function client(): Promise<void> {
  await using client = await connect("node server.mjs", { requestTimeout: 1000 });
  const typed = await client.callTool<{ sum: number }>(
    "add",
    { a: 1 },
    { timeout: null, onProgress: ({ progress }) => void progress },
  );
  same<typeof typed, CallToolResult<{ sum: number }>>(true);
  same<typeof typed.structured, { sum: number } | undefined>(true);
  same<typeof typed.text, string>(true);
  const checked = await typed.to(z.object({ sum: z.string().transform(Number) }));
  same<typeof checked, { sum: number }>(true);
  const untyped = await client.callTool("add");
  same<typeof untyped.structured, unknown>(true);
  await connect({ command: "node", args: ["x"], env: { A: "1", B: null }, stderr: (line) => void line.length });
  await connect({ url: "http://127.0.0.1/mcp", headers: { a: "b" } });
  await connect(app, { revision: "2025-06-18" });
  // @ts-expect-error: neither a url nor a command
  await connect({ cmd: "node" });
  interface Args {
    readonly a: number;
  }
  const args: Args = { a: 1 };
  await client.callTool("add", args);
  await client.callToolTask("add", args);
  await client.getPrompt("add", args);
  await (null as unknown as ClientGroup).callTool("add", args);
  // @ts-expect-error: arguments are an object
  await client.callTool("add", new Map([["a", 1]]));
  // @ts-expect-error: arguments are an object
  await client.callTool("add", [1, 2]);
  same<Awaited<ReturnType<typeof withClient<number>>>, number>(true);
}
void client;

// A server says what a token is worth in one way.
app.principal((ctx) => ctx.request.headers["x-user"]).principal(async () => null);
// @ts-expect-error: text says whose a request is
app.principal(() => 7);
new Server("guarded", { auth: { issuer: "https://login.example.com", requiredScopes: ["mcp"], clockSkew: 1000 } });
new Server("guarded", {
  auth: {
    verifier: async (token) => (token === "a" ? new Principal("ada", { scopes: ["mcp"] }) : null),
    authorizationServers: ["https://login.example.com"],
  },
}).tool("who", { scopes: ["more"] }, (_, { principal }) => {
  same<typeof principal, Principal | undefined>(true);
  return principal?.hasScope("more");
});
// @ts-expect-error: two ways
new Server("guarded", { auth: { issuer: "https://login.example.com", verifier: () => null } });
// @ts-expect-error: where tokens are to be had
new Server("guarded", { auth: { verifier: () => null } });
// @ts-expect-error: a verifier makes a principal
new Server("guarded", { auth: { verifier: () => "ada", authorizationServers: [] } });

// A client logs in, by itself or with what the program gives.
async function authorized(store: TokenStore): Promise<void> {
  await connect("https://mcp.example.com/mcp", { auth: true });
  const auth: ClientAuth = { browser: (url) => void url.length, store, token: ({ issuer }) => issuer };
  const client = await connect("https://mcp.example.com/mcp", { auth });
  same<ReturnType<typeof client.authTrace>, AuthStep[]>(true);
  // @ts-expect-error: the protocol's own word
  await connect("https://mcp.example.com/mcp", { auth: { grant: "clientCredentials" } });
  // @ts-expect-error: no store
  await connect("https://mcp.example.com/mcp", { auth: { store: { load: () => null } } });
}
void authorized;

// A client asks over a `fetch` of whoever's.
async function fetching(own: typeof globalThis.fetch, wrapped: Fetch): Promise<void> {
  await connect("https://mcp.example.com/mcp", { fetch });
  await connect("https://mcp.example.com/mcp", { fetch: own });
  await connect("https://mcp.example.com/mcp", { fetch: wrapped });
  await connect("https://mcp.example.com/mcp", {
    fetch: async (url, init) => {
      same<typeof url, string>(true);
      same<typeof init.signal, AbortSignal>(true);
      return init.method === "GET" ? new Response(null, { status: 405 }) : Response.json({ url });
    },
  });
  await connect("https://mcp.example.com/mcp", {
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, "x-app": "7" } }),
  });
  await connect("https://mcp.example.com/mcp", {
    fetch: async (input: string | URL | Request, init?: RequestInit) => fetch(new Request(input, init)),
  });
  // @ts-expect-error: a text is no response
  await connect("https://mcp.example.com/mcp", { fetch: async () => "text" });
  // @ts-expect-error: nor is what has no headers
  await connect("https://mcp.example.com/mcp", { fetch: async () => ({ status: 200, body: null }) });
}
void fetching;
