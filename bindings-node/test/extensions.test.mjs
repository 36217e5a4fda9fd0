// Extensions of one's own: settings, requests, notifications, in every revision, through memory and over HTTP.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, Extension, jsonSchema, MisuseError, PeerMisbehavedError, RpcError, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { deferred, within } from "./program.mjs";
import { wire } from "./wire.mjs";

const MODERN = "2026-07-28";
const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const SEARCH = "com.example/search";
const FOUND = "notifications/com.example/found";
const MEMBER = "com.example/queries";

const query = z.object({
  query: z.string().refine((text) => text !== "bad", "not that"),
  limit: z.number().default(10),
});

function search() {
  return new Extension(SEARCH, { languages: ["en"] })
    .method(
      SEARCH,
      ({ query, limit }, ctx) => ({ found: [query], limit, wanted: ctx.extension(SEARCH), method: ctx.request.method }),
      { schema: query, idempotent: true },
    )
    .method("com.example/state", async (params, ctx) => ({ params, state: ctx.state }))
    .method("com.example/later", () => ({ resultType: "com.example/later", at: 7 }))
    .method("com.example/nothing", async () => {})
    .method("com.example/null", () => null)
    .method("com.example/list", () => [1])
    .method("com.example/text", async () => "text")
    .method("com.example/refuses", () => {
      throw new RpcError(-31050, "no such index", { index: "x" });
    })
    .method("com.example/breaks", async () => {
      throw new Error("the password is 1234");
    })
    .notification(FOUND, MEMBER);
}

function server(options) {
  return new Server("library", { extensions: [search()], ...options }).tool("which", (_, ctx) => ({
    settings: ctx.extension(SEARCH) ?? null,
  }));
}

/** Serves on a port for as long as the test runs. */
async function served(t, app, options) {
  const url = deferred();
  const ends = app.serveHttp({ port: 0, onListening: url.resolve, ...options });
  t.after(async () => {
    await app.close();
    await ends;
  });
  return within(url.promise, "listening");
}

const DECLARES = { extensions: { [SEARCH]: { limit: 3 } } };

/** Runs `use` with a client of each revision, through memory and over HTTP: one at a time, as older servers tell everybody. */
async function everywhere(t, app, use, options = DECLARES) {
  const url = await served(t, app);
  for (const revision of REVISIONS) {
    for (const target of [app, url]) {
      const client = await connect(target, { ...options, revision });
      try {
        await use(client, `${revision} over ${client.transport}`, revision);
      } finally {
        await client.close();
      }
    }
  }
}

async function next(changes) {
  const { done, value } = await within(changes.next(), "a change");
  assert.equal(done, false, "a change");
  return value;
}

const told = (params, method = FOUND) => ({ type: "extensionNotification", method, params });

/** Returns the members of a result that belong to the extension, and not to the revision. */
function bare({ resultType, _meta, ...result }) {
  return result;
}

test("its requests are answered in every revision", async (t) => {
  const app = server({ state: "shared" });
  await everywhere(t, app, async (client, at) => {
    assert.deepEqual(client.capabilities.extensions, { [SEARCH]: { languages: ["en"] } }, at);
    const found = bare(await client.request(SEARCH, { query: "ü" }));
    assert.deepEqual(found, { found: ["ü"], limit: 10, wanted: { limit: 3 }, method: SEARCH }, at);
    const seen = bare(await client.request("com.example/state", { a: [1, null], _meta: { "com.example/x": 1 } }));
    assert.deepEqual(seen, { params: { a: [1, null] }, state: "shared" }, at);
    assert.deepEqual(bare(await client.request("com.example/state")), { params: {}, state: "shared" }, at);
    assert.deepEqual(bare(await client.request("com.example/nothing")), {}, at);
    assert.deepEqual(bare(await client.request("com.example/null")), {}, at);
    assert.deepEqual(JSON.parse((await client.callTool("which")).text), { settings: { limit: 3 } }, at);
  });
});

