// Tools as users write them, seen by a client in the same process.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  audio,
  CancelledError,
  image,
  isSafeIcon,
  jsonSchema,
  MisuseError,
  RpcError,
  resource,
  resourceLink,
  result,
  Server,
  ToolError,
  text,
} from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";

const quiet = { onError: () => {} };

test("plain values become results", async () => {
  const app = new Server("values")
    .tool("text", () => "plain")
    .tool("number", () => 3)
    .tool("object", async () => ({ a: [1, null, "é"] }))
    .tool("list", () => [1, 2])
    .tool("nothing", () => undefined)
    .tool("null", () => null)
    .tool("date", () => new Date(0));
  await withClient(app, async (client) => {
    const raw = async (name) => (await client.callTool(name)).raw;
    assert.deepEqual((await raw("text")).content, [{ type: "text", text: "plain" }]);
    assert.deepEqual((await raw("number")).content, [{ type: "text", text: "3" }]);
    const object = await client.callTool("object");
    assert.deepEqual(object.structured, { a: [1, null, "é"] });
    assert.equal(object.text, '{"a":[1,null,"é"]}');
    assert.equal(object.isError, false);
    assert.deepEqual((await raw("list")).content, [{ type: "text", text: "[1,2]" }]);
    assert.deepEqual((await raw("nothing")).content, []);
    assert.deepEqual((await raw("null")).content, []);
    assert.equal((await client.callTool("date")).text, "1970-01-01T00:00:00.000Z");
  });
});

test("content and whole results pass as they are", async () => {
  const whole = { content: [{ type: "text", text: "by hand" }], isError: true, _meta: { "com.example/a": 1 } };
  const app = new Server("content")
    .tool("image", () => image(Uint8Array.of(0, 1, 2), "image/png"))
    .tool("several", () => [
      text("a", { annotations: { priority: 1 }, meta: { "com.example/b": 2 } }),
      audio("AAAA", "audio/wav"),
      resource("test://t", "abc", "text/plain"),
      resource("test://b", Uint8Array.of(255)),
      resourceLink({ uri: "test://l", name: "l" }),
    ])
    .tool("by hand", () => whole)
    .tool("result", () => result({ content: [text("x")], structured: { y: 1 }, meta: { "com.example/z": 0 } }))
    .tool("lookalike", () => [{ type: "text", text: "a plain value" }]);
  await withClient(app, async (client) => {
    assert.deepEqual((await client.callTool("image")).content, [
      { type: "image", data: "AAEC", mimeType: "image/png" },
    ]);
    assert.deepEqual((await client.callTool("several")).content, [
      { type: "text", text: "a", annotations: { priority: 1 }, _meta: { "com.example/b": 2 } },
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "test://t", mimeType: "text/plain", text: "abc" } },
      { type: "resource", resource: { uri: "test://b", blob: "/w==" } },
      { type: "resource_link", uri: "test://l", name: "l" },
    ]);
    const hand = await client.callTool("by hand");
    assert.deepEqual(hand.content, whole.content);
    assert.equal(hand.isError, true);
    assert.equal(hand.meta["com.example/a"], 1);
    const made = await client.callTool("result");
    assert.deepEqual(made.structured, { y: 1 });
    assert.equal(made.meta["com.example/z"], 0);
    assert.equal((await client.callTool("lookalike")).text, '[{"type":"text","text":"a plain value"}]');
  });
});

