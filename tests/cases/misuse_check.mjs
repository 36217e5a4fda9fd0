// Makes the wrong uses of misuse.json with the public Node API and compares what they throw, text by text.
//
// `misuse_check.mjs [--dist DIST]` checks, `misuse_check.mjs --print [FILE]` prints the texts as JSON, by the names of
// the cases. DIST is the built package (default: bindings-node/dist).

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const LANGUAGE = "node";
const here = dirname(fileURLToPath(import.meta.url));
const { values, positionals } = parseArgs({
  options: { dist: { type: "string" }, print: { type: "boolean" } },
  allowPositionals: true,
});
const dist = resolve(values.dist ?? join(here, "../../bindings-node/dist"));
const tricorn = await import(pathToFileURL(join(dist, "index.js")).href);
const { connect, connectMany, Extension, Principal, Question, RpcError, Server, TricornError } = tricorn;
const { cases, seconds } = JSON.parse(readFileSync(positionals[0] ?? join(here, "misuse.json"), "utf8"));

/** A URL where nothing listens: options of HTTP are refused before a connection is made. */
const URL = "http://127.0.0.1:9/mcp";
/** Options that have options of their own. */
const NESTED = new Set([
  "auth",
  "cache",
  "tasks",
  "introspection",
  "discover",
  "tools",
  "prompts",
  "resources",
  "read",
]);

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Options as this language has them: names in camelCase, times in milliseconds. */
function ours(options) {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => {
      if (seconds.includes(name) && typeof value === "number") return [camel(name), value * 1000];
      return [camel(name), NESTED.has(name) && isObject(value) ? ours(value) : value];
    }),
  );
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const WORDS = {
  u: "milliseconds",
  s: escaped("a JSON Schema, or a schema such as z.object({ … })"),
  all: "\\w+(?:, \\w+)+",
  any: ".*",
};

/** The expected text as this language has it: names of options in camelCase, times in milliseconds. */
function rendered(text) {
  const parts = text.split(/(\{(?:[otn]:[^}]*|u|s|all|any)\})/);
  const pattern = parts.map((part, at) => {
    if (at % 2 === 0) return escaped(part);
    const [, kind, value] = /^\{(\w+):?(.*)\}$/.exec(part);
    if (kind === "o") return camel(value);
    return WORDS[kind] ?? escaped(`${Number(value) * 1000}${kind === "t" ? " ms" : ""}`);
  });
  return new RegExp(`^${pattern.join("")}$`, "s");
}

/** Makes a server with one of everything. */
function demo(options) {
  const server = new Server("demo", options);
  server.tool("add", () => 3);
  server.tool("slow", () => new Promise(() => {}));
  server.prompt("hello", () => "Hello");
  server.resource("notes://1", { name: "one" }, "One");
  return server;
}

const make = {
  async server(options) {
    await (await connect(new Server("demo", options))).close();
  },
  async client(options, { target }) {
    await (await connect(target ?? demo(), options)).close();
  },
  async http(options) {
    await (await demo().listen({ port: 0, ...options })).close();
  },
  async server_auth(auth) {
    await (await demo({ auth }).listen({ port: 0 })).close();
  },
  async auth(auth) {
    await (await connect(URL, { auth })).close();
  },
  tool: ({ name, ...options }) => demo().tool(name, options, () => "done"),
  prompt: ({ name, ...options }) => demo().prompt(name, options, ({ code }) => code),
  resource: ({ uri, ...options }) => demo().resource(uri, options, /\{number/.test(uri) ? () => "text" : "text"),
  async group(options) {
    await (await connectMany({ one: { url: URL } }, options)).close();
  },
  middleware: (options, { call }) => new Server("demo").middleware(middleware[call](options)),
  task: (tasks) => new Server("demo", { tasks }),
  extension({ id, settings, method, notification, member }) {
    const extension = new Extension(id, settings);
    if (method !== undefined) extension.method(method, () => ({}));
    if (notification !== undefined) extension.notification(notification, member);
    demo().addExtension(extension);
  },
  principal: ({ subject, ...details }) => new Principal(subject, details),
  error({ code, message }) {
    throw new RpcError(code, message);
  },
  question: ({ message, schema }) => Question.elicit(message, schema),
  async trace(traceContext) {
    const client = await connect(demo());
    await client.listTools({ traceContext }).finally(() => client.close());
  },
  on_server(_, { call, arguments: args }) {
    const server = demo();
    server.addExtension(new Extension("com.example/x"));
    return server[camel(call)](...args);
  },
  async request(options, { call, arguments: args, client: own = {} }) {
    const client = await connect(demo(), ours(own));
    try {
      if (call === "listen") await client.listen(options).honoured;
      else await client[camel(call)](...args, ...(Object.keys(options).length > 0 ? [options] : []));
    } finally {
      await client.close();
    }
  },
};

const middleware = {
  rate_limit: ({ perSecond, ...options }) => tricorn.rateLimit(perSecond, options),
  concurrency_limit: ({ max, ...options }) => tricorn.concurrencyLimit(max, options),
};

/** Returns the text of the error that a case ends with. */
async function told(row) {
  try {
    await make[row.make](ours(row.options ?? {}), row);
  } catch (error) {
    if (error instanceof TricornError && error.kind !== "misuse") return `${error.kind}: ${error.message}`;
    return error instanceof TricornError ? error.message : `${error.name}: ${error.message}`;
  }
  return "(nothing was refused)";
}

process.removeAllListeners("warning");
const texts = {};
for (const row of cases) {
  const isSkipped = Object.keys(row.skip ?? {}).some((languages) => languages.split(",").includes(LANGUAGE));
  if (!isSkipped) texts[row.name] = await told(row);
}
if (values.print) {
  process.stdout.write(`${JSON.stringify(texts, undefined, 1)}\n`);
} else {
  let failed = 0;
  for (const { name, error } of cases) {
    const got = texts[name];
    if (got === undefined || rendered(error).test(got)) continue;
    failed++;
    process.stdout.write(`${name}:\n  expected ${error}\n  got      ${got}\n`);
  }
  process.stdout.write(`${LANGUAGE}: ${Object.keys(texts).length} cases, ${failed} failed\n`);
  process.exitCode = failed > 0 ? 1 : 0;
}