test("what is wrong with a request is named, and what a handler throws reaches the client as from others", async (t) => {
  const heard = [];
  const app = server({ onError: (error, name) => heard.push([name, String(error)]) });
  await everywhere(t, app, async (client, at) => {
    const fails = async (method, params, code, message) => {
      await assert.rejects(client.request(method, params), (error) => {
        assert.ok(error instanceof RpcError, `${at}: ${error}`);
        assert.equal(error.code, code, `${at}: ${error}`);
        assert.match(error.message, message, at);
        return true;
      });
    };
    await fails(SEARCH, { query: 7 }, -32602, /parameter "query"/);
    await fails(SEARCH, {}, -32602, /query/);
    await fails(SEARCH, { query: "bad" }, -32602, /^parameter "query": not that$/);
    await fails("com.example/refuses", {}, -31050, /^no such index$/);
    await assert.rejects(client.request("com.example/refuses"), { data: { index: "x" } });
    assert.deepEqual(heard.splice(0), [], at);
    await fails("com.example/breaks", {}, -32603, /^request "com\.example\/breaks" failed: Error$/);
    await fails("com.example/list", {}, -32603, /^request "com\.example\/list" failed: TypeError$/);
    await fails("com.example/text", {}, -32603, /^request "com\.example\/text" failed: TypeError$/);
    assert.deepEqual(
      heard.splice(0),
      [
        ["com.example/breaks", "Error: the password is 1234"],
        ["com.example/list", "TypeError: expected an object as the result, got [ 1 ]"],
        ["com.example/text", "TypeError: expected an object as the result, got 'text'"],
      ],
      at,
    );
  });
});

test("a schema may be JSON Schema, or stand beside one of a library that makes none", async () => {
  const typed = jsonSchema({ type: "object", properties: { n: { type: "integer" } }, required: ["n"] });
  const foreign = {
    "~standard": {
      version: 1,
      vendor: "ours",
      validate: ({ n }) => (n > 5 ? { issues: [{ message: "too much", path: ["n"] }] } : { value: { n: n + 1 } }),
    },
  };
  const extension = new Extension("com.example/schemas")
    .method("com.example/json", ({ n }) => ({ n }), { schema: typed })
    .method("com.example/both", ({ n }) => ({ n }), { schema: foreign, inputSchema: typed });
  const app = new Server("schemas").addExtension(extension);
  const use = async (client) => {
    assert.equal((await client.request("com.example/json", { n: 1 })).n, 1);
    assert.equal((await client.request("com.example/both", { n: 1 })).n, 2);
    const wrong = { code: -32602, message: /"n"/ };
    await assert.rejects(client.request("com.example/json", { n: "1" }), wrong);
    await assert.rejects(client.request("com.example/both", { n: "1" }), wrong);
    await assert.rejects(client.request("com.example/both", { n: 6 }), { message: 'parameter "n": too much' });
  };
  await withClient(app, use, { extensions: { "com.example/schemas": {} } });
  const alone = new Extension("com.example/alone").method("com.example/alone", () => {}, { schema: foreign });
  // A schema that is listed nowhere needs no JSON Schema.
  app.addExtension(alone);
});

test("a result of another type is for those who want it", async () => {
  const use = async (client) => {
    await assert.rejects(client.request("com.example/later"), (error) => {
      assert.ok(error instanceof PeerMisbehavedError, String(error));
      assert.match(error.message, /com\.example\/later/);
      return true;
    });
    const { resultType, at } = await client.request("com.example/later", {}, { anyResult: true });
    assert.deepEqual([resultType, at], ["com.example/later", 7]);
    assert.deepEqual(bare(await client.request("com.example/nothing", {}, { anyResult: true })), {});
    await assert.rejects(client.request("com.example/later", {}, { anyResults: true }), {
      message: 'com.example/later: unknown option "anyResults", did you mean "anyResult"?',
    });
  };
  await withClient(server(), use, { ...DECLARES, revision: MODERN });
});

test("who does not declare it gets nothing of it", async (t) => {
  const app = server();
  const use = async (client, at, revision) => {
    const code = revision === MODERN ? -32021 : -32601;
    await assert.rejects(client.request(SEARCH, { query: "x" }), { code, message: /com\.example\/search/ }, at);
    assert.deepEqual(JSON.parse((await client.callTool("which")).text), { settings: null }, at);
    if (revision === MODERN) {
      await assert.rejects(client.listen({ extensions: { [MEMBER]: true } }).honoured, { code: -32021 }, at);
    }
  };
  await everywhere(t, app, use, {});
});

test("what a server does not offer is neither answered nor used", async () => {
  const plain = new Server("plain").tool("which", (_, ctx) => ({ settings: ctx.extension(SEARCH) ?? null }));
  for (const revision of ["2025-11-25", MODERN]) {
    const use = async (client) => {
      await assert.rejects(client.request(SEARCH, { query: "x" }), { code: -32601 }, revision);
      assert.deepEqual(JSON.parse((await client.callTool("which")).text), { settings: null }, revision);
    };
    await withClient(plain, use, { ...DECLARES, revision });
  }
});

