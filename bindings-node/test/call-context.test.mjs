// The call's own context: what runs for a request has the AsyncLocalStorage of whoever caused it, and keeps nothing.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import v8 from "node:v8";
import vm from "node:vm";
import { connect, logging, Server } from "tricorn";
import { bridgeMetrics } from "tricorn/testing";
import { deferred, legacy, within } from "./program.mjs";

const PEOPLE = ["ann", "bob", "eve"];
const ERAS = [{}, legacy];
const als = new AsyncLocalStorage();
const who = () => als.getStore()?.user ?? "none";
v8.setFlagsFromString("--expose-gc");
const gc = vm.runInNewContext("gc");

/** One of each function that a request can reach, each of which says whose request it is. */
function everything(name, options) {
  return new Server(name, options)
    .tool("later", async () => {
      const before = who();
      await new Promise((resolve) => setTimeout(resolve, 1));
      return `${before} ${who()}`;
    })
    .tool("plain", () => `${who()} ${who()}`)
    .resource("test://static", () => who())
    .resource("test://{name}", () => who())
    .prompt("prompt", { arguments: [{ name: "a" }] }, () => who())
    .onComplete(() => [who()]);
}

async function askEverything(client, name) {
  for (const tool of ["later", "plain"]) assert.equal((await client.callTool(tool)).text, `${name} ${name}`);
  assert.equal((await client.readResource("test://static")).text, name);
  assert.equal((await client.readResource("test://x")).text, name);
  assert.equal((await client.getPrompt("prompt")).messages[0].content.text, name);
  assert.deepEqual((await client.complete({ type: "ref/prompt", name: "prompt" }, "a", "")).values, [name]);
}

for (const options of ERAS) {
  test(`in memory, one after the other and all at once ${JSON.stringify(options)}`, async () => {
    const app = everything("memory");
    const user = (user) =>
      als.run({ user }, async () => {
        const client = await connect(app, options);
        await askEverything(client, user);
        await client.close();
      });
    for (const name of PEOPLE) await user(name);
    await Promise.all(PEOPLE.map(user));
  });
}

test("one client that several share", async () => {
  const client = await connect(everything("shared"));
  await Promise.all(PEOPLE.map((user) => als.run({ user }, () => askEverything(client, user))));
  assert.equal((await client.callTool("later")).text, "none none");
  await client.close();
});

const MODERN = "2026-07-28";

function modern(tool, user) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { name: tool, arguments: {}, _meta };
  return {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": "tools/call",
      "mcp-name": tool,
      "x-user": user,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  };
}

async function textOf(response) {
  const body = await response.text();
  const data = body.match(/^data: ?(.*)$/m)?.[1] ?? body;
  return JSON.parse(data).result.content[0].text;
}

/** As Hono and its like run a request. */
const fetches = (app) => (tool, user, given) =>
  als.run({ user }, async () =>
    textOf(await app.fetch(new Request("http://localhost/mcp", modern(tool, user)), given)),
  );

test("fetch", async () => {
  const app = everything("fetch");
  const asked = [];
  app.middleware(async (request, ctx, next) => {
    asked.push(who());
    return next(request, ctx);
  });
  app.principal(() => who());
  const call = fetches(app);
  for (const name of PEOPLE) assert.equal(await call("later", name), `${name} ${name}`);
  const all = await Promise.all(PEOPLE.map((name) => call("later", name)));
  assert.deepEqual(
    all,
    PEOPLE.map((name) => `${name} ${name}`),
  );
  assert.deepEqual(asked, [...PEOPLE, ...PEOPLE]);
});

test("two requests at once, each in its own", async () => {
  const there = new Set();
  const all = deferred();
  const app = new Server("at once").tool("slow", async () => {
    const before = who();
    there.add(before);
    if (there.size === PEOPLE.length) all.resolve();
    await all.promise;
    return `${before} ${who()}`;
  });
  const call = fetches(app);
  assert.deepEqual(
    await within(Promise.all(PEOPLE.map((name) => call("slow", name))), "all"),
    PEOPLE.map((name) => `${name} ${name}`),
  );
});

