// How long answers keep (2026-07-28): what a server says of it, and what a client makes of that.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MisuseError, Server } from "tricorn";
import { withClient } from "tricorn/testing";

const MODERN = { revision: "2026-07-28" };

async function hints(client, method, params = {}) {
  const { ttlMs, cacheScope } = await client.request(method, params, { cache: "bypass" });
  return [ttlMs, cacheScope];
}

test("a server says how long what keeps, and to whom", async () => {
  const cache = { ttl: 60_000, scope: "public", tools: { ttl: 500 }, resourceTemplates: { scope: "private" } };
  const app = new Server("s", { cache })
    .resource("test://own", { cache: { ttl: 5000, scope: "public" } }, "text")
    .resource("test://other", "text")
    .resource("test://template/{n}", { cache: { ttl: 1 } }, ({ n }) => n);
  await withClient(
    app,
    async (client) => {
      assert.deepEqual(await hints(client, "tools/list"), [500, "public"]);
      assert.deepEqual(await hints(client, "resources/templates/list"), [60_000, "private"]);
      assert.deepEqual(await hints(client, "resources/read", { uri: "test://own" }), [5000, "public"]);
      assert.deepEqual(await hints(client, "resources/read", { uri: "test://other" }), [60_000, "private"]);
      assert.deepEqual(await hints(client, "resources/read", { uri: "test://template/1" }), [1, "private"]);
    },
    MODERN,
  );
  await withClient(
    app,
    async (client) => {
      assert.deepEqual(await hints(client, "resources/read", { uri: "test://own" }), [undefined, undefined]);
    },
    { revision: "2025-11-25" },
  );
});

function counting() {
  let reads = 0;
  return new Server("s", { cache: { ttl: 3_600_000 } }).resource("test://count", () => String(++reads));
}

test("a client keeps what it may", async () => {
  const read = async (client, options) => (await client.readResource("test://count", options)).contents[0].text;
  await withClient(
    counting(),
    async (client) => {
      assert.deepEqual([await read(client), await read(client), await read(client)], ["1", "1", "1"]);
      assert.equal(await read(client, { cache: "bypass" }), "2");
      assert.equal(await read(client), "1");
      assert.equal(await read(client, { cache: "refresh" }), "3");
      assert.equal(await read(client), "3");
      const { hits, misses, stale, entries } = client.metrics().cache;
      assert.deepEqual([hits, misses, stale, entries], [4, 1, 0, 1]);
    },
    MODERN,
  );
  await withClient(
    counting(),
    async (client) => {
      assert.deepEqual([await read(client), await read(client)], ["1", "2"]);
    },
    { ...MODERN, cache: false },
  );
  await withClient(
    counting(),
    async (client) => {
      assert.deepEqual([await read(client), await read(client)], ["1", "1"]);
    },
    { ...MODERN, cache: { maxEntries: 5, staleOnError: true } },
  );
});

test("what is wrong is named", async () => {
  const wrong = (make, said) =>
    assert.throws(make, (error) => error instanceof MisuseError && error.message.includes(said));
  wrong(
    () => new Server("s", { cache: { tools: { ttl: -1000 } } }),
    '"tools": "ttl": expected milliseconds of at least 0, got -1000',
  );
  wrong(() => new Server("s", { cache: { scope: "all" } }), '"scope": expected "public" or "private", got "all"');
  wrong(
    () => new Server("s").resource("a://b", { cache: { tll: 1 } }, ""),
    'unknown option "tll", did you mean "ttl"?',
  );
  await withClient(
    new Server("s"),
    async (client) => {
      await assert.rejects(client.request("tools/list", {}, { cache: "never" }), /"cache": expected "default"/);
    },
    MODERN,
  );
});

test("what is infinite is not taken for nothing", async () => {
  const refused = (make, message) =>
    assert.throws(make, (error) => error instanceof MisuseError && message.test(error));
  const endless = { cache: { ttl: Number.POSITIVE_INFINITY } };
  const s = () => new Server("s");
  refused(() => new Server("s", endless), /: cache\.ttl: expected a finite number of milliseconds, got Infinity$/);
  refused(
    () => new Server("s", { cache: { resourceTemplates: { ttl: Number.NaN } } }),
    /cache\.resourceTemplates\.ttl: /,
  );
  refused(() => new Server("s", { tasks: { taskTtl: Number.NaN } }), /: tasks\.taskTtl: .* milliseconds, got NaN/);
  refused(() => new Server("s", { tasks: { taskPollInterval: -1 / 0 } }), /: tasks\.taskPollInterval: /);
  refused(() => new Server("s", { pingInterval: Number.NaN }), /: pingInterval: expected a finite number of mill/);
  refused(() => new Server("s", { maxNesting: 1 / 0 }), /: maxNesting: expected a finite number, got Infinity/);
  refused(() => s().resource("test://x", endless, "text"), /cache\.ttl: /);
  refused(() => s().resource("test://{x}", endless, ({ x }) => x), /cache\.ttl: /);
  refused(() => s().resource("test://x", { size: Number.NaN }, ""), /"test:\/\/x": size: expected a finite number/);
  refused(() => s().resource("test://x", { annotations: { priority: Number.NaN } }, ""), /: annotations\.priority: /);
  refused(() => s().addFile("x", "test://x", endless), /cache\.ttl: /);
  await withClient(
    s().tool("t", () => ""),
    async (client) => {
      const wrong = (options, message) =>
        assert.rejects(client.callTool("t", {}, options), { name: "MisuseError", message });
      await wrong({ timeout: Number.NaN }, /^timeout: expected a finite number of milliseconds/);
      await wrong({ task: { ttl: 1 / 0 } }, /^task\.ttl: expected a finite number of milliseconds/);
      await assert.rejects(client.callToolTask("t", {}, { ttl: Number.NaN }), { name: "MisuseError", message: /ttl/ });
    },
  );
});
