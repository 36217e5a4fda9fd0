// Resources and templates as users write them, read by a client in the same process, in both eras.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audio, image, MisuseError, ResourceNotFoundError, RpcError, resource, Server, ToolError, text } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { both, deferred, legacy, within } from "./program.mjs";

test("what functions return becomes contents", async () => {
  const app = new Server("contents")
    .resource("test://text", () => "plain")
    .resource("test://bytes", { mimeType: "image/png" }, async () => Uint8Array.of(0, 1, 255))
    .resource("test://json", () => ({ a: [1, null] }))
    .resource("test://list", () => [1, 2])
    .resource("test://empty", () => [])
    .resource("test://texts", { mimeType: "text/plain" }, () => ["a", "b"])
    .resource("test://mixed", () => [Uint8Array.of(0), "text"])
    .resource("test://json/mixed", () => ["a", 1])
    .resource("test://contents", () => ({ text: "# a", mimeType: "text/markdown", _meta: { "com.example/a": 1 } }))
    .resource("test://several", { mimeType: "text/plain" }, () => [
      { text: "one" },
      { uri: "test://several/2", mimeType: "image/png", blob: Uint8Array.of(1) },
      { blob: "AA==" },
    ])
    .resource("test://whole", () => ({ contents: [{ text: "w" }], _meta: { "com.example/b": 2 } }))
    .resource("test://uri", ({ uri }) => uri)
    .resource("test://value", { title: "V" }, "a value")
    .resource("test://value/bytes", Uint8Array.of(2))
    .resource("test://value/json", {}, { members: ["b"] });
  await both(app, async (client) => {
    const read = async (name) => (await client.readResource(`test://${name}`)).contents;
    assert.deepEqual(await read("text"), [{ uri: "test://text", text: "plain" }]);
    assert.deepEqual(await read("bytes"), [{ uri: "test://bytes", mimeType: "image/png", blob: "AAH/" }]);
    const json = "application/json";
    assert.deepEqual(await read("json"), [{ uri: "test://json", mimeType: json, text: '{"a":[1,null]}' }]);
    assert.deepEqual(await read("list"), [{ uri: "test://list", mimeType: json, text: "[1,2]" }]);
    assert.equal((await read("empty"))[0].text, "[]");
    assert.equal((await read("json/mixed"))[0].text, '["a",1]');
    assert.deepEqual(
      (await read("texts")).map(({ text, mimeType }) => [text, mimeType]),
      [
        ["a", "text/plain"],
        ["b", "text/plain"],
      ],
    );
    assert.deepEqual(
      (await read("mixed")).map(({ text, blob }) => text ?? blob),
      ["AA==", "text"],
    );
    const [contents] = await read("contents");
    assert.deepEqual([contents.uri, contents.mimeType, contents.text], ["test://contents", "text/markdown", "# a"]);
    assert.deepEqual(contents._meta, { "com.example/a": 1 });
    assert.deepEqual(await read("several"), [
      { uri: "test://several", mimeType: "text/plain", text: "one" },
      { uri: "test://several/2", mimeType: "image/png", blob: "AQ==" },
      { uri: "test://several", mimeType: "text/plain", blob: "AA==" },
    ]);
    const whole = await client.readResource("test://whole");
    assert.deepEqual([whole.text, whole.meta["com.example/b"]], ["w", 2]);
    assert.equal((await read("uri"))[0].text, "test://uri");
    assert.equal((await read("value"))[0].text, "a value");
    assert.equal((await read("value/bytes"))[0].blob, "Ag==");
    assert.equal((await read("value/json"))[0].text, '{"members":["b"]}');
    const bytes = await client.readResource(new URL("test://bytes"));
    assert.deepEqual([...bytes.blob], [0, 1, 255]);
    assert.deepEqual([bytes.text, bytes.mimeType], ["", "image/png"]);
    const text = await client.readResource("test://several");
    assert.deepEqual([text.text, [...text.blob]], ["one", [1]]);
    assert.equal((await client.readResource("test://text")).blob, undefined);
  });
});

