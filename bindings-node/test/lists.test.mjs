// Lists: page by page, changing while the server runs, for all clients or for one, and from elsewhere. And the log.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, MisuseError, RpcError, Server, UnsupportedError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { both, deferred, legacy, within } from "./program.mjs";

const KINDS = {
  tool: ["tools", "listTools", (app, name) => app.tool(name, () => name), (entry) => entry.name],
  resource: ["resources", "listResources", (app, name) => app.resource(`test://${name}`, name), (entry) => entry.uri],
  resource_template: [
    "resourceTemplates",
    "listResourceTemplates",
    (app, name) => app.resource(`test://${name}/{x}`, ({ x }) => x),
    (entry) => entry.uriTemplate,
  ],
  prompt: ["prompts", "listPrompts", (app, name) => app.prompt(name, () => name), (entry) => entry.name],
};
const NAMES = ["a", "b", "c", "d", "e"];

test("every list: all of it, by page, and lazily", async () => {
  const app = new Server("pages", { pageSize: 2 });
  for (const [, , add] of Object.values(KINDS)) for (const name of NAMES) add(app, name);
  await both(app, async (client) => {
    for (const [lazy, list, , key] of Object.values(KINDS)) {
      const all = (await client[list]()).map(key);
      assert.equal(all.length, 5);
      const first = await client[`${list}Page`]();
      assert.deepEqual(first[lazy].map(key), all.slice(0, 2));
      const second = await client[`${list}Page`](first.nextCursor);
      assert.deepEqual(second[lazy].map(key), all.slice(2, 4));
      const third = await client[`${list}Page`](second.nextCursor);
      assert.deepEqual([third[lazy].map(key), third.nextCursor], [all.slice(4), undefined]);
      const seen = [];
      for await (const entry of client[lazy]()) seen.push(key(entry));
      assert.deepEqual(seen, all);
      await assert.rejects(client[`${list}Page`]("no cursor"), RpcError);
    }
  });
});

test("a list that has changed meanwhile is read anew", async () => {
  let version = 1;
  const tool = (name) => ({ name, inputSchema: { type: "object" } });
  const app = new Server("changing").setSource("tool", {
    list: (cursor) => {
      const now = version;
      if (cursor === undefined) {
        version = 2;
        return { tools: [tool("same"), tool(`a${now}`)], nextCursor: `c${now}` };
      }
      if (cursor !== `c${now}`) throw new RpcError(-32602, "no such cursor");
      return { tools: [tool(`b${now}`)] };
    },
  });
  await both(app, async (client) => {
    version = 1;
    assert.deepEqual(
      (await client.listTools()).map(({ name }) => name),
      ["same", "a2", "b2"],
    );
    version = 1;
    const seen = [];
    for await (const { name } of client.tools()) seen.push(name);
    assert.deepEqual(seen, ["same", "a1", "a2", "b2"]);
  });
});

test("a loop that ends early asks for no more pages", async () => {
  const cursors = [];
  const app = new Server("lazy").setSource("prompt", {
    list: (cursor) => {
      cursors.push(cursor);
      const n = Number(cursor ?? 0);
      return { prompts: [{ name: `p${n}` }, { name: `q${n}` }], nextCursor: String(n + 1) };
    },
  });
  await both(app, async (client) => {
    const seen = [];
    for await (const { name } of client.prompts()) {
      seen.push(name);
      if (seen.length === 3) break;
    }
    assert.deepEqual(seen, ["p0", "q0", "p1"]);
  });
  assert.deepEqual(cursors, [undefined, "1", undefined, "1"]);
});

