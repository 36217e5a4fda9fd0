// Waiting for the result of a task: of revision 2025-11-25, and of the extension of 2026-07-28.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as ask, createServer } from "node:http";
import { test } from "node:test";
import { CancelledError, connect, RpcError, Server, TimeoutError } from "tricorn";
import { bridgeMetrics } from "tricorn/testing";
import { deferred, legacy, within } from "./program.mjs";

/** Methods that ask for a task's result. */
const LOOKS = { [legacy.revision]: "tasks/result", "2026-07-28": "tasks/get" };

/** Makes a proxy between a client and its server, which breaks off the next request of the method that `cuts` says. */
async function between(t, url) {
  const made = { cuts: undefined, cut: deferred(), seen: [] };
  const front = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const method = body.length > 0 ? JSON.parse(body).method : request.method;
    made.seen.push(method);
    if (method === made.cuts) {
      made.cuts = undefined;
      request.socket.destroy();
      made.cut.resolve();
      return;
    }
    const { host: _, ...headers } = request.headers;
    const back = ask(url, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    back.on("error", () => response.destroy());
    response.on("close", () => back.destroy());
    back.end(body);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(() => {
    front.closeAllConnections();
    front.close();
  });
  made.url = `http://127.0.0.1:${front.address().port}/mcp`;
  return made;
}

/** A server with a slow tool, and the way to it. */
async function slow(t) {
  const made = { open: deferred(), ended: deferred() };
  const app = new Server("results", { tasks: { taskPollInterval: 10 }, onError: () => {} })
    .tool("slow", { taskSupport: "required" }, async (_, ctx) => {
      ctx.signal.addEventListener("abort", made.ended.resolve);
      await Promise.race([made.open.promise, made.ended.promise]);
      return "seat 1A";
    })
    .tool("refuse", { taskSupport: "required" }, () => {
      throw new RpcError(-32_050, "no such seat");
    });
  t.after(() => app.close());
  const url = await new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
  return Object.assign(made, { front: await between(t, url) });
}

for (const [revision, looks] of Object.entries(LOOKS)) {
  test(`a connection that breaks off is nothing to who waits for a result (${revision})`, async (t) => {
    const { open, front } = await slow(t);
    const client = await connect(front.url, { revision, tasks: true });
    const task = await client.callToolTask("slow");
    front.cuts = looks;
    const result = task.result();
    await within(front.cut.promise, "the cut");
    open.resolve();
    assert.equal((await within(result, "the result")).text, "seat 1A");
    assert.ok(front.seen.filter((method) => method === looks).length > 1);
    // It is there still, also for who has the id alone.
    assert.equal((await client.task(task.id).result()).text, "seat 1A");
    await client.close();
  });

  test(`waiting for a result has the limits that it is given, and the task none of them (${revision})`, async (t) => {
    const { open, ended, front } = await slow(t);
    const client = await connect(front.url, { revision, tasks: true, requestTimeout: 50 });
    const task = await client.callToolTask("slow");
    for (const options of [{ timeout: 30 }, { maxTimeout: 30 }]) {
      await assert.rejects(within(task.result(options), "the limit"), TimeoutError);
    }
    await assert.rejects(task.result({ signal: AbortSignal.timeout(30) }), { name: "TimeoutError" });
    assert.equal((await task.status()).status, "working");
    // Without a limit it is not that of the client's requests.
    const result = task.result();
    await assert.rejects(task.result({ timeout: 100 }), TimeoutError);
    open.resolve();
    assert.equal((await within(result, "the result")).text, "seat 1A");

    const failing = await client.callToolTask("refuse");
    await assert.rejects(failing.result(), { code: -32_050, message: /no such seat/ });
    await assert.rejects(client.task("nobody's").result(), { code: -32_602 });
    assert.equal(bridgeMetrics().calls, 0);
    await client.close();
    await assert.rejects(task.result(), { name: "ClosedError" });
    ended.resolve();
  });

  test(`the result of a task that is cancelled is that it was (${revision})`, async (t) => {
    const { ended, front } = await slow(t);
    const client = await connect(front.url, { revision, tasks: true });
    const task = await client.callToolTask("slow");
    const result = assert.rejects(task.result(), CancelledError);
    await task.cancel();
    await within(ended.promise, "the end of the handler");
    await within(result, "the result");
    await client.close();
  });
}
