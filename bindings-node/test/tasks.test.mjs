// Calls that go on after their answer, as revision 2025-11-25 has them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CancelledError, MisuseError, RpcError, Server, TaskHandle, ToolError, UnsupportedError } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { asking, deferred, legacy, within } from "./program.mjs";

/** A server with a slow tool that says what it is doing and waits for `open`. */
function slow(options = {}) {
  const made = { open: deferred(), began: deferred(), ended: deferred() };
  // It would not look again for an hour: what it hears is enough.
  const tasks = { taskPollInterval: 3_600_000 };
  made.app = new Server("tasks", { tasks, onError: () => {}, ...options })
    .tool("slow", { taskSupport: "optional" }, async ({ text }, ctx) => {
      ctx.setStatus(`working on ${text}`);
      made.began.resolve(ctx.request.taskId);
      ctx.signal.addEventListener("abort", () => made.ended.resolve());
      await made.open.promise;
      return text;
    })
    .tool("must", { taskSupport: "required" }, (_, ctx) => typeof ctx.request.taskId)
    .tool("plain", (_, ctx) => String(ctx.setStatus("nobody looks")))
    .tool("fail", { taskSupport: "optional" }, () => {
      throw new ToolError("no");
    });
  return made;
}

test("a handle follows its task and comes back to it", async () => {
  const { app, open, began } = slow();
  await withClient(
    app,
    async (client) => {
      const task = await client.callToolTask("slow", { text: "a" }, { ttl: 60_000 });
      assert.ok(task instanceof TaskHandle);
      assert.equal(await within(began.promise, "the call"), task.id);
      const changes = task.changes();
      const { value: first } = await changes.next();
      assert.deepEqual(
        [first.taskId, first.status, first.statusMessage, first.ttl],
        [task.id, "working", "working on a", 60_000],
      );
      assert.deepEqual(await client.listTasks(), [await task.status()]);
      const result = task.result();
      const next = changes.next();
      open.resolve();
      assert.equal((await within(next, "the change")).value.status, "completed");
      assert.equal((await changes.next()).done, true);
      assert.equal((await result).text, "a");
      const again = client.task(task.id);
      assert.equal((await again.wait()).status, "completed");
      assert.equal((await again.result()).text, "a");
      await assert.rejects(again.cancel(), { code: -32602 });
      await assert.rejects(client.task("nobody's").status(), { code: -32602 });
      assert.equal(app.metrics().tasks, 1);
    },
    legacy,
  );
});

test("a task is cancelled by its handle, and its result is that it was", async () => {
  const { app, began, ended } = slow();
  await withClient(
    app,
    async (client) => {
      const task = await client.callToolTask("slow", { text: "a" });
      await within(began.promise, "the call");
      const result = assert.rejects(task.result(), CancelledError);
      const waits = task.wait();
      assert.equal((await task.cancel()).status, "cancelled");
      await within(ended.promise, "the end of the handler");
      await result;
      assert.equal((await within(waits, "the end of the task")).status, "cancelled");
    },
    legacy,
  );
});

test("a call may wait for its task", async () => {
  const { app, open, began, ended } = slow();
  await withClient(
    app,
    async (client) => {
      const controller = new AbortController();
      const given = client.callTool("slow", { text: "a" }, { task: true, signal: controller.signal });
      await within(began.promise, "the call");
      controller.abort();
      await assert.rejects(given, { name: "AbortError" });
      await within(ended.promise, "the end of the handler");
      open.resolve();
      assert.equal((await client.callTool("slow", { text: "b" }, { task: { ttl: 1000 } })).text, "b");
      const failed = await client.callTool("fail", {}, { task: true });
      assert.deepEqual([failed.isError, failed.text], [true, "no"]);
      assert.equal((await client.callTool("plain")).text, "true");
      // A tool that must be one is, once that is known.
      await assert.rejects(client.callTool("must"), { code: -32601 });
      const tools = await client.listTools();
      assert.deepEqual(
        tools.map(({ execution }) => execution?.taskSupport),
        ["optional", "required", undefined, "optional"],
      );
      assert.equal((await client.callTool("must")).text, "string");
      await assert.rejects(client.callTool("plain", {}, { task: true }), UnsupportedError);
      await assert.rejects(client.callToolTask("plain"), UnsupportedError);
    },
    legacy,
  );
});

test("giving up looking leaves the task alone", async () => {
  const { app, open, began } = slow();
  await withClient(
    app,
    async (client) => {
      const task = await client.callToolTask("slow", { text: "a" });
      await within(began.promise, "the call");
      const controller = new AbortController();
      const waits = [task.wait({ signal: controller.signal }), task.result({ signal: controller.signal })];
      await task.status();
      controller.abort(new Error("enough"));
      for (const wait of waits) await assert.rejects(wait, /enough/);
      assert.equal((await task.status()).status, "working");
      open.resolve();
      assert.equal((await task.result()).text, "a");
    },
    legacy,
  );
  assert.deepEqual([bridgeMetrics().calls, bridgeMetrics().ops], [0, 0]);
});

test("what is not declared is not sent", async () => {
  const { app } = slow();
  for (const [server, options] of [
    [app, { revision: "2026-07-28" }],
    [app, { revision: "2025-06-18" }],
    [slow({ tasks: false }).app, legacy],
  ]) {
    await withClient(
      server,
      async (client) => {
        await assert.rejects(client.callToolTask("slow"), UnsupportedError);
        await assert.rejects(client.callTool("slow", {}, { task: true }), UnsupportedError);
        await assert.rejects(client.listTasks(), UnsupportedError);
        const must = client.callTool("must");
        // The extension knows of it that it must, other revisions do not.
        if (server === app && client.era === "modern") await assert.rejects(must, { code: -32021 });
        else assert.equal((await must).text, "undefined");
      },
      options,
    );
  }
  await withClient(
    app,
    (client) => assert.rejects(client.callToolTask("plain"), (error) => error instanceof RpcError),
    legacy,
  );
  assert.throws(() => new Server("x", { tasks: { maxTask: 1 } }), MisuseError);
  assert.throws(() => new Server("x", { tasks: { maxTasks: 0 } }), MisuseError);
  assert.throws(() => new Server("x").tool("t", { taskSupport: "maybe" }, () => ""), MisuseError);
});

test("a server asks for what its client does as a task", async () => {
  const ids = [];
  const sampling = (_, ctx) => {
    ids.push(ctx.request.taskId);
    ctx.setStatus("thinking");
    return "four";
  };
  const ask = (task) => (ctx) => ctx.sample("2 + 2?", { maxTokens: 1 }, task && { task });
  assert.equal((await asking(ask({ ttl: 60_000 }), { sampling, tasks: true })).text, "four");
  assert.equal((await asking(ask(undefined), { sampling, tasks: true })).text, "four");
  assert.deepEqual([typeof ids[0], ids[1]], ["string", undefined]);
  await assert.rejects(asking(ask(true), { sampling }), UnsupportedError);
});
