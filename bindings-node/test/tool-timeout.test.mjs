// Tools that take longer than they may.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MisuseError, Server } from "tricorn";
import { both, deferred, within } from "./program.mjs";

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
