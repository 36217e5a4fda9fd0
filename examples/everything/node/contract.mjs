// The tools of tests/cases/FIXTURES.md, in its order.
import { setTimeout as sleep } from "node:timers/promises";
import { audio, image, RpcError, resource, resourceLink, ToolError, text } from "tricorn";
import { z } from "zod";
import { PNG, WAV } from "./media.mjs";
import { plain } from "./plain.mjs";

const echo = {
  title: "Echo",
  description: "Return the text unchanged",
  input: {
    type: "object",
    properties: { text: { type: "string", description: "What to say" } },
    required: ["text"],
    additionalProperties: false,
  },
  annotations: {
    title: "Echo (hint)",
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
  icons: [{ src: "https://example.com/echo.png", mimeType: "image/png", sizes: ["48x48", "any"], theme: "dark" }],
  meta: { "com.example/color": "blue" },
};

const structured = {
  description: "A weather report",
  input: { type: "object", properties: { city: { type: "string", minLength: 1 } }, required: ["city"] },
  output: {
    type: "object",
    properties: { city: { type: "string" }, temperature: { type: "number" }, conditions: { type: "string" } },
    required: ["city", "temperature", "conditions"],
  },
};

const structuredInvalid = {
  description: "Breaks its own output schema",
  input: { type: "object" },
  output: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
};

const anyValue = {
  description: "Return any JSON value",
  input: { type: "object", properties: { value: {} }, required: ["value"] },
  output: { type: ["object", "array", "string", "number", "boolean", "null"] },
};

const draft7 = {
  description: "Arguments described in draft-07",
  input: {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    definitions: { label: { type: "string", maxLength: 3 } },
    properties: {
      pair: { type: "array", items: [{ $ref: "#/definitions/label" }, { type: "integer" }], additionalItems: false },
    },
    required: ["pair"],
  },
};

const allContent = () => [
  text("one", {
    annotations: { audience: ["user"], priority: 0.5, lastModified: "2025-01-12T15:00:58Z" },
    meta: { "com.example/n": 1 },
  }),
  image(PNG, "image/png"),
  audio(WAV, "audio/wav"),
  resourceLink({
    uri: "test://linked",
    name: "linked",
    title: "Linked",
    description: "A link",
    mimeType: "text/plain",
    size: 3,
  }),
  resource("test://text", "abc", "text/plain"),
  resource("test://blob", Uint8Array.of(0, 1, 2), "application/octet-stream"),
  text("last"),
];

function fail({ kind }) {
  switch (kind) {
    case "tool":
      throw new ToolError("the tool says no");
    case "exception":
      throw new Error("secret detail");
    case "protocol":
      throw new RpcError(4242, "custom refusal", { hint: "try another kind" });
    default:
      return "no failure";
  }
}

/** `taskSupport` is that of `slow`. */
export function addContractTools(app, taskSupport) {
  const counts = { started: 0, cancelled: 0, finished: 0 };

  const slow = async ({ ms }, ctx) => {
    counts.started++;
    ctx.progress(0, ms, "started");
    try {
      await sleep(ms, undefined, { signal: ctx.signal });
    } catch (error) {
      counts.cancelled++;
      throw error;
    }
    counts.finished++;
    ctx.progress(ms, ms, "done");
    return `slept ${ms} ms`;
  };

  app.tool(
    "add",
    { description: "Add two integers", input: plain(z.object({ a: z.int(), b: z.int() })), output: plain(z.int()) },
    ({ a, b }) => a + b,
  );
  app.tool("echo", echo, (args) => args.text);
  app.tool("slow", { description: "Wait, cancellably", input: plain(z.object({ ms: z.int() })), taskSupport }, slow);
  app.tool("fail", { description: "Fail in one of three ways", input: plain(z.object({ kind: z.string() })) }, fail);
  app.tool("all_content", { description: "Every kind of content" }, allContent);
  app.tool("structured", structured, ({ city }) => ({ city, temperature: 22.5, conditions: "sunny" }));
  app.tool("structured_invalid", structuredInvalid, () => ({ n: "not a number" }));
  app.tool("any_value", anyValue, ({ value }) => value);
  app.tool("context", { description: "What is known about this request" }, (_, ctx) => ctx.request.raw);
  app.tool("draft7", draft7, () => "draft7 ok");
  app.tool("empty", { description: "Return nothing" }, () => undefined);
  app.tool("print", { description: "Print carelessly", input: plain(z.object({ text: z.string() })) }, (args) => {
    // biome-ignore lint/suspicious/noConsole: printing to stdout is what this fixture is for.
    console.log(args.text);
    return "printed";
  });
  app.tool(
    "count",
    { description: "Report each number up to this one", input: plain(z.object({ to: z.int() })) },
    ({ to }, ctx) => {
      for (let n = 1; n <= to; n++) ctx.progress(n, to);
      return `counted to ${to}`;
    },
  );
  app.tool(
    "touch",
    { description: "Say that a resource has changed", input: plain(z.object({ uri: z.string() })) },
    (args) => {
      app.resourceUpdated(args.uri);
      return `touched ${args.uri}`;
    },
  );
  app.tool("roots", { description: "The URIs of the client's roots" }, async (_, ctx) =>
    (await ctx.listRoots()).map((root) => root.uri).join(" "),
  );
  app.tool("test_metrics", { description: "Gauges of this server" }, () => ({
    server: app.metrics(),
    slow: { ...counts, running: counts.started - counts.finished - counts.cancelled },
  }));
}