test("a list with a block in it is a list of blocks", async () => {
  const dot = image(Uint8Array.of(1), "image/png");
  const blocks = (...texts) => texts.map((one) => ({ type: "text", text: one }));
  const app = new Server("blocks")
    .tool("text", () => ["hello", dot])
    .tool("by hand", () => [dot, { type: "text", text: "x" }])
    .tool("result", () => ({ content: ["hello", dot], isError: true }))
    .tool("made result", () => result({ content: ["hello", dot] }))
    .tool("text by hand", () => ({ content: ["hello", { type: "text", text: "x" }] }))
    .tool("others", () => [dot, { a: 1 }, 5, null, undefined])
    .tool("declared", { output: jsonSchema({ type: "array" }) }, () => result({ content: ["a", dot], structured: [] }))
    .tool("no block", () => ["hello", { type: "text", text: "x" }])
    .tool("texts", () => ({ content: ["hello"] }))
    .tool("empty", () => []);
  await withClient(app, async (client) => {
    const content = async (name) => (await client.callTool(name)).content;
    const picture = { type: "image", data: "AQ==", mimeType: "image/png" };
    assert.deepEqual(await content("text"), [...blocks("hello"), picture]);
    assert.deepEqual(await content("by hand"), [picture, ...blocks("x")]);
    const whole = await client.callTool("result");
    assert.deepEqual(
      [whole.content, whole.isError, whole.structured],
      [[...blocks("hello"), picture], true, undefined],
    );
    assert.deepEqual(await content("made result"), [...blocks("hello"), picture]);
    assert.deepEqual(await content("text by hand"), blocks("hello", "x"));
    assert.deepEqual(await content("others"), [picture, ...blocks('{"a":1}', "5", "null", "null")]);
    assert.deepEqual(await content("declared"), [...blocks("a"), picture]);
    assert.deepEqual(await content("no block"), blocks('["hello",{"type":"text","text":"x"}]'));
    assert.deepEqual((await client.callTool("texts")).structured, { content: ["hello"] });
    assert.deepEqual(await content("empty"), blocks("[]"));
  });
});

