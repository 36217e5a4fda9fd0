// What a server has from its first use to its last.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, MisuseError, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { both, deferred, start, within } from "./program.mjs";

const accepts = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A server whose lifespan writes down what happens. */
function counted(options = {}) {
  const events = [];
  const stopped = deferred();
  const lifespan = {
    start: async () => {
      events.push("start");
      await null;
      return { name: "pool" };
    },
    stop: (state) => {
      events.push(`stop ${state.name}`);
      stopped.resolve();
    },
  };
  const app = new Server("alive", { lifespan, ...options });
  return { app, events, stopped };
}

test("the state is there for all functions, from the first use to the last", async () => {
  const { app, events } = counted();
  app
    .tool("tool", (_, ctx) => ctx.state.name)
    .resource("test://a", (_, ctx) => ctx.state.name)
    .prompt("prompt", { arguments: [{ name: "x" }] }, (_, ctx) => ctx.state.name)
    .middleware(async (request, context, next) => {
      assert.equal(context.state.name, "pool");
      return next(request, context);
    })
    .onComplete((_, ctx) => [ctx.state.name]);
  assert.deepEqual(events, []);
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const first = await connect(app, { revision });
    assert.deepEqual(events, ["start"]);
    const second = await connect(app, { revision });
    assert.equal((await first.callTool("tool")).text, "pool");
    assert.equal((await first.readResource("test://a")).text, "pool");
    assert.equal((await second.getPrompt("prompt")).messages[0].content.text, "pool");
    const { values } = await second.complete({ type: "ref/prompt", name: "prompt" }, "x", "");
    assert.deepEqual(values, ["pool"]);
    await first.close();
    assert.deepEqual(events, ["start"]);
    await second.close();
    assert.deepEqual(events.splice(0), ["start", "stop pool"]);
  }
});

test("a state that need not be started", async () => {
  const app = new Server("plain", { state: { n: 7 } }).tool("n", (_, ctx) => ctx.state.n);
  await both(app, async (client) => assert.equal((await client.callTool("n")).text, "7"));
  const none = new Server("none").tool("n", (_, ctx) => String(ctx.state));
  await withClient(none, async (client) => assert.equal((await client.callTool("n")).text, "undefined"));
});

test("a start that fails is why connecting fails, and is tried again", async () => {
  class Down extends Error {}
  const down = new Down("the database is down");
  let tries = 0;
  const start = () => {
    if (++tries < 3) throw down;
    return "up";
  };
  const app = new Server("down", { lifespan: { start } }).tool("state", (_, ctx) => ctx.state);
  assert.equal(await connect(app).catch((error) => error), down);
  assert.equal(await app.serveHttp({ port: 0 }).catch((error) => error), down);
  await withClient(app, async (client) => assert.equal((await client.callTool("state")).text, "up"));
});

test("a stop that fails is told to onError", async () => {
  const heard = [];
  const lifespan = {
    start: () => 1,
    stop: () => {
      throw new Error("stuck");
    },
  };
  const onError = (error, name) => heard.push([error.message, name]);
  await withClient(new Server("stuck", { lifespan, onError }), (client) => client.ping());
  assert.deepEqual(heard, [["stuck", "lifespan"]]);
});

test("served over HTTP it lives until it is closed", async () => {
  const { app, events } = counted();
  const url = deferred();
  const served = app.serveHttp({ port: 0, onListening: url.resolve });
  await connect(await within(url.promise, "listening")).then((client) => client.close());
  assert.deepEqual(events, ["start"]);
  await app.close();
  await served;
  assert.deepEqual(events, ["start", "stop pool"]);
});

test("mounted it begins with the first request", async () => {
  const { app, events } = counted();
  app.tool("tool", (_, ctx) => ctx.state.name);
  assert.deepEqual(events, []);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  await app.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", headers: accepts, body }));
  assert.deepEqual(events, ["start"]);
});

test("mounted it says no more than that it could not start", async () => {
  const heard = [];
  const start = () => {
    throw new RangeError("the password is 7");
  };
  const app = new Server("down", { lifespan: { start }, onError: (error, name) => heard.push([error.message, name]) });
  const response = await app.fetch(
    new Request("http://127.0.0.1/mcp", { method: "POST", headers: accepts, body: "{}" }),
  );
  assert.equal(response.status, 503);
  assert.match(await response.text(), /could not start/);
  assert.deepEqual(heard, [["the password is 7", "lifespan"]]);
});

test("Ctrl-C and the end of input stop it once", async (t) => {
  for (const end of ["SIGTERM", "SIGINT", "input"]) {
    const server = start(t, "alive");
    await server.says("started");
    if (end === "input") server.child.stdin.end();
    else server.child.kill(end);
    const { code } = await server.exit();
    assert.equal(code, end === "SIGINT" ? 130 : 0);
    assert.equal(server.stderr.match(/stopped/g)?.length, 1);
  }
});

test("options that do not fit", () => {
  assert.throws(() => new Server("x", { lifespan: {} }), MisuseError);
  assert.throws(() => new Server("x", { lifespan: { start: () => 1 }, state: 1 }), MisuseError);
  assert.throws(() => new Server("x", { lifespn: { start: () => 1 } }), /did you mean "lifespan"\?/);
});