test("what the server declares by other options is known to handlers, too", async () => {
  const tasks = "io.modelcontextprotocol/tasks";
  const ids = [tasks, "com.example/declared", SEARCH, "com.example/unknown"];
  const app = new Server("declared", { tasks: true, capabilities: { extensions: { "com.example/declared": {} } } });
  app.tool("which", (_, ctx) => ({ known: ids.map((id) => ctx.extension(id) ?? null) }));
  app.addExtension(search());
  const use = async (client) => {
    assert.deepEqual(Object.keys(client.capabilities.extensions).sort(), ids.slice(0, 3).sort());
    const { known } = JSON.parse((await client.callTool("which")).text);
    assert.deepEqual(known, [{}, { a: 1 }, { limit: 3 }, null]);
  };
  const extensions = { ...DECLARES.extensions, "com.example/declared": { a: 1 }, "com.example/unknown": {} };
  await withClient(app, use, { revision: MODERN, tasks: true, extensions });
});

test("its notifications reach those who asked for them", async (t) => {
  const app = server();
  await everywhere(t, app, async (client, at, revision) => {
    const everything = client.listen({ extensions: { [MEMBER]: true } });
    const keyed = client.listen({ tools: true, extensions: { [MEMBER]: ["a", "b"], "com.example/no": false } });
    const none = { tools: false, prompts: false, resources: false, uris: [], tasks: [] };
    const all = await within(everything.honoured, "listening");
    assert.deepEqual(all, { ...none, extensions: { [MEMBER]: true } }, at);
    const some = await within(keyed.honoured, "listening");
    assert.deepEqual(some, { ...none, tools: true, extensions: { [MEMBER]: ["a", "b"] } }, at);
    for (const query of ["c", "a", "a"]) app.notify(FOUND, { query, _meta: { "com.example/x": 1 } }, query);
    app.notify(FOUND);
    for (const query of ["c", "a", "a"]) {
      const one = told({ query, _meta: { "com.example/x": 1 } });
      assert.deepEqual(await next(everything), one, at);
      // Who cannot say what it wants hears everything.
      if (query === "a" || revision !== MODERN) assert.deepEqual(await next(keyed), one, at);
    }
    assert.deepEqual(await next(everything), told({}), at);
    if (revision !== MODERN) assert.deepEqual(await next(keyed), told({}), at);
    app.listChanged("tool");
    assert.deepEqual(await next(keyed), { type: "toolsListChanged" }, at);
  });
});

test("after a cut it is said that notifications may have been missed", async (t) => {
  const app = server();
  const way = await wire(t, await served(t, app, { allowedHosts: ["127.0.0.1"] }));
  const client = await connect(way.url, { ...DECLARES, revision: MODERN });
  const changes = client.listen({ extensions: { [MEMBER]: ["a"] } });
  await changes.honoured;
  way.cut();
  const acknowledged = "notifications/subscriptions/acknowledged";
  assert.deepEqual(await next(changes), told({ notifications: { [MEMBER]: ["a"] } }, acknowledged));
  app.notify(FOUND, { n: 1 }, "a");
  assert.deepEqual(await next(changes), told({ n: 1 }));
  await client.close();
});

test("what is not taken is not lost silently", async () => {
  const app = server();
  const use = async (client) => {
    const changes = client.listen({ extensions: { [MEMBER]: true } });
    await changes.honoured;
    for (let n = 0; n < 1100; n++) app.notify(FOUND, { n });
    // The connection's messages come in order: by now the stream's have arrived.
    await client.request("com.example/nothing");
    let taken = 0;
    const loop = async () => {
      for await (const { params } of changes) assert.equal(params.n, taken++);
    };
    await assert.rejects(within(loop(), "the end"), { kind: "closed", message: /1024/ });
    assert.equal(taken, 1024);
  };
  await withClient(app, use, { ...DECLARES, revision: MODERN });
});

test("it may come later, and an extension that failed to be added is not there", async () => {
  const app = new Server("late").tool("which", (_, ctx) => ({ settings: ctx.extension(SEARCH) ?? null }));
  const broken = new Extension(SEARCH).method("tools/call", () => {});
  assert.throws(() => app.addExtension(broken), MisuseError);
  const settings = async (client) => JSON.parse((await client.callTool("which")).text).settings;
  await withClient(app, async (client) => assert.equal(await settings(client), null), DECLARES);
  assert.equal(app.addExtension(search()), app);
  const use = async (client) => {
    assert.deepEqual(await settings(client), { limit: 3 });
    assert.deepEqual((await client.request(SEARCH, { query: "x" })).found, ["x"]);
  };
  await withClient(app, use, DECLARES);
});