test("blocks and results that are none are refused when they are made", () => {
  for (const [make, message] of [
    [() => text(5), /^text: expected text, got a number: give String/],
    [() => image("/tmp/x.png", "image/png"), /^image: data: expected .*got "\/tmp\/x\.png": read the file/],
    [() => image("data:image/png;base64,AAAA", "image/png"), /give what is after "base64,"/],
    [() => image("A=A=", "image/png"), /base64 text/],
    [() => image(5, "image/png"), /^image: data: expected bytes, or base64 text, got a number/],
    [() => image("AAAA"), /^image: mimeType: expected text, such as "image\/png", got undefined/],
    [() => audio("a sound", 5), /^audio: mimeType/],
    [() => resource("test://r", 5), /^resource: contents: expected text, or bytes, got a number/],
    [() => resource(5, "x"), /^resource: uri: expected text, got a number/],
    [() => resource("test://r", "x", 5), /^resource: mimeType/],
    [() => resourceLink({ uri: "test://r" }), /^resourceLink: name: expected text, got undefined/],
    [() => resourceLink(undefined), /^resourceLink: uri/],
    [() => result({ content: "hello" }), /^result: content: expected a list of blocks, got a string: give \[text/],
    [() => result({ content: [5] }), /^result: content\[0\]: expected a content block, such as text/],
    [() => result({ content: [text("a"), { type: "text" }] }), /^result: content\[1\]\.text: expected text/],
    [() => result({ content: [{}] }), /^result: content\[0\]: expected a content block/],
  ]) {
    assert.throws(make, (error) => {
      assert.ok(error instanceof MisuseError);
      assert.match(error.message, message);
      return true;
    });
  }
  // Base64 as others write it, and what may come later.
  image("AA\nAA-_=\n", "image/png");
  assert.deepEqual(result({ content: [{ type: "video" }] }).content, [{ type: "video" }]);
  assert.equal(resource(new URL("test://r"), "x").resource.uri, "test://r");
});

test("arguments are validated, defaulted and transformed before the handler runs", async () => {
  let ran = 0;
  const input = z.object({
    a: z.int(),
    b: z.string().default("x"),
    even: z
      .number()
      .refine((n) => n % 2 === 0, "must be even")
      .optional(),
    list: z.array(z.string().transform((item) => item.toUpperCase())).optional(),
  });
  const app = new Server("arguments").tool("f", { input }, (args) => {
    ran++;
    return args;
  });
  await withClient(app, async (client) => {
    assert.deepEqual((await client.callTool("f", { a: 1, list: ["q"] })).structured, { a: 1, b: "x", list: ["Q"] });
    const wrong = async (args) => {
      const answer = await client.callTool("f", args);
      assert.equal(answer.isError, true);
      return answer.text;
    };
    assert.equal(await wrong({ a: "x" }), 'argument "a": Invalid input: expected number, received string');
    assert.equal(await wrong({}), 'argument "a": Invalid input: expected number, received undefined');
    // What JSON Schema cannot say comes from the library, in the same shape.
    assert.equal(await wrong({ a: 1, even: 3 }), 'argument "even": must be even');
    assert.equal(ran, 1);
  });
});

test("asynchronous validation works", async () => {
  const input = z.object({ a: z.string().refine(async (a) => a !== "bad", "is bad") });
  const app = new Server("async").tool("f", { input }, ({ a }) => a);
  await withClient(app, async (client) => {
    assert.equal((await client.callTool("f", { a: "good" })).text, "good");
    assert.equal((await client.callTool("f", { a: "bad" })).text, 'argument "a": is bad');
  });
});

test("a declared output is sent as structured content and checked", async () => {
  const output = z.object({ sum: z.number() });
  const app = new Server("output", quiet)
    .tool("good", { output }, () => ({ sum: 3 }))
    .tool("bad", { output }, () => ({ sum: "3" }))
    .tool("own result", { output }, () => result({ content: [text("three")], structured: { sum: 3 } }))
    .tool("content-like", { output: jsonSchema({ type: "object" }) }, () => ({ content: [{ type: "a" }] }));
  await withClient(app, async (client) => {
    const [good] = await client.listTools();
    assert.deepEqual(good.outputSchema.required, ["sum"]);
    assert.deepEqual((await client.callTool("good")).structured, { sum: 3 });
    assert.equal((await client.callTool("bad")).isError, true);
    assert.equal((await client.callTool("own result")).text, "three");
    assert.deepEqual((await client.callTool("content-like")).structured, { content: [{ type: "a" }] });
  });
});

test("failures: what the model sees, what the log sees", async () => {
  const seen = [];
  class PrivateError extends Error {}
  const app = new Server("failures", { onError: (error, tool) => seen.push([tool, error]) })
    .tool("tool error", () => {
      throw new ToolError("try b");
    })
    .tool("exception", async () => {
      throw new TypeError("secret");
    })
    .tool("own class", () => {
      throw new PrivateError("secret");
    })
    .tool("thrown text", () => {
      throw "secret";
    })
    .tool("not json", () => 1n)
    .tool("function", () => () => 1)
    .tool("protocol", () => {
      throw new RpcError(4242, "refused", { hint: 1 });
    });
  await withClient(app, async (client) => {
    const failed = async (name) => {
      const answer = await client.callTool(name);
      assert.equal(answer.isError, true);
      return answer.text;
    };
    assert.equal(await failed("tool error"), "try b");
    assert.equal(await failed("exception"), 'tool "exception" failed: TypeError');
    assert.equal(await failed("own class"), 'tool "own class" failed: PrivateError');
    assert.equal(await failed("thrown text"), 'tool "thrown text" failed: string');
    assert.equal(await failed("not json"), 'tool "not json" failed: TypeError');
    assert.equal(await failed("function"), 'tool "function" failed: TypeError');
    await assert.rejects(client.callTool("protocol"), (error) => {
      assert.ok(error instanceof RpcError);
      assert.deepEqual([error.code, error.message, error.data], [4242, "refused", { hint: 1 }]);
      return true;
    });
  });
  assert.deepEqual(seen.map(([tool, error]) => `${tool}: ${error.message ?? error}`).slice(0, 3), [
    "exception: secret",
    "own class: secret",
    "thrown text: secret",
  ]);
  assert.equal(seen.length, 5);
});

test("the definition of a tool arrives without loss", async () => {
  const input = {
    type: "object",
    properties: { z: { type: "string", "x-own": { deep: [1, 2] } }, a: { type: "integer" } },
    required: ["z"],
  };
  const app = new Server("definition").tool(
    "t",
    {
      title: "T",
      description: "d",
      input,
      annotations: { readOnlyHint: true },
      icons: [{ src: "https://example.com/i.png", theme: "dark" }],
      meta: { "com.example/x": { y: 1 } },
    },
    () => "",
  );
  await withClient(app, async (client) => {
    const [tool] = await client.listTools();
    assert.equal(JSON.stringify(tool.inputSchema), JSON.stringify(input));
    assert.deepEqual([tool.title, tool.description, tool.annotations], ["T", "d", { readOnlyHint: true }]);
    assert.deepEqual(tool.icons, [{ src: "https://example.com/i.png", theme: "dark" }]);
    assert.deepEqual(tool._meta, { "com.example/x": { y: 1 } });
  });
});

test("what is wrong about a tool is said when it is added", () => {
  const app = new Server("wrong");
  const misuse = (add, message) =>
    assert.throws(add, (error) => error instanceof MisuseError && message.test(error.message));
  misuse(
    () => app.tool("date", { input: z.object({ d: z.date() }) }, () => 1),
    /tool "date" input: .*coerce\.date\(\)/,
  );
  misuse(
    () => app.tool("map", { input: z.object({ m: z.map(z.string(), z.int()) }) }, () => 1),
    /tool "map" input: .*pass inputSchema/,
  );
  misuse(() => app.tool("none", {}), /the function/);
  misuse(() => app.tool("schema", { input: { type: 7 } }, () => 1), /schema/);
  misuse(() => new Server("options", { pageSise: 1 }), /pageSise.*pageSize/);
});

test("options that do not exist are refused, with the name that was meant", () => {
  const app = new Server("options");
  for (const [add, message] of [
    [() => app.tool("a", { titel: "A" }, () => 1), 'tool "a": unknown option "titel", did you mean "title"?'],
    [
      () => app.tool("a", { input_schema: {} }, () => 1),
      'tool "a": unknown option "input_schema", did you mean "inputSchema"?',
    ],
    [
      () => app.resource("x://a", { mimetype: "a/b" }, ""),
      'resource "x://a": unknown option "mimetype", did you mean "mimeType"?',
    ],
    [
      () => app.resource("x://{a}", { icon: [] }, () => ""),
      'resource template "x://{a}": unknown option "icon", did you mean "icons"?',
    ],
    [() => app.prompt("a", { _meta: {} }, () => ""), 'prompt "a": unknown option "_meta", did you mean "meta"?'],
  ]) {
    assert.throws(add, { name: "MisuseError", message });
  }
  app.tool("a", { unknown: undefined }, () => 1);
});

test("icons that a client may load", () => {
  for (const src of ["https://example.com/a.png", "data:image/png;base64,AAAA"]) assert.equal(isSafeIcon(src), true);
  for (const src of ["http://example.com/a.png", "javascript:alert(1)", "file:///a.png", "data:text/html,x", ""]) {
    assert.equal(isSafeIcon(src), false, src);
  }
});

test("context: the request, progress, capabilities", async () => {
  const app = new Server("context")
    .tool("request", (_, ctx) => ctx.request)
    .tool("progress", (_, ctx) => [ctx.progress(1, 2, "half"), ctx.progress(2, 2)])
    .tool("require", (_, ctx) => ctx.require("sampling"))
    .tool("keep", (_, ctx) => {
      kept = ctx;
    });
  let kept;
  await withClient(
    app,
    async (client) => {
      const { structured } = await client.callTool("request", {}, { meta: { "com.example/a": "b" } });
      assert.equal(structured.method, "tools/call");
      assert.equal(structured.protocolVersion, client.protocolVersion);
      assert.equal(structured.era, client.era);
      assert.equal(structured.transport, "memory");
      assert.equal(structured.clientInfo.name, "probe");
      assert.equal(structured.meta["com.example/a"], "b");
      const heard = [];
      await client.callTool("progress", {}, { onProgress: (progress) => heard.push(progress) });
      assert.deepEqual(
        heard.map(({ progress, total, message }) => [progress, total, message]),
        [
          [1, 2, "half"],
          [2, 2, undefined],
        ],
      );
      await assert.rejects(client.callTool("require"), RpcError);
      await client.callTool("keep");
      assert.throws(() => kept.request, /finished/);
      assert.equal(kept.progress(1), false);
      assert.equal(kept.log("error", "too late"), false);
      assert.throws(() => kept.runAsTask(), CancelledError);
    },
    { name: "probe" },
  );
});

test("context: arguments of the wrong type are named", async () => {
  const app = new Server("types").tool("check", (_, ctx) =>
    [
      () => ctx.progress("1"),
      () => ctx.progress(Number.NaN),
      () => ctx.progress(3, "x"),
      () => ctx.progress(3, 4, 5),
      () => ctx.log(20, "x"),
      () => ctx.log("info", "x", 5),
      () => ctx.setStatus({}),
      () => ctx.require(1),
      () => ctx.notify(1),
      () => ctx.setEnabled("tool", "check", "yes"),
    ].map((call) => {
      try {
        return String(call());
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
    }),
  );
  await withClient(app, async (client) => {
    assert.deepEqual(JSON.parse((await client.callTool("check")).text), [
      'MisuseError: progress: progress: expected a number, got "1"',
      "MisuseError: progress: progress: expected a number, got NaN",
      'MisuseError: progress: total: expected a number, got "x"',
      "MisuseError: progress: message: expected a string, got 5",
      "MisuseError: log: level: expected a string, got 20",
      "MisuseError: log: logger: expected a string, got 5",
      "MisuseError: setStatus: message: expected a string, got an object",
      "MisuseError: require: capability: expected a string, got 1",
      "MisuseError: notify: method: expected a string, got 1",
      'MisuseError: setEnabled: enabled: expected a boolean, got "yes"',
    ]);
  });
});

test("a number that is none has no place in a result", async () => {
  const heard = [];
  const app = new Server("numbers", { onError: (error) => heard.push(`${error.name}: ${error.message}`) })
    .tool("alone", () => Number.NaN)
    .tool("inside", async () => ({ rows: [{ n: 1 }, { n: null, of: Number.POSITIVE_INFINITY }] }))
    .tool("list", () => [0, Number.NEGATIVE_INFINITY])
    .tool("typed", { output: z.object({ n: z.any() }) }, () => ({ n: Number.NaN }))
    .tool("whole", () => result({ structured: { n: Number.NaN } }))
    .tool("fine", () => ({ a: null, b: "null" }))
    .resource("a://n", () => ({ n: Number.NaN }))
    .prompt("n", () => ({
      messages: [{ role: "user", content: { type: "text", text: "x", _meta: { n: Number.NaN } } }],
    }));
  await withClient(app, async (client) => {
    for (const name of ["alone", "inside", "list", "typed", "whole"]) {
      const { isError, text } = await client.callTool(name);
      assert.deepEqual([isError, text], [true, `tool "${name}" failed: TypeError`]);
    }
    assert.deepEqual((await client.callTool("fine")).structured, { a: null, b: "null" });
    await assert.rejects(client.readResource("a://n"), RpcError);
    await assert.rejects(client.getPrompt("n"), RpcError);
    await assert.rejects(client.callTool("fine", { deep: [Number.NaN] }), /"arguments\.deep\[0\]": NaN is not JSON/);
  });
  assert.deepEqual(heard, [
    "TypeError: NaN is not JSON",
    'TypeError: "rows[1].of": Infinity is not JSON',
    'TypeError: "[1]": -Infinity is not JSON',
    'TypeError: "n": NaN is not JSON',
    'TypeError: "structuredContent.n": NaN is not JSON',
    'TypeError: "n": NaN is not JSON',
    'TypeError: "messages[0].content._meta.n": NaN is not JSON',
  ]);
});

test("a result with null in it is made JSON once", async (t) => {
  let asked = 0;
  const own = {
    hidden: Number.NaN,
    toJSON() {
      asked++;
      return { n: null };
    },
  };
  own.self = own;
  const value = { own, none: null, rows: [[1, null], ["null"]] };
  const { mock } = t.mock.method(JSON, "stringify");
  const app = new Server("once").tool("f", () => value);
  await withClient(app, async (client) => {
    const { structured } = await client.callTool("f");
    assert.deepEqual(structured, { own: { n: null }, none: null, rows: [[1, null], ["null"]] });
  });
  assert.deepEqual([mock.calls.filter((call) => call.arguments[0] === value).length, asked], [1, 1]);
});

test("a removed tool is gone, a tool added later is there", async () => {
  const app = new Server("changes").tool("a", () => "a");
  await withClient(app, async (client) => {
    app.tool("b", () => "b");
    assert.equal((await client.callTool("b")).text, "b");
    assert.equal(app.removeTool("a"), true);
    assert.equal(app.removeTool("a"), false);
    assert.deepEqual(
      (await client.listTools()).map((tool) => tool.name),
      ["b"],
    );
    await assert.rejects(client.callTool("a"), RpcError);
  });
});

test("a thousand calls at once all get their own answer, and nothing is left", async () => {
  const app = new Server("many", { maxInFlight: 1000 }).tool("f", async ({ n }) => n * 2).tool("g", ({ n }) => n * 3);
  const many = async (client) => {
    const calls = Array.from({ length: 1000 }, (_, n) => client.callTool(n % 2 ? "f" : "g", { n }));
    const texts = (await Promise.all(calls)).map((answer) => Number(answer.text));
    assert.deepEqual(
      texts,
      Array.from({ length: 1000 }, (_, n) => (n % 2 ? n * 2 : n * 3)),
    );
  };
  await withClient(app, many, { maxInFlight: 1000 });
  assert.deepEqual(bridgeMetrics(), { queued: 0, calls: 0, ops: 0, dropped: 0 });
});