test("a block is served as what it holds", async () => {
  const dot = image(Uint8Array.of(1), "image/png", { meta: { "com.example/a": 1 } });
  const app = new Server("blocks")
    .resource("test://image", { mimeType: "text/plain" }, () => dot)
    .resource("test://text", { mimeType: "text/markdown" }, () => text("# a"))
    .resource("test://sound", {}, audio("AAAA", "audio/wav"))
    .resource("test://held", {}, () => resource("test://other", "abc", "text/plain"))
    .resource("test://several", {}, () => [dot, "a", Uint8Array.of(1)])
    .resource("test://whole", {}, () => ({ contents: [text("a")] }))
    .resource("test://plain", {}, () => ({ type: "text", text: "a" }));
  await withClient(app, async (client) => {
    const contents = async (name) => (await client.readResource(`test://${name}`)).contents;
    const picture = { mimeType: "image/png", blob: "AQ==", _meta: { "com.example/a": 1 } };
    assert.deepEqual(await contents("image"), [{ uri: "test://image", ...picture }]);
    assert.deepEqual(await contents("text"), [{ uri: "test://text", mimeType: "text/markdown", text: "# a" }]);
    assert.deepEqual(await contents("sound"), [{ uri: "test://sound", mimeType: "audio/wav", blob: "AAAA" }]);
    assert.deepEqual(await contents("held"), [{ uri: "test://other", mimeType: "text/plain", text: "abc" }]);
    const uri = "test://several";
    assert.deepEqual(await contents("several"), [
      { uri, ...picture },
      { uri, text: "a" },
      { uri, blob: "AQ==" },
    ]);
    assert.deepEqual(await contents("whole"), [{ uri: "test://whole", text: "a" }]);
    assert.equal((await contents("plain"))[0].text, '{"type":"text","text":"a"}');
  });
});

test("contents that are none are refused, and never sent", async () => {
  const heard = [];
  const app = new Server("contents", { onError: (error) => heard.push(error) });
  const uri = "test://a";
  const wrong = [
    [{ contents: [{ uri, text: 5 }] }, /^contents\[0\]\.text: expected text, got a number: give String/],
    [{ contents: [{ uri, blob: "a.png" }] }, /^contents\[0\]\.blob: expected bytes, or base64 text, got "a\.png"/],
    [{ contents: [{ uri: 5, text: "a" }] }, /^contents\[0\]\.uri: expected text/],
    [{ text: "a", mimeType: 5 }, /^contents\.mimeType: expected text, got a number/],
    [[{ blob: "a.png" }], /^contents\.blob: expected bytes/],
  ];
  for (const [index, [value]] of wrong.entries()) app.resource(`test://${index}`, {}, () => value);
  app.resource("test://value", {}, () => ({ text: 5 }));
  await withClient(app, async (client) => {
    for (const [index, [, message]] of wrong.entries()) {
      await assert.rejects(client.readResource(`test://${index}`), {
        message: `resource "test://${index}" failed: MisuseError`,
      });
      assert.match(heard.pop().message, message);
    }
    assert.equal((await client.readResource("test://value")).text, '{"text":5}');
  });
});

test("definitions arrive without loss", async () => {
  const all = {
    name: "all",
    title: "All",
    description: "d",
    mimeType: "text/plain",
    annotations: { audience: ["user"], priority: 0.5 },
    icons: [{ src: "https://example.com/i.png" }],
    meta: { "com.example/a": 1 },
  };
  function config() {
    return "";
  }
  const app = new Server("definitions")
    .resource("test://all", { ...all, size: 3 }, "abc")
    .resource("test://named", config)
    .resource("test://unnamed", "x")
    .resource("test://{id}", all, ({ id }) => id);
  await both(app, async (client) => {
    const { meta: _meta, ...members } = all;
    const [first, named, unnamed] = await client.listResources();
    assert.deepEqual(first, { uri: "test://all", ...members, size: 3, _meta });
    assert.deepEqual([named.name, unnamed.name], ["config", "test://unnamed"]);
    assert.deepEqual(await client.listResourceTemplates(), [{ uriTemplate: "test://{id}", ...members, _meta }]);
  });
});

