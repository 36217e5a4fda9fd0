// Listening to changes, in every revision, through memory and over HTTP.
import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ClosedError, connect, connectMany, MisuseError, RpcError, Server, UnsupportedError } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { deferred, LIMIT, start, within } from "./program.mjs";
import { wire } from "./wire.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const MODERN = "2026-07-28";
const REVISIONS = ["2025-06-18", "2025-11-25", MODERN];
const ONE = "test://one";

function server(options) {
  return new Server("changes", options)
    .tool("t", () => "t")
    .prompt("p", () => "p")
    .resource(ONE, "1")
    .resource("test://many/{n}", ({ n }) => n);
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

/** Runs `use` with a client of each revision, through memory and over HTTP: one at a time, as older servers tell everybody. */
async function everywhere(t, app, use, options = {}) {
  const url = await served(t, app);
  const { ops } = bridgeMetrics();
  for (const revision of REVISIONS) {
    for (const target of [app, url]) {
      const client = await connect(target, { ...options, revision });
      try {
        await use(client, `${revision} ${client.transport}`);
      } finally {
        await client.close();
      }
    }
  }
  await until("nobody listens", () => app.metrics().listeners === 0);
  await settled(ops);
}

async function until(what, isSo) {
  const end = Date.now() + LIMIT;
  while (!isSo()) {
    assert.ok(Date.now() < end, `${what} within ${LIMIT} ms`);
    await pause(1);
  }
}

/** Nothing is on its way any more, between this program and the engine, but what serves. */
const settled = (serving = 0) =>
  until("all is settled", () => {
    const { queued, calls, ops } = bridgeMetrics();
    return queued + calls === 0 && ops === serving;
  });

const updated = (uri) => ({ type: "resourceUpdated", uri });

async function next(changes) {
  const { done, value } = await within(changes.next(), "a change");
  assert.equal(done, false, "a change");
  return value;
}

async function ended(changes) {
  assert.deepEqual(await within(changes.next(), "the end"), { done: true, value: undefined });
}

test("every revision is listened to alike, by several at once", async (t) => {
  const app = server();
  await everywhere(t, app, async (client, what) => {
    const first = client.listen({ tools: true, uris: [ONE, new URL("test://many/1")] });
    const second = client.listen({ prompts: true, resources: true, uris: [ONE] });
    const uris = [ONE, "test://many/1"];
    const honoured = await within(first.honoured, "listening");
    const others = { prompts: false, resources: false, tasks: [], extensions: {} };
    assert.deepEqual(honoured, { tools: true, uris, ...others }, what);
    await within(second.honoured, "listening");
    app.resourceUpdated("test://many/2");
    app.resourceUpdated("test://many/1");
    assert.deepEqual(await next(first), updated("test://many/1"), what);
    app.listChanged("prompt");
    assert.deepEqual(await next(second), { type: "promptsListChanged" }, what);
    app.listChanged("tool");
    assert.deepEqual(await next(first), { type: "toolsListChanged" }, what);
    app.listChanged("resource_template");
    assert.deepEqual(await next(second), { type: "resourcesListChanged" }, what);
    app.resourceUpdated(`${ONE}/part`);
    assert.deepEqual([await next(first), await next(second)], [updated(`${ONE}/part`), updated(`${ONE}/part`)], what);
    // What one no longer wants, the other still hears.
    second.close();
    await client.ping();
    const seen = [];
    app.resourceUpdated(ONE);
    for await (const change of first) {
      seen.push(change);
      if (seen.length === 2) break;
      app.listChanged("tool");
    }
    assert.deepEqual(seen, [updated(ONE), { type: "toolsListChanged" }], what);
    await ended(first);
  });
});

test("whichever way it is left, it ends at the server", async (t) => {
  let told = [];
  const app = server().onSubscribe(({ uri, subscribed }) => {
    told.push([uri, subscribed]);
  });
  const ways = {
    break: async (changes) => {
      app.resourceUpdated(ONE);
      for await (const _ of changes) break;
    },
    throw: async (changes) => {
      app.resourceUpdated(ONE);
      await assert.rejects(async () => {
        for await (const _ of changes) throw new Error("enough");
      }, /enough/);
    },
    return: async (changes) => {
      const waiting = changes.next();
      assert.deepEqual(await changes.return(), { done: true, value: undefined });
      assert.deepEqual(await within(waiting, "the end"), { done: true, value: undefined });
    },
    close: async (changes) => {
      const waiting = changes.next();
      changes.close();
      changes.close();
      assert.equal((await within(waiting, "the end")).done, true);
    },
    dispose: (changes) => changes[Symbol.asyncDispose](),
    abort: async (changes, controller) => {
      const waiting = changes.next();
      controller.abort(new Error("given up"));
      await assert.rejects(within(waiting, "the end"), /given up/);
    },
    "abort in the loop": async (changes, controller) => {
      app.resourceUpdated(ONE);
      await assert.rejects(
        async () => {
          for await (const _ of changes) controller.abort();
        },
        { name: "AbortError" },
      );
    },
  };
  await everywhere(t, app, async (client, what) => {
    for (const [way, leave] of Object.entries(ways)) {
      const controller = new AbortController();
      const changes = client.listen({ uris: [ONE], signal: controller.signal });
      await within(changes.honoured, "listening");
      await leave(changes, controller);
      await ended(changes);
      await until(`${what}: told of the end by ${way}`, () => told.length === 2);
      assert.deepEqual(told.flat(), [ONE, true, ONE, false], `${what}, ${way}`);
      told = [];
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    }
    const changes = client.listen({ uris: [ONE], signal: AbortSignal.abort(new Error("too late")) });
    await assert.rejects(changes.honoured, /too late/);
    await assert.rejects(changes.next(), /too late/);
    await ended(changes);
    assert.deepEqual(told, []);
  });
});

test("a listener that is left before the server has answered leaves nothing", async (t) => {
  const asked = [];
  let ask = deferred();
  const answer = deferred();
  const app = server().onSubscribe(async ({ subscribed }) => {
    asked.push(subscribed);
    if (!subscribed) return;
    ask.resolve();
    await answer.promise;
  });
  const url = await served(t, app);
  const { ops } = bridgeMetrics();
  for (const target of [app, url]) {
    const client = await connect(target, { revision: MODERN });
    const changes = client.listen({ uris: [ONE] });
    await within(ask.promise, "the question");
    ask = deferred();
    await changes.return();
    await assert.rejects(changes.honoured, { kind: "cancelled" });
    await ended(changes);
    await client.ping();
    await client.close();
  }
  answer.resolve();
  await until("nobody listens", () => app.metrics().listeners === 0 && app.metrics().in_flight === 0);
  await settled(ops);
  assert.equal(asked.filter((subscribed) => subscribed).length, 2);
});

test("what is asked for several times comes in order, and changes of one kind once", async () => {
  const app = server();
  await withClient(app, async (client) => {
    const changes = client.listen({ tools: true, prompts: true });
    await changes.honoured;
    const waiting = [changes.next(), changes.next(), changes.next()];
    app.listChanged("tool");
    assert.deepEqual((await within(waiting[0], "a change")).value, { type: "toolsListChanged" });
    app.listChanged("prompt");
    assert.deepEqual((await within(waiting[1], "a change")).value, { type: "promptsListChanged" });
    await changes.return();
    assert.equal((await within(waiting[2], "the end")).done, true);
  });
});

test("what is not offered is named", async () => {
  const app = new Server("tools").tool("t", () => "t");
  for (const revision of REVISIONS) {
    const client = await connect(app, { revision });
    const lists = client.listen({ tools: true, prompts: true });
    await assert.rejects(lists.honoured, (error) => {
      assert.match(error.stack, /^UnsupportedError: "promptsListChanged".*\n(.*\n)*.*listen\.test\.mjs/);
      return error instanceof UnsupportedError;
    });
    const loop = async () => {
      for await (const _ of lists) break;
    };
    await assert.rejects(loop, (error) => {
      assert.match(error.message, /"promptsListChanged"/);
      // It shows where it was asked for.
      assert.match(error.stack, /listen\.test\.mjs/);
      return error instanceof UnsupportedError;
    });
    await ended(lists);
    const { signal } = new AbortController();
    await assert.rejects(client.listen({ uris: [ONE], signal }).honoured, /"resourceSubscriptions"/);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    for (const nothing of [undefined, {}, { tools: false, uris: [] }]) {
      await assert.rejects(client.listen(nothing).next(), MisuseError);
    }
    assert.throws(() => client.listen({ tool: true }), /unknown option "tool", did you mean "tools"/);
    assert.throws(() => client.listen({ tools: "yes" }), /tools: expected a boolean, got "yes"/);
    assert.throws(() => client.listen({ uris: ONE }), /uris: expected a list/);
    assert.throws(() => client.listen({ uris: [ONE, null] }), /uris: expected a string, got null/);
    await client.close();
    await assert.rejects(client.listen({ tools: true }).next(), ClosedError);
  }
  // Of resources that are not there the server does not tell, and says so.
  await withClient(
    server(),
    async (client) => {
      const changes = client.listen({ uris: [ONE, "other://x"] });
      assert.deepEqual((await changes.honoured).uris, [ONE]);
    },
    { revision: MODERN },
  );
});

test("a client that closes says so to whoever listens", async (t) => {
  const app = server();
  await everywhere(t, app, async (client, what) => {
    const waits = client.listen({ tools: true });
    const looks = client.listen({ tools: true });
    await waits.honoured;
    await looks.honoured;
    const rejects = (change) => assert.rejects(within(change, "the end"), ClosedError, what);
    const told = rejects(waits.next());
    await client.close();
    await Promise.all([told, rejects(looks.next())]);
    await ended(waits);
    await ended(looks);
  });
});

test("a server that closes ends the loop", async () => {
  for (const over of ["memory", "http"]) {
    const app = server();
    const url = deferred();
    const ends = over === "http" ? app.serveHttp({ port: 0, onListening: url.resolve }) : undefined;
    const target = ends ? await within(url.promise, "listening") : app;
    const client = await connect(target, { revision: MODERN });
    const seen = [];
    const changes = client.listen({ tools: true, uris: [ONE] });
    await changes.honoured;
    const loop = (async () => {
      for await (const change of changes) seen.push(change);
    })();
    app.resourceUpdated(ONE);
    await until("the change", () => seen.length === 1);
    await app.close();
    await within(loop, "the end of the loop");
    assert.deepEqual(seen, [updated(ONE)], over);
    assert.equal(app.metrics().listeners, 0);
    await client.close();
    await ends;
  }
  // Where there is no stream that could end in order, the connection does.
  const app = server();
  const client = await connect(app, { revision: "2025-11-25" });
  const changes = client.listen({ tools: true });
  await changes.honoured;
  await app.close();
  await assert.rejects(within(changes.next(), "the end"), ClosedError);
  await client.close();
  await settled();
});

test("after a cut everything is said to have changed, once, and it goes on", async (t) => {
  const app = server();
  const way = await wire(t, await served(t, app, { allowedHosts: ["127.0.0.1"] }));
  const heard = [];
  const client = await connect(way.url, { revision: MODERN, onListChanged: (kind) => heard.push(kind) });
  const changes = client.listen({ tools: true, uris: [ONE] });
  await changes.honoured;
  way.cut();
  assert.deepEqual([await next(changes), await next(changes)], [{ type: "toolsListChanged" }, updated(ONE)]);
  await until("the listeners are told", () => heard.length === 3);
  assert.deepEqual(heard, ["tool", "prompt", "resource"]);
  app.resourceUpdated(ONE);
  assert.deepEqual(await next(changes), updated(ONE));
  app.listChanged("prompt");
  await until("the listener is told", () => heard.length === 4);
  await client.close();
  await until("nobody listens", () => app.metrics().listeners === 0);
});

test("listeners that were written for older revisions are told in all of them", async (t) => {
  const app = server();
  const heard = { lists: [], resources: [], methods: [] };
  const take = async (what, count) => {
    await until(`${count} of ${what}`, () => heard[what].length >= count);
    return heard[what].splice(0);
  };
  const policy = {
    onListChanged: (kind) => heard.lists.push(kind),
    onResourceUpdated: (uri) => heard.resources.push(uri),
    onNotification: (method, params) => heard.methods.push([method, params]),
  };
  const use = async (client, what) => {
    app.tool("more", () => "more");
    assert.deepEqual(await take("lists", 1), ["tool"], what);
    app.removeTool("more");
    assert.deepEqual(await take("lists", 1), ["tool"], what);
    app.setEnabled("prompt", "p", false);
    assert.deepEqual(await take("lists", 1), ["prompt"], what);
    app.setEnabled("prompt", "p", true);
    assert.deepEqual(await take("lists", 1), ["prompt"], what);
    await client.subscribe(ONE);
    await client.subscribe("test://many/1");
    app.resourceUpdated(ONE);
    assert.deepEqual(await take("resources", 1), [ONE], what);
    await client.unsubscribe(ONE);
    app.resourceUpdated(ONE);
    app.resourceUpdated("test://many/1");
    assert.deepEqual(await take("resources", 1), ["test://many/1"], what);
    await assert.rejects(client.subscribe("other://x"), (error) => ["rpc", "unsupported"].includes(error.kind), what);
    // A listener has its own.
    const changes = client.listen({ prompts: true });
    await changes.honoured;
    app.listChanged("prompt");
    assert.deepEqual(await next(changes), { type: "promptsListChanged" }, what);
    assert.deepEqual(await take("lists", 1), ["prompt"], what);
    await changes.return();
    const methods = await take("methods", 7);
    assert.equal(methods.length, 7, what);
    assert.equal(methods[0][0], "notifications/tools/list_changed", what);
    assert.deepEqual(methods[4], ["notifications/resources/updated", { uri: ONE }], what);
  };
  await everywhere(t, app, use, { policy });
  for (const revision of REVISIONS) await withClient(app, (client) => use(client, "helper"), { ...policy, revision });
});

test("who hears, listens; who does not, does not", async () => {
  const app = server();
  const listening = async (options) => {
    const client = await connect(app, { revision: MODERN, ...options });
    const count = app.metrics().listeners;
    await client.close();
    await until("nobody listens", () => app.metrics().listeners === 0);
    return count;
  };
  assert.equal(await listening({}), 0);
  assert.equal(await listening({ onLog: () => {}, onResourceUpdated: () => {} }), 0);
  assert.equal(await listening({ onListChanged: () => {} }), 1);
  assert.equal(await listening({ onNotification: () => {} }), 1);
  assert.equal(await listening({ policy: { onListChanged: () => {} } }), 1);

  const heard = deferred();
  const group = await connectMany({ one: app, two: server() }, { revision: MODERN, onListChanged: heard.resolve });
  app.listChanged("prompt");
  assert.equal(await within(heard.promise, "the change"), "prompt");
  const changes = group.client("two").listen({ tools: true });
  await changes.honoured;
  await group.close();
  await assert.rejects(changes.next(), ClosedError);
  await until("nobody listens", () => app.metrics().listeners === 0);
});

test("a server that refuses is warned of, and the rest works", async () => {
  const app = server().middleware((request, context, next) => {
    if (request.method === "subscriptions/listen") throw new RpcError(-32603, "not today");
    return next(request, context);
  });
  const warned = once(process, "warning");
  const use = async (client) => {
    const [warning] = await within(warned, "the warning");
    assert.deepEqual([warning.name, /not today/.test(warning.message)], ["TricornWarning", true]);
    assert.equal((await client.callTool("t")).text, "t");
    await assert.rejects(client.subscribe(ONE), { code: -32603 });
    await assert.rejects(client.listen({ tools: true }).next(), { code: -32603 });
  };
  await withClient(app, use, { revision: MODERN, onListChanged: () => {} });
});

test("streams are counted and bounded", async () => {
  const app = server({ maxListeners: 2 });
  await withClient(
    app,
    async (client) => {
      const some = [client.listen({ tools: true }), client.listen({ tools: true })];
      await Promise.all(some.map(({ honoured }) => honoured));
      const { listeners, in_flight: inFlight } = app.metrics();
      assert.deepEqual([listeners, inFlight], [2, 0]);
      await assert.rejects(client.listen({ tools: true }).next(), (error) => {
        return error instanceof RpcError && error.code === -32600 && /max_listeners/.test(error.message);
      });
      await some[0].return();
      await until("one is gone", () => app.metrics().listeners === 1);
      const another = client.listen({ tools: true });
      await another.honoured;
    },
    { revision: MODERN },
  );
  await until("nobody listens", () => app.metrics().listeners === 0);
  assert.throws(() => server({ maxListeners: 0 }), /"maxListeners": expected at least 1, got 0/);
});

test("what nobody refers to any more is not listened to", async () => {
  const app = server();
  await withClient(
    app,
    async (client) => {
      // Until it is acknowledged, what waits for that refers to it.
      await (() => client.listen({ tools: true }).honoured)();
      assert.equal(app.metrics().listeners, 1);
      await until("it is let go", () => {
        gc();
        return app.metrics().listeners === 0;
      });
      const left = async (end) => {
        const changes = client.listen({ tools: true });
        await changes.honoured;
        await end(changes);
        return new WeakRef(changes);
      };
      const ended = [await left((changes) => changes.return()), await left((changes) => changes.close())];
      await until("nothing of it is kept", () => {
        gc();
        return ended.every((one) => one.deref() === undefined);
      });
    },
    { revision: MODERN },
  );
});

test("a program that waits for a change goes on", async (t) => {
  const program = start(t, "loop");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /heard toolsListChanged/);
});