test("what is added, hidden and removed while clients are there, which are told", async () => {
  for (const revision of ["2026-07-28", legacy.revision]) {
    const app = new Server("changes");
    for (const [, , add] of Object.values(KINDS)) add(app, "a");
    let heard = deferred();
    const onListChanged = (kind) => heard.resolve(kind);
    await withClient(
      app,
      async (client) => {
        for (const [kind, [, list, add, key]] of Object.entries(KINDS)) {
          const listed = async () => (await client[list]()).map(key);
          const [a] = await listed();
          const told = async (change) => {
            heard = deferred();
            const outcome = change();
            assert.equal(await within(heard.promise, `the change of ${kind}s`), kind.replace("_template", ""));
            return outcome;
          };
          await told(() => add(app, "b"));
          const [, b] = await listed();
          assert.equal(await told(() => app.setEnabled(kind, b, false)), true);
          assert.equal(app.setEnabled(kind, b, false), false);
          assert.deepEqual(await listed(), [a]);
          await told(() => app.setEnabled(kind, b, true));
          assert.deepEqual(await listed(), [a, b]);
          const remove = {
            tool: "Tool",
            resource: "Resource",
            resource_template: "ResourceTemplate",
            prompt: "Prompt",
          };
          assert.equal(await told(() => app[`remove${remove[kind]}`](a)), true);
          assert.equal(app[`remove${remove[kind]}`](a), false);
          assert.deepEqual(await listed(), [b]);
          await told(() => app.listChanged(kind));
          // The name is free again.
          await told(() => add(app, "a"));
          assert.deepEqual(await listed(), [b, a]);
        }
        assert.throws(() => app.setEnabled("nothing", "a", true), MisuseError);
        assert.throws(() => app.listChanged("tools"), /expected one of tool, resource/);
      },
      { revision, onListChanged },
    );
  }
});

test("what is replaced keeps its place", async () => {
  const app = new Server("replace");
  const add = (text, options) =>
    app
      .tool("a", options, () => text)
      .resource("x://a", options, text)
      .resource("x://a/{id}", options, () => text)
      .prompt("a", options, () => text);
  add("old", { title: "Old", replace: true });
  app
    .tool("z", () => "z")
    .resource("x://z", "z")
    .resource("x://z/{id}", () => "z")
    .prompt("z", () => "z");
  await both(app, async (client) => {
    const told = async () => [
      (await client.callTool("a")).text,
      (await client.readResource("x://a")).text,
      (await client.readResource("x://a/1")).text,
      (await client.getPrompt("a")).messages[0].content.text,
    ];
    const lists = async () =>
      (await Promise.all(Object.values(KINDS).map(([, list]) => client[list]()))).map((list) =>
        list.map((e) => e.title),
      );
    add("old", { title: "Old", replace: true });
    assert.deepEqual(await told(), Array(4).fill("old"));
    add("new", { title: "New", replace: true });
    assert.deepEqual(await told(), Array(4).fill("new"));
    assert.deepEqual(await lists(), Array(4).fill(["New", undefined]));
    assert.throws(() => app.tool("a", () => "x"), /already registered/);
    assert.throws(() => app.tool("a", { replace: false }, () => "x"), /already registered/);
  });
});

test("what is added disabled waits to be shown", async () => {
  const app = new Server("enabled")
    .tool("tool", { enabled: false }, () => "")
    .resource("test://r", { enabled: false }, "r")
    .resource("test://{t}", { enabled: false }, "t")
    .prompt("prompt", { enabled: false }, () => "p");
  await both(app, async (client) => {
    for (const [, list] of Object.values(KINDS)) assert.deepEqual(await client[list](), []);
    await assert.rejects(client.callTool("tool"), { code: -32602 });
    await assert.rejects(client.readResource("test://r"), RpcError);
    await assert.rejects(client.readResource("test://x"), RpcError);
    await assert.rejects(client.getPrompt("prompt"), { code: -32602 });
  });
  app.setEnabled("prompt", "prompt", true);
  await both(app, async (client) => assert.equal((await client.listPrompts()).length, 1));
});