test("templates: variables as text, or as the schema says", async () => {
  const input = z.object({ id: z.int(), deep: z.boolean().default(false), tags: z.array(z.string()).optional() });
  const app = new Server("templates")
    .resource("notes://{day}", { mimeType: "text/plain" }, ({ day }) => `on ${day}`)
    .resource("files://{+path}", ({ path }) => path)
    .resource("search://all{?q,limit}", (args) => args)
    .resource("parts://x{/part*}", ({ part }) => ({ part }))
    .resource("users://{id}{?deep,tags*}", { input }, (args) => ({ ...args, kind: typeof args.id }))
    .resource("raw://{n}", { inputSchema: { type: "object", properties: { n: { type: "number" } } } }, (args) => args)
    .resource("even://{n}", { input: z.object({ n: z.int().refine((n) => n % 2 === 0, "must be even") }) }, () => "");
  await both(app, async (client) => {
    const read = async (uri) => (await client.readResource(uri)).text;
    assert.equal(await read("notes://2026-01-01"), "on 2026-01-01");
    assert.equal(await read("notes://a%20b"), "on a b");
    assert.equal(await read("files://a/b.txt"), "a/b.txt");
    assert.equal(await read("search://all?q=x"), '{"q":"x"}');
    assert.equal(await read("parts://x/a/b"), '{"part":["a","b"]}');
    assert.deepEqual(JSON.parse(await read("users://7?deep=true&tags=a&tags=b")), {
      id: 7,
      deep: true,
      tags: ["a", "b"],
      kind: "number",
    });
    assert.deepEqual(JSON.parse(await read("users://7")), { id: 7, deep: false, kind: "number" });
    assert.equal(await read("raw://1.5"), '{"n":1.5}');
    const wrong = async (uri, message) =>
      assert.rejects(client.readResource(uri), (error) => {
        assert.ok(error instanceof RpcError);
        assert.deepEqual([error.code, error.message], [-32602, message]);
        return true;
      });
    await wrong("users://x", 'argument "id": Invalid input: expected number, received string');
    await wrong("even://3", 'argument "n": must be even');
  });
});

test("failures: there is none, and the function fails", async () => {
  const seen = [];
  const app = new Server("failures", { onError: (error, name) => seen.push([name, error.message]) })
    .resource("none://{id}", ({ id }) => {
      throw new ResourceNotFoundError(`none://${id}`);
    })
    .resource("test://secret", () => {
      throw new TypeError("secret");
    })
    .resource("test://said", () => {
      throw new ToolError("the disk is full");
    })
    .resource("test://code", () => {
      throw new RpcError(4242, "own", { a: 1 });
    })
    .resource("test://nothing", () => undefined);
  for (const [revision, code] of [
    ["2026-07-28", -32602],
    ["2025-11-25", -32002],
  ]) {
    await withClient(
      app,
      async (client) => {
        const failed = (uri) => client.readResource(uri).then(assert.fail, ({ code, message }) => [code, message]);
        assert.deepEqual(await failed("none://7"), [code, 'there is no resource "none://7"']);
        assert.deepEqual(await failed("test://unknown"), [code, 'there is no resource "test://unknown"']);
        assert.deepEqual(await failed("test://secret"), [-32603, 'resource "test://secret" failed: TypeError']);
        assert.deepEqual(await failed("test://said"), [-32603, "the disk is full"]);
        assert.deepEqual(await failed("test://code"), [4242, "own"]);
        assert.deepEqual(await failed("test://nothing"), [-32603, 'resource "test://nothing" failed: TypeError']);
      },
      { revision },
    );
  }
  assert.deepEqual(seen[0], ["test://secret", "secret"]);
  assert.equal(seen.length, 4);
});

test("what is wrong about a resource is said when it is added", () => {
  const app = new Server("wrong").resource("test://taken", "x");
  const misuse = (add, message) =>
    assert.throws(add, (error) => error instanceof MisuseError && message.test(error.message));
  misuse(() => app.resource("test://taken", "y"), /already registered/);
  misuse(() => app.resource("no uri", "y"), /absolute URI/);
  misuse(() => app.resource("test://{", "y"), /uriTemplate/);
  misuse(() => app.resource("test://options", { title: "no function" }), /the last argument/);
  misuse(() => app.resource("test://x", { input: z.object({}) }, "y"), /"input" is for templates/);
  misuse(() => app.resource("test://{x}", { size: 1 }, "y"), /"size" is for resources/);
  misuse(() => app.resource("test://{x}", { input: z.object({ y: z.string() }) }, "y"), /"y" is no variable/);
  misuse(() => app.resource("test://{x}", { complete: { y: () => [] } }, "y"), /"y" is of no variable/);
});

