// Tools that take longer than they may.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { MisuseError, Server } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";
import { both, deferred, legacy, start, within } from "./program.mjs";

test("a tool that takes too long is cancelled and answered for", async () => {
  let ended = deferred();
  const wait = (_, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        ended.resolve();
        reject(signal.reason);
      });
    });
  const app = new Server("timeouts", { toolTimeout: 200 })
    .tool("slow", wait)
    .tool("hasty", { timeout: 50 }, wait)
    .tool("patient", { timeout: 0 }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return "done";
    });
  await both(app, async (client) => {
    for (const [name, time] of [
      ["slow", 200],
      ["hasty", 50],
    ]) {
      ended = deferred();
      const result = await client.callTool(name);
      assert.deepEqual(
        [result.isError, result.text],
        [true, `tool "${name}" was cancelled: it took longer than ${time} ms`],
      );
      await within(ended.promise);
    }
    assert.equal((await client.callTool("patient")).text, "done");
  });
});

test("times that are none", () => {
  const wrong = (make, message) =>
    assert.throws(make, (error) => error instanceof MisuseError && error.message.includes(message));
  wrong(
    () => new Server("a", { toolTimeout: -1 }),
    'option "toolTimeout": expected milliseconds of at least 0, got -1',
  );
  wrong(
    () => new Server("a").tool("t", { timeout: -1 }, () => ""),
    'tool "t": option "timeout": expected milliseconds of at least 0, got -1',
  );
});

test("values that are no times", () => {
  // hermes-agent 45915, atomic 1840, openclaw 105784: Infinity, NaN and text, which a timer takes for 1 ms.
  const wrong = (make, message) =>
    assert.throws(make, (error) => error instanceof MisuseError && error.message.includes(message));
  for (const [value, why] of [
    [Number.POSITIVE_INFINITY, "imeout: expected a finite number of milliseconds, got Infinity"],
    [Number.NaN, "imeout: expected a finite number of milliseconds, got NaN"],
    ["5", 'imeout": expected a number of milliseconds, got "5"'],
    [true, 'imeout": expected a number of milliseconds, got true'],
    [Symbol("5"), 'imeout": expected a number of milliseconds, got "a symbol"'],
    [5n, 'imeout": a bigint is not JSON; give a number, or text of it'],
    [[5], 'imeout": expected a number of milliseconds, got [5]'],
  ]) {
    wrong(() => new Server("a", { toolTimeout: value }), why);
    wrong(() => new Server("a").tool("t", { timeout: value }, () => ""), why);
  }
});

test("times beyond all calls", async () => {
  // openclaw 105784, CALLE-AI/call-e-integrations 83: beyond 2^31 - 1 ms a timer of Node goes off at once.
  for (const time of [undefined, null, 0, 2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return "done";
    };
    const app = new Server("timeouts", { toolTimeout: time }).tool("own", { timeout: time }, slow).tool("shared", slow);
    await both(app, async (client) => {
      for (const name of ["own", "shared"]) {
        const { isError, text } = await client.callTool(name);
        assert.deepEqual([isError, text], [false, "done"], `${name} ${time}`);
      }
    });
  }
});

const late = (name, time) => [true, `tool "${name}" was cancelled: it took longer than ${time} ms`];

test("a function that ignores its signal is answered for once", async () => {
  // punkpeye/fastmcp 328, python-sdk 1152: it runs on, and what it returns goes nowhere.
  const errors = [];
  let release, aborted, over;
  const app = new Server("timeouts", { onError: (error) => errors.push(error) })
    .tool("deaf", { timeout: 50, input: z.object({ fails: z.boolean() }) }, async ({ fails }, ctx) => {
      ctx.signal.addEventListener("abort", aborted.resolve);
      await release.promise;
      setImmediate(over.resolve, ctx.cancelled);
      if (fails) throw new Error("late");
      return "late";
    })
    .tool("quick", () => "done");
  await both(app, async (client) => {
    for (const fails of [false, true]) {
      [release, aborted, over] = [deferred(), deferred(), deferred()];
      const result = await client.callTool("deaf", { fails });
      assert.deepEqual([result.isError, result.text], late("deaf", 50));
      await within(aborted.promise, "the abort");
      release.resolve();
      assert.equal(await within(over.promise, "the end of the function"), true);
      assert.equal((await client.callTool("quick")).text, "done");
    }
  });
  assert.deepEqual(errors, []);
  assert.equal(bridgeMetrics().calls, 0);
});

test("errors of a function that was cancelled are no news, whoever cancels", async () => {
  // cherry-studio 18294: the same for the time of a tool as for a call that its caller gives up.
  const errors = [];
  let started, over;
  const app = new Server("timeouts", { onError: (error) => errors.push(error) });
  const wait = async (_, { signal }) => {
    started.resolve();
    try {
      await once(signal, "abort");
      throw new Error("the socket is closed");
    } finally {
      setImmediate(over.resolve);
    }
  };
  app.tool("slow", { timeout: 50 }, wait).tool("patient", wait);
  await both(app, async (client) => {
    [started, over] = [deferred(), deferred()];
    const result = await client.callTool("slow");
    assert.deepEqual([result.isError, result.text], late("slow", 50));
    await within(over.promise, "the end of the function");
    [started, over] = [deferred(), deferred()];
    const controller = new AbortController();
    const call = client.callTool("patient", {}, { signal: controller.signal });
    await within(started.promise, "the start");
    controller.abort();
    await assert.rejects(call, { name: "AbortError" });
    await within(over.promise, "the end of the function");
  });
  assert.deepEqual(errors, []);
});

test("a question is taken back when the time of its tool is over", async () => {
  // UsefulSoftwareCo/executor 1953, codex 17566: nobody goes on filling in a form that nobody waits for.
  const gone = deferred();
  const over = deferred();
  const app = new Server("timeouts", { toolTimeout: 300 }).tool("asks", async (_, ctx) => {
    try {
      return (await ctx.elicit("?", z.object({}))).action;
    } catch (error) {
      over.resolve(error.name);
      throw error;
    }
  });
  const elicitation = (_, ctx) => new Promise(() => ctx.signal.addEventListener("abort", () => gone.resolve(true)));
  await withClient(
    app,
    async (client) => {
      const result = await client.callTool("asks");
      assert.deepEqual([result.isError, result.text], late("asks", 300));
      assert.equal(await within(over.promise, "the end of the handler"), "AbortError");
      assert.equal(await within(gone.promise, "the end of the question"), true);
    },
    { ...legacy, elicitation },
  );
});

test("neither a timer nor a function whose time is over keeps a program alive", async (t) => {
  // Helicone 5771, wappalyzer 3345, pi-lens 1109: a timer that lost its race keeps the process until it goes off.
  const program = start(t, "timed");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /^done\ntool "deaf" was cancelled: it took longer than 50 ms\nclosed$/m);
});