test("one client sees what others do not", async () => {
  const app = new Server("sessions")
    .tool("admin", { enabled: false }, () => "admin")
    .tool("login", (_, ctx) => [ctx.setEnabled("tool", "admin", true), ctx.setEnabled("prompt", "p", false)])
    .prompt("p", () => "p");
  const changed = deferred();
  const one = await connect(app, { ...legacy, onListChanged: changed.resolve });
  const other = await connect(app, { ...legacy, onListChanged: () => assert.fail("told of another's change") });
  const names = async (client) => (await client.listTools()).map(({ name }) => name);
  assert.deepEqual(await names(one), ["login"]);
  assert.equal((await one.callTool("login")).text, "[true,true]");
  assert.equal(await within(changed.promise, "the change"), "tool");
  assert.deepEqual(await names(one), ["admin", "login"]);
  assert.equal((await one.callTool("admin")).text, "admin");
  assert.deepEqual(await one.listPrompts(), []);
  assert.deepEqual(await names(other), ["login"]);
  assert.equal((await other.listPrompts()).length, 1);
  await assert.rejects(other.callTool("admin"), RpcError);
  await Promise.all([one.close(), other.close()]);
  const modern = new Server("modern").tool("try", (_, ctx) => {
    assert.throws(() => ctx.setEnabled("tool", "try", false), UnsupportedError);
    return "refused";
  });
  await withClient(modern, async (client) => assert.equal((await client.callTool("try")).text, "refused"));
});

test("a proxy: lists and answers from another server", async () => {
  const upstream = new Server("upstream", { pageSize: 1 })
    .tool("add", { input: z.object({ a: z.int(), b: z.int() }) }, ({ a, b }) => ({ sum: a + b }))
    .tool("fail", { input: z.object({ a: z.int() }) }, () => "")
    .resource("test://r", { mimeType: "text/plain" }, "r")
    .resource("test://{t}/x", () => Uint8Array.of(1))
    .prompt("p", { description: "P", input: z.object({ a: z.string() }) }, ({ a }) => [a, "b"]);
  const behind = await connect(upstream);
  const app = new Server("proxy")
    .tool("own", () => "own")
    .setSource("tool", {
      list: (cursor) => behind.listToolsPage(cursor),
      get: ({ name, arguments: args }) => behind.callTool(name, args),
    })
    .setSource("resource", { list: () => behind.listResources(), get: ({ uri }) => behind.readResource(uri) })
    .setSource("resource_template", { list: () => behind.listResourceTemplates() })
    .setSource("prompt", {
      list: () => behind.listPrompts(),
      get: ({ name, arguments: args }) => behind.getPrompt(name, args),
    });
  await both(app, async (client) => {
    assert.deepEqual(
      (await client.listTools()).map(({ name }) => name),
      ["own", "add", "fail"],
    );
    assert.deepEqual((await client.callTool("add", { a: 1, b: 2 })).structured, { sum: 3 });
    const failed = await client.callTool("fail", { a: "x" });
    assert.deepEqual(
      [failed.isError, failed.text],
      [true, 'argument "a": Invalid input: expected number, received string'],
    );
    await assert.rejects(client.callTool("unknown"), { code: -32602 });
    assert.deepEqual((await client.readResource("test://r")).contents, [
      { uri: "test://r", mimeType: "text/plain", text: "r" },
    ]);
    assert.deepEqual([...(await client.readResource("test://7/x")).blob], [1]);
    assert.equal((await client.listResourceTemplates())[0].uriTemplate, "test://{t}/x");
    const prompt = await client.getPrompt("p", { a: "1" });
    assert.deepEqual([prompt.description, prompt.messages.map(({ content }) => content.text)], ["P", ["1", "b"]]);
  });
  await behind.close();
});

test("a source that answers as plain functions do, and one that fails", async () => {
  const onError = () => {};
  const app = new Server("plain", { onError })
    .setSource("tool", { list: () => [{ name: "t", inputSchema: { type: "object" } }], get: () => "text" })
    .setSource("resource", { get: ({ uri }) => (uri === "test://b" ? Uint8Array.of(7) : { uri }) })
    .setSource("prompt", { get: ({ name }) => (name === "one" ? "said" : ["a", { role: "assistant", content: "b" }]) })
    .setSource("resource_template", {
      list: () => {
        throw new Error("secret");
      },
    });
  await both(app, async (client) => {
    assert.equal((await client.listTools())[0].name, "t");
    assert.equal((await client.callTool("t")).text, "text");
    assert.deepEqual([...(await client.readResource("test://b")).blob], [7]);
    assert.equal((await client.readResource("test://a")).text, '{"uri":"test://a"}');
    assert.deepEqual((await client.getPrompt("one")).messages, [
      { role: "user", content: { type: "text", text: "said" } },
    ]);
    assert.deepEqual(
      (await client.getPrompt("more")).messages.map(({ role, content }) => `${role} ${content.text}`),
      ["user a", "assistant b"],
    );
    await assert.rejects(client.listResourceTemplates(), { code: -32603 });
  });
});