test("a read is cancelled where it waits", async () => {
  const started = deferred();
  const cancelled = deferred();
  const app = new Server("slow").resource("test://slow", (_, ctx) => {
    started.resolve();
    return new Promise((_resolve, reject) => {
      ctx.signal.addEventListener("abort", () => {
        cancelled.resolve(ctx.signal.reason.name);
        reject(ctx.signal.reason);
      });
    });
  });
  await withClient(app, async (client) => {
    const controller = new AbortController();
    const read = client.readResource("test://slow", { signal: controller.signal });
    await within(started.promise, "the start");
    controller.abort();
    await assert.rejects(read, { name: "AbortError" });
    assert.equal(await within(cancelled.promise, "the cancel"), "AbortError");
  });
});

test("subscriptions: the server hears of them, the client of changes", async () => {
  const changes = [];
  const app = new Server("subscriptions")
    .resource("test://a", "a")
    .resource("test://b", "b")
    .resource("test://no", "no")
    .onSubscribe(({ uri, subscribed }, ctx) => {
      if (uri === "test://no") throw new RpcError(-32000, "not this one");
      changes.push([uri, subscribed, ctx.request.method]);
    });
  const heard = [];
  const second = deferred();
  const onResourceUpdated = (uri) => {
    heard.push(uri);
    if (heard.length === 2) second.resolve();
  };
  await withClient(
    app,
    async (client) => {
      assert.equal(client.capabilities.resources.subscribe, true);
      await client.subscribe("test://a");
      app.resourceUpdated("test://b");
      app.resourceUpdated(new URL("test://a"));
      app.resourceUpdated("test://a/part");
      await within(second.promise, "two changes");
      await client.unsubscribe("test://a");
      app.resourceUpdated("test://a");
      await assert.rejects(client.subscribe("test://no"), { code: -32000, message: "not this one" });
      await assert.rejects(client.subscribe("test://unknown"), { code: -32002 });
      assert.deepEqual(heard, ["test://a", "test://a/part"]);
    },
    { ...legacy, onResourceUpdated },
  );
  assert.deepEqual(changes, [
    ["test://a", true, "resources/subscribe"],
    ["test://a", false, "resources/unsubscribe"],
  ]);
});

test("a context, progress and the log as in tools", async () => {
  const app = new Server("context").resource("test://ctx/{n}", { input: z.object({ n: z.int() }) }, ({ n }, ctx) => {
    ctx.progress(n, 10);
    return `${ctx.request.method} ${ctx.request.meta["com.example/a"]}`;
  });
  await both(app, async (client) => {
    const heard = [];
    const onProgress = ({ progress }) => heard.push(progress);
    const options = { onProgress, meta: { "com.example/a": "b" } };
    assert.equal((await client.readResource("test://ctx/3", options)).text, "resources/read b");
    assert.deepEqual(heard, [3]);
  });
});

test("a resource that returns nothing says what is expected", async () => {
  const heard = [];
  const app = new Server("nothing", { onError: (error) => heard.push(error.message) })
    .resource("test://a", () => {})
    .resource("test://b", () => null);
  await withClient(app, async (client) => {
    for (const uri of ["test://a", "test://b"]) {
      await assert.rejects(client.readResource(uri), { code: -32603 });
      assert.match(heard.pop(), /expected text, bytes, contents, or anything that is JSON/);
    }
  });
});

test("a resource that there is not is an error of its own", async () => {
  const app = new Server("missing").resource("notes://{day}", ({ day }) => {
    throw new ResourceNotFoundError(`notes://${day}`);
  });
  await withClient(
    app,
    async (client) => {
      for (const uri of ["notes://monday", "other://x"]) {
        await assert.rejects(client.readResource(uri), (error) => {
          assert.deepEqual([error.code, error.data], [-32002, { uri }]);
          return error instanceof ResourceNotFoundError;
        });
      }
    },
    legacy,
  );
});