test("what is wrong is named when the extension is made or added", () => {
  const refused = (make, message) => {
    assert.throws(make, (error) => {
      assert.ok(error instanceof MisuseError, String(error));
      assert.match(error.message, message);
      return true;
    });
  };
  const own = () => new Extension("com.example/other");
  const handler = () => ({});
  refused(() => new Extension(7), /^extension "id": expected a string, got 7$/);
  refused(() => own().method(7, handler), /^extension "com\.example\/other": name: expected a string, got 7$/);
  refused(() => own().method("a"), /^extension "com\.example\/other": "a": expected the function that answers it$/);
  refused(() => own().method("a", handler, { shema: {} }), /unknown option "shema", did you mean "schema"\?/);
  refused(() => own().method("a", handler, { idempotent: 1 }), /"a": idempotent: expected a boolean, got 1/);
  refused(() => own().notification("notifications/x"), /member: expected a string, got undefined/);
  const added = (extension, message) => refused(() => server().addExtension(extension), message);
  added({}, /^extension: expected an Extension$/);
  added(new Extension("search"), /"search": expected an identifier with a prefix/);
  added(new Extension("io.modelcontextprotocol/tasks"), /option "tasks"/);
  added(new Extension("com.example/other", []), /settings: expected an object, got \[\]/);
  added(new Extension("com.example/other", { n: Number.NaN }), /"com\.example\/other": "settings\.n": NaN is not JSON/);
  added(search(), /"com\.example\/search": it is there already/);
  added(own().method(SEARCH, handler), /"com\.example\/search" is there already/);
  added(own().method("tools/call", handler), /"tools\/call": the name is the protocol's/);
  added(own().method("a", handler, { schema: { type: 7 } }), /extension "com\.example\/other": "a": parameters/);
  added(own().notification("x", "m"), /"x": expected the name of a notification/);
  added(own().notification(FOUND, "m"), /is there already/);
  added(own().notification("notifications/x", "taskIds"), /"taskIds" is no name for a member/);
  refused(() => new Server("x", { extensions: search() }), /^extensions: expected a list of extensions, got an object/);
  refused(() => new Server("x", { extensions: ["a"] }), /^extension: expected an Extension$/);
  refused(() => new Server("x", { extension: [] }), /unknown option "extension", did you mean "extensions"\?/);
  const app = server();
  refused(() => app.notify("notifications/x"), /they are "notifications\/com\.example\/found"/);
  refused(() => app.notify(FOUND, [1]), /parameters: expected an object, .*got a list/);
  refused(() => app.notify(FOUND, {}, 7), /^notify: key: expected a string, got 7$/);
});

test("what is wrong is named when a client declares or listens", async () => {
  const app = server();
  const wrong = async (extensions, message) => {
    await assert.rejects(connect(app, { extensions }), (error) => {
      assert.ok(error instanceof MisuseError, String(error));
      assert.match(error.message, message);
      return true;
    });
  };
  await wrong({ search: {} }, /"extensions": "search": expected an identifier with a prefix/);
  await wrong({ [SEARCH]: 7 }, /settings: expected an object, got 7/);
  await wrong({ "io.modelcontextprotocol/tasks": {} }, /option "tasks"/);
  await wrong(["a"], /extensions/);
  await withClient(app, async (client) => {
    const refused = (extensions, message) => {
      assert.throws(() => client.listen({ extensions }), { name: "MisuseError", message });
    };
    refused(7, /^listen: extensions: expected an object/);
    refused([MEMBER], /^listen: extensions: expected an object/);
    refused({ [MEMBER]: "a" }, /"com\.example\/queries": expected true or a list of keys, which are text, got 'a'/);
    refused({ [MEMBER]: [7] }, /"com\.example\/queries": expected true or a list of keys, which are text, got \[ 7 \]/);
    refused(
      { toolsListChanged: true },
      /"toolsListChanged" is the protocol's: say tools, prompts, resources, uris or tasks/,
    );
    const nothing = client.listen({ extensions: { [MEMBER]: false, "com.example/no": [] } });
    await assert.rejects(nothing.honoured, { name: "MisuseError", message: /nothing is asked for/ });
  });
});
