// A server over standard streams, by hand: it asks, hangs, dies, and says what would hurt a page that took it for HTML.

import { createInterface } from "node:readline";

const HOSTILE = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 2'>";
const ESCAPES = "\u001b[31mred\u001b]0;title\u0007 \u202eesrever\u202c";

const schema = {
  type: "object",
  properties: {
    word: { type: "string", minLength: 2, description: "A word" },
    count: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    share: { type: "number" },
    loud: { type: "boolean" },
    language: { enum: ["en", "de"], description: "The language" },
    tags: { type: "array", items: { type: "string" } },
    sizes: { type: "array", minItems: 1, items: { enum: ["s", "m", "l"] } },
    place: { $ref: "#/$defs/place" },
    when: { anyOf: [{ type: "string", format: "date" }, { type: "null" }] },
    either: {
      oneOf: [
        { type: "integer", title: "a number" },
        { type: "object", properties: { id: { type: "string" } }, required: ["id"], title: "an object" },
      ],
    },
    anything: {},
  },
  required: ["word", "count"],
  $defs: {
    place: {
      type: "object",
      properties: { city: { type: "string" }, zip: { type: "string", maxLength: 5 } },
      required: ["city"],
    },
  },
};

const none = { type: "object", properties: {} };
const APP = `<!doctype html><title>app</title><p id="out">…</p><script>
let last = 0;
const waiting = new Map();
const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const ask = (method, params) => new Promise((done) => { waiting.set(++last, done); send({ id: last, method, params }); });
const found = {};
addEventListener("message", async ({ data }) => {
  if (data.id !== undefined && waiting.has(data.id)) return waiting.get(data.id)(data);
  if (data.method === "ui/notifications/tool-input") found.input = data.params.arguments;
  if (data.method !== "ui/notifications/tool-result") return;
  found.result = data.params.content[0].text;
  found.called = (await ask("tools/call", { name: "echo", arguments: { word: "from the app", count: 1 } })).result?.content?.[0]?.text;
  found.refused = (await ask("tools/call", { name: "hidden", arguments: {} })).error?.message;
  try { found.cookie = document.cookie; } catch { found.cookie = "refused"; }
  try { found.parent = parent.document.title; } catch { found.parent = "refused"; }
  try { await fetch(new URL("../events", location.href)); found.fetch = "done"; } catch { found.fetch = "refused"; }
  document.getElementById("out").textContent = JSON.stringify(found);
  send({ method: "ui/notifications/size-changed", params: { height: 123 } });
});
ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: "app", version: "1" }, appCapabilities: {} }).then((answer) => {
  found.host = answer.result.hostInfo.name;
  send({ method: "ui/notifications/initialized" });
});
</script>`;

const tools = [
  {
    name: "echo",
    title: "Echo",
    description: "Gives back what it gets.",
    inputSchema: schema,
    annotations: { readOnlyHint: true },
  },
  { name: "ask", description: "Asks for a name.", inputSchema: none },
  { name: "visit", description: "Asks to visit a page.", inputSchema: none },
  { name: "sample", description: "Asks a model.", inputSchema: none },
  { name: "roots", description: "Asks for the roots.", inputSchema: none },
  { name: "slow", description: "Takes until it is cancelled.", inputSchema: none },
  { name: "flood", description: "Tells a lot.", inputSchema: none },
  { name: "fail", description: "Fails.", inputSchema: none },
  { name: "die", description: "Ends the server.", inputSchema: none },
  {
    name: "hurt",
    title: HOSTILE,
    description: `${HOSTILE} ${ESCAPES} ${"long ".repeat(200_000)}`,
    inputSchema: { ...none, properties: { [HOSTILE]: { type: "string", description: HOSTILE, enum: [HOSTILE] } } },
  },
  {
    name: "map",
    description: "Shows a map.",
    inputSchema: { type: "object", properties: { city: { type: "string" } } },
    _meta: { ui: { resourceUri: "ui://map" } },
  },
  {
    name: "maze",
    description: `A schema without an end.\u200b${String.fromCodePoint(0xe0068, 0xe0069)}`,
    inputSchema: {
      type: "object",
      allOf: Array.from({ length: 19 }, () => ({ $ref: "#" })),
      properties: Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`p${at}`, { $ref: "#" }])),
    },
  },
  {
    name: "bent",
    description: "A reference that is none.",
    inputSchema: { ...none, properties: { word: { $ref: "#/$defs/%zz" } } },
  },
  { name: "hidden", description: "Not for apps.", inputSchema: none, _meta: { ui: { visibility: ["model"] } } },
];
const many = process.argv.includes("--many");
if (many)
  for (let at = 0; at < 10_000; at++)
    tools.push({ name: `tool-${at}`, description: `Tool number ${at}`, inputSchema: none });

const waiting = new Map();
let last = 0;
const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = `s${++last}`;
    waiting.set(id, resolve);
    write({ id, method, params });
  });
const text = (value) => ({
  content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }],
});
const slow = new Map();