async function listening(t, handle) {
  const web = createServer(handle);
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  t.after(() => web.close());
  return `http://127.0.0.1:${web.address().port}/`;
}

for (const options of ERAS) {
  test(`a listener ${JSON.stringify(options)}`, async (t) => {
    const app = everything("listener");
    const listener = app.listener();
    const url = await listening(t, (q, r) => als.run({ user: q.headers["x-user"] }, () => listener(q, r)));
    const user = async (name) => {
      const client = await connect({ url, headers: { "x-user": name } }, options);
      await askEverything(client, name);
      await client.close();
    };
    for (const name of PEOPLE) await user(name);
    await Promise.all(PEOPLE.map(user));
  });
}

test("nothing of a request is kept", async (t) => {
  const app = everything("kept");
  const listener = app.listener();
  const left = [];
  const within = (user, f) => {
    const store = { user };
    left.push(new WeakRef(store));
    return als.run(store, f);
  };
  const url = await listening(t, (q, r) => within(q.headers["x-user"], () => listener(q, r)));
  await (async () => {
    for (const name of PEOPLE) {
      await within(name, async () => {
        const client = await connect(app);
        await client.callTool("later");
        await client.close();
        await textOf(await app.fetch(new Request("http://localhost/mcp", modern("later", name))));
      });
      const client = await connect({ url, headers: { "x-user": name } });
      await client.callTool("later");
      await client.close();
    }
  })();
  assert.ok(left.length >= 2 * PEOPLE.length);
  for (let tries = 0; tries < 200 && left.some((ref) => ref.deref()); tries++) {
    await turn();
    gc();
    if (tries > 20) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.deepEqual(left.filter((ref) => ref.deref()).length, 0);
  assert.deepEqual(bridgeMetrics(), { queued: 0, calls: 0, ops: 0, dropped: 0 });
});

test("what the web framework knows of a request is ctx.host", async (t) => {
  const seen = [];
  const note = (where, ctx) => seen.push([where, ctx.host]);
  const app = new Server("host")
    .tool("tool", (_, ctx) => {
      note("tool", ctx);
      return `${ctx.host?.user} ${ctx.request.headers["x-user"]}`;
    })
    .resource("test://r", (_, ctx) => {
      note("resource", ctx);
      return `${ctx.host?.user}`;
    });
  app.middleware((request, ctx, next) => {
    note("middleware", ctx);
    return next(request, ctx);
  });
  const context = { user: "ann" };
  const call = fetches(app);
  assert.equal(await call("tool", "sent", { context }), "ann sent");
  assert.deepEqual(
    seen.map(([where, host]) => [where, host === context]),
    [
      ["middleware", true],
      ["tool", true],
    ],
  );
  assert.equal(await call("tool", "sent"), "undefined sent");
  // A body that was read before.
  const request = new Request("http://localhost/mcp", modern("tool", "sent"));
  const body = await request.json();
  for (const given of [body, JSON.stringify(body), new TextEncoder().encode(JSON.stringify(body))]) {
    assert.equal(await textOf(await app.fetch(request, { context, body: given })), "ann sent");
  }
  // What other callers of `fetch` give as a second argument is not ours.
  assert.equal(await call("tool", "sent", undefined), "undefined sent");
  const listener = app.listener();
  const url = await listening(t, (q, r) => {
    q.headers["x-user"] = `checked ${q.headers["x-user"]}`;
    q.headers["x-new"] = "added";
    delete q.headers["x-gone"];
    listener(q, r, { context: { user: q.headers["x-user"] } });
  });
  const client = await connect({ url, headers: { "x-user": "bob", "x-gone": "1" } });
  assert.equal((await client.callTool("tool")).text, "checked bob checked bob");
  assert.equal((await client.readResource("test://r")).text, "checked bob");
  await client.close();
  const memory = await connect(app);
  assert.equal((await memory.callTool("tool")).text, "undefined undefined");
  await memory.close();
});

for (const options of ERAS) {
  test(`what a client is asked and told belongs to its call ${JSON.stringify(options)}`, async () => {
    const heard = [];
    const app = new Server("asks").tool("ask", async (_, ctx) => {
      ctx.progress(1);
      const { content } = await ctx.elicit("?", { type: "object", properties: { who: { type: "string" } } });
      return content.who;
    });
    const elicitation = async () => {
      await turn();
      return { who: who() };
    };
    const client = await als.run({ user: "connect" }, () => connect(app, { ...options, elicitation }));
    const onProgress = () => heard.push(who());
    const ask = (user) =>
      als.run({ user }, async () => assert.equal((await client.callTool("ask", {}, { onProgress })).text, user));
    await Promise.all(PEOPLE.map(ask));
    assert.deepEqual([...new Set(heard)].sort(), PEOPLE);
    await client.close();
  });
}

test("what belongs to no call runs where the client was connected", async () => {
  const app = everything("changes");
  const heard = [];
  const next = [deferred(), deferred()];
  const onListChanged = () => {
    heard.push(who());
    next[heard.length - 1]?.resolve();
  };
  const client = await als.run({ user: "connect" }, () => connect(app, { ...legacy, onListChanged }));
  await als.run({ user: "later" }, () => client.listTools());
  als.run({ user: "adds" }, () => app.tool("more", () => "x"));
  await within(next[0].promise, "the change");
  assert.deepEqual(heard, ["connect"]);
  await client.close();
});

test("a handler sees what the middleware around it has set", async () => {
  const app = everything("wins");
  app.middleware((request, ctx, next) => als.run({ user: `${who()}+` }, () => next(request, ctx)));
  const call = fetches(app);
  assert.equal(await call("later", "ann"), "ann+ ann+");
  assert.equal(await call("later", "bob"), "bob+ bob+");
});

test("errors and logs are heard in their request, the lifespan where it was begun", async () => {
  const heard = [];
  const lives = [];
  const app = new Server("heard", {
    onError: () => heard.push(`error ${who()}`),
    lifespan: { start: () => void lives.push(`start ${who()}`), stop: () => {} },
  })
    .tool("fails", async () => {
      await turn();
      throw new Error("x");
    })
    .tool("throws", () => {
      throw new Error("x");
    });
  app.middleware(logging(() => heard.push(`log ${who()}`)));
  const user = (user) =>
    als.run({ user }, async () => {
      const client = await connect(app);
      await client.callTool("fails");
      await client.callTool("throws");
      await client.close();
    });
  for (const name of PEOPLE) await user(name);
  const calls = heard.filter((what) => what.startsWith("error"));
  assert.deepEqual(
    calls,
    PEOPLE.flatMap((name) => [`error ${name}`, `error ${name}`]),
  );
  for (const name of PEOPLE) assert.ok(heard.includes(`log ${name}`));
  assert.deepEqual(
    lives,
    PEOPLE.map((name) => `start ${name}`),
  );
  // Of a mounted server it is no request's.
  const mounted = everything("mounted", { lifespan: { start: () => void lives.push(`mounted ${who()}`) } });
  await fetches(mounted)("later", "ann");
  assert.equal(lives.at(-1), "mounted none");
  await mounted.close();
});

test("a task goes on in the context of its request", async () => {
  const go = deferred();
  const app = new Server("task", { tasks: {} }).tool("slow", { taskSupport: "optional" }, async () => {
    await go.promise;
    return who();
  });
  const client = await connect(app, legacy);
  const task = await als.run({ user: "ann" }, () => client.callToolTask("slow"));
  als.run({ user: "bob" }, () => go.resolve());
  assert.equal((await als.run({ user: "eve" }, () => task.result())).text, "ann");
  await client.close();
});