test("the log: asked for by level, in the shape of console and pino", async () => {
  const app = new Server("log").tool("work", (_, ctx) => {
    const { logger } = ctx;
    logger.debug("too fine");
    logger.info("text");
    logger.warn("%s and %d", "a", 1);
    logger.error(new TypeError("broken"));
    logger.error({ user: 7 }, "of %s", "user");
    logger.notice({ only: "data" });
    const part = logger.child("db");
    part.fatal("gone");
    part.error(new Error("e"), "while");
    logger.error({ err: new Error("boom") }, "failed");
    const bound = logger.child({ module: "x" }).child({ user: 7 });
    bound.warn("text %s", "t");
    bound.child("db").warn({ a: 1 }, "more");
    bound.error(new RangeError("r"));
    ctx.log("error", { n: 10n });
    return ctx.log("alert", [1], "raw");
  });
  const heard = [];
  const done = deferred();
  const onLog = ({ level, logger, data }) => {
    heard.push([level, logger, data]);
    if (level === "alert") done.resolve();
  };
  const all = [];
  const onNotification = (method) => all.push(method);
  await withClient(
    app,
    async (client) => {
      await client.setLogLevel("info");
      assert.equal((await client.callTool("work")).text, "true");
      await within(done.promise, "the last message");
      await client.setLogLevel("emergency");
      assert.equal((await client.callTool("work")).text, "false");
    },
    { ...legacy, onLog, onNotification },
  );
  assert.deepEqual(heard, [
    ["info", undefined, "text"],
    ["warning", undefined, "a and 1"],
    ["error", undefined, "TypeError: broken"],
    ["error", undefined, { user: 7, msg: "of user" }],
    ["notice", undefined, { only: "data" }],
    ["critical", "db", "gone"],
    ["error", "db", { error: "Error: e", msg: "while" }],
    ["error", undefined, { err: "Error: boom", msg: "failed" }],
    ["warning", undefined, { module: "x", user: 7, msg: "text t" }],
    ["warning", "db", { module: "x", user: 7, a: 1, msg: "more" }],
    ["error", undefined, { module: "x", user: 7, error: "RangeError: r" }],
    ["error", undefined, "{ n: 10n }"],
    ["alert", "raw", [1]],
  ]);
  assert.deepEqual(all, Array(13).fill("notifications/message"));
  // In newer revisions each request asks: for the level that was set, or its own.
  const levels = [];
  const third = deferred();
  await withClient(
    app,
    async (client) => {
      assert.equal((await client.callTool("work")).text, "false");
      await client.setLogLevel("critical");
      assert.equal((await client.callTool("work")).text, "true");
      await client.setLogLevel("emergency");
      assert.equal((await client.callTool("work")).text, "false");
      const meta = { "io.modelcontextprotocol/logLevel": "alert" };
      assert.equal((await client.callTool("work", {}, { meta })).text, "true");
      await within(third.promise, "the last message");
    },
    { onLog: ({ level }) => levels.push(level) === 3 && third.resolve() },
  );
  assert.deepEqual(levels, ["critical", "alert", "alert"]);
});

test("a level that there is not is a mistake of the program", async () => {
  const errors = [];
  const app = new Server("level", { onError: (error) => errors.push(error) });
  app.tool("log", (_, ctx) => ctx.log("bogus", "x"));
  await both(app, async (client) => {
    const { isError, text } = await client.callTool("log");
    assert.deepEqual([isError, text], [true, 'tool "log" failed: MisuseError']);
    const error = errors.pop();
    assert.ok(error instanceof MisuseError);
    assert.match(error.message, /expected one of debug, .*got "bogus"/);
  });
});