async function call({ name, arguments: given, _meta }, id) {
  switch (name) {
    case "echo":
      return { ...text(given), structuredContent: given };
    case "ask":
      return text(
        (
          await ask("elicitation/create", {
            message: `Who are you? ${HOSTILE}`,
            requestedSchema: {
              type: "object",
              properties: {
                name: { type: "string", minLength: 2 },
                mail: { type: "string", format: "email" },
                colour: {
                  type: "string",
                  oneOf: [
                    { const: "r", title: "red" },
                    { const: "g", title: "green" },
                  ],
                },
                agrees: { type: "boolean", default: true },
              },
              required: ["name", "colour"],
            },
          })
        ).result,
      );
    case "visit":
      return text(
        (
          await ask("elicitation/create", {
            mode: "url",
            message: "Log in",
            url: "https://login.example.com/path?x=1",
            elicitationId: "e1",
          })
        ).result,
      );
    case "sample": {
      const answer = await ask("sampling/createMessage", {
        messages: [{ role: "user", content: { type: "text", text: `What is it? ${HOSTILE}` } }],
        systemPrompt: "Be brief.",
        maxTokens: 10,
      });
      return text(answer.result ?? answer.error);
    }
    case "roots":
      return text((await ask("roots/list", {})).result);
    case "slow":
      process.stderr.write("slow begins\n");
      for (let at = 1; at <= 3; at++)
        write({
          method: "notifications/progress",
          params: { progressToken: _meta?.progressToken, progress: at, total: 10, message: `step ${at}` },
        });
      return new Promise((resolve) => slow.set(id, resolve));
    case "flood":
      for (let at = 0; at < 6000; at++)
        write({ method: "notifications/message", params: { level: "info", data: `message ${at}` } });
      // All of it is on its way before.
      await new Promise((resolve) => {
        process.stdout.write("", resolve);
      });
      process.stderr.write(`the token is ${process.env.TOKEN}\n`);
      return text("told");
    case "fail":
      return { ...text("it did not work"), isError: true };
    case "die":
      process.stderr.write("dying\n");
      return process.exit(3);
    case "hurt":
      process.stderr.write(`${HOSTILE} ${ESCAPES}\n`);
      write({ method: "notifications/message", params: { level: "error", data: HOSTILE } });
      return {
        content: [
          { type: "text", text: `${HOSTILE} ${ESCAPES}` },
          { type: "image", mimeType: 'image/svg+xml"><script>', data: "AAAA" },
          { type: "resource_link", uri: "javascript:alert(1)", name: HOSTILE },
          { type: HOSTILE },
        ],
        structuredContent: { [HOSTILE]: HOSTILE },
      };
    case "map":
      return text(`the map of ${given?.city}`);
    default:
      return text(`called ${name}`);
  }
}

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion === "2025-11-25" ? protocolVersion : "2025-11-25",
    capabilities: { tools: {}, resources: {}, prompts: {}, completions: {}, logging: {} },
    serverInfo: { name: "by-hand", version: "1.0.0", title: `By hand ${HOSTILE}` },
    instructions: HOSTILE,
  }),
  ping: () => ({}),
  "logging/setLevel": () => ({}),
  "tools/list": ({ cursor }) => {
    const at = Number(cursor ?? 0);
    return {
      tools: tools.slice(at, at + 2500),
      ...(at + 2500 < tools.length ? { nextCursor: String(at + 2500) } : {}),
    };
  },
  "tools/call": call,
  "resources/list": () => ({
    resources: [
      { uri: "note://1", name: "note", title: HOSTILE, mimeType: "text/html" },
      { uri: "ui://map", name: "map", mimeType: "text/html;profile=mcp-app" },
    ],
  }),
  "resources/templates/list": () => ({
    resourceTemplates: [{ uriTemplate: "repo://{owner}/{name}{?page}", name: "repository" }],
  }),
  "resources/read": ({ uri }) =>
    uri === "ui://map"
      ? {
          contents: [
            {
              uri,
              mimeType: "text/html;profile=mcp-app",
              text: APP,
              _meta: { ui: { csp: { connectDomains: ["https://api.example.com"] } } },
            },
          ],
        }
      : { contents: [{ uri, mimeType: "text/html", text: `${HOSTILE} ${uri}` }] },
  "prompts/list": () => ({
    prompts: [
      { name: "greet", description: HOSTILE, arguments: [{ name: "who", required: true, description: "Whom" }] },
    ],
  }),
  "prompts/get": ({ arguments: given }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${given.who}` } }],
  }),
  "completion/complete": ({ argument }) => ({
    completion: { values: ["ada", "alan", "bob"].filter((name) => name.startsWith(argument.value)) },
  }),
};

process.stderr.write("ready to serve\n");
createInterface({ input: process.stdin })
  .on("line", async (text) => {
    const message = JSON.parse(text);
    if (message.method === "notifications/cancelled") {
      slow.get(message.params.requestId)?.({ content: [] });
      process.stderr.write(`cancelled ${message.params.requestId}\n`);
      return;
    }
    if (message.method === undefined) {
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
      return;
    }
    if (message.id === undefined) return;
    const answer = answers[message.method];
    if (!answer) return write({ id: message.id, error: { code: -32601, message: `no ${message.method}` } });
    write({ id: message.id, result: await answer(message.params ?? {}, message.id) });
  })
  .on("close", () => process.exit(0));
