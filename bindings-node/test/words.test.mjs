// Words for those who call something wrongly, and none for the others.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { connect, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { within } from "./program.mjs";

const misuse = (message) => ({ name: "MisuseError", message });

test("an unknown option is named with what was meant, or with all there are", async () => {
  assert.throws(
    () => new Server("y", { maxRequests: 1 }),
    misuse(/unknown option "maxRequests", did you mean "max\w+"\?$/),
  );
  assert.throws(() => new Server("y", { onErrors: 1 }), misuse(/did you mean "onError"\?$/));
  const all = /expected one of .*\bpageSize\b.*\bmaxQueuedNotifications\b.*\blifespan\b.*\bonError\b/;
  assert.throws(() => new Server("y", { qqqqqqqqqqqqqqqqqqqqqqqq: 1 }), misuse(all));
  await assert.rejects(connect(new Server("y"), { requestTimout: 1 }), misuse(/did you mean "requestTimeout"\?$/));
});

test("times are milliseconds, and options have their names here", async () => {
  assert.throws(
    () => new Server("y", { requestStateTtl: -5 }),
    misuse(/"requestStateTtl": expected milliseconds of at least 0, got -5$/),
  );
  const app = new Server("slow").tool("hang", (_, ctx) => once(ctx.signal, "abort"));
  const late = { name: "TimeoutError" };
  await withClient(
    app,
    async (client) => {
      await assert.rejects(client.callTool("hang"), { ...late, message: /within 100 ms \(requestTimeout\)$/ });
      await assert.rejects(client.callTool("hang", {}, { timeout: 50 }), {
        ...late,
        message: /within 50 ms \(timeout\)$/,
      });
      await assert.rejects(client.callTool("hang", {}, { maxTimeout: 50 }), {
        ...late,
        message: /within 50 ms \(maxTimeout\)$/,
      });
      await assert.rejects(
        client.callTool("hang", {}, { timeout: -1 }),
        misuse(/"timeout": expected milliseconds of at least 0, got -1$/),
      );
      const signal = new AbortController();
      await assert.rejects(
        client.callTool("hang", {}, { signal }),
        misuse(/expected an AbortSignal, got an AbortController: give its signal/),
      );
    },
    { requestTimeout: 100 },
  );
  await assert.rejects(connect(app, { signal: new AbortController() }), misuse(/give its signal/));
});

test("a pattern is no host, and an address without its scheme no command", async () => {
  const app = new Server("y");
  assert.throws(
    () => app.listener({ allowedHosts: ["*.example.com"] }),
    misuse(/"allowedHosts": "\*\.example\.com" is a pattern/),
  );
  assert.throws(
    () => app.http({ allowedOrigins: ["https://*.example.com"] }),
    misuse(/"allowedOrigins".*is a pattern/),
  );
  const answer = await app.fetch(new Request("http://evil.example.com/mcp", { method: "POST", body: "{}" }));
  assert.match(await answer.text(), /allowedHosts/);
  await assert.rejects(connect("localhost:8000/mcp"), misuse(/did you mean "http:\/\/localhost:8000\/mcp"\?/));
});

test("listening gives the URL and throws what goes wrong", async () => {
  const app = new Server("y").tool("t", () => "x");
  const { url, close } = await within(app.listen({ port: 0 }), "listening");
  const client = await connect(url);
  assert.equal((await client.callTool("t")).text, "x");
  const port = Number(new URL(url).port);
  await assert.rejects(within(app.listen({ port }), "the refusal"), { name: "TransportError", message: /in use/ });
  await assert.rejects(app.listen({ host: "192.0.2.1", port: 0 }), { name: "TransportError" });
  await assert.rejects(app.listen({ prot: 1 }), misuse(/did you mean "port"/));
  await client.close();
  const second = await app.listen({ port: 0 });
  await within(close(), "the end");
  await assert.rejects(fetch(url), TypeError);
  assert.equal((await fetch(second.url, { method: "DELETE" })).status, 400);
  await within(second.close(), "the end");
  await second.close();
  const failing = new Server("y", {
    lifespan: {
      start() {
        throw new RangeError("no database");
      },
    },
  });
  await assert.rejects(failing.listen({ port: 0 }), { name: "RangeError", message: "no database" });
});

test("many calls with one signal are no leak", async (t) => {
  const warned = t.mock.method(process, "emitWarning", () => {});
  const app = new Server("y").tool("wait", (_, ctx) => once(ctx.signal, "abort"));
  await withClient(app, async (client) => {
    const away = new AbortController();
    const calls = Array.from({ length: 40 }, () => client.callTool("wait", {}, { signal: away.signal }));
    away.abort(new Error("enough"));
    for (const call of calls) await assert.rejects(call, { message: "enough" });
  });
  await new Promise(setImmediate);
  assert.deepEqual(
    warned.mock.calls.map(({ arguments: [warning] }) => String(warning)),
    [],
  );
});

test("a name that clients refuse is warned of", (t) => {
  const warned = t.mock.method(process, "emitWarning", () => {});
  const app = new Server("y");
  for (const name of ["good-name_1.x", "bad name!", "x".repeat(129), "\u00e4"]) app.tool(name, () => 1);
  const said = warned.mock.calls.map(({ arguments: [warning] }) => String(warning));
  assert.equal(said.length, 3);
  assert.match(said[0], /^tool "bad name!": some clients refuse names other than 1 to 128 letters, digits/);
});
