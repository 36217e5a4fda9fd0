// What a client keeps in a store of the program's own (2026-07-28).
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { AuthError, connect, connectMany, MisuseError, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { within } from "./program.mjs";
import { folderStore } from "./programs/reads.mjs";
import { NOT_HERE, redis } from "./redis.mjs";

const MODERN = { revision: "2026-07-28" };
const PROGRAM = fileURLToPath(new URL("programs/reads.mjs", import.meta.url));

/** A store that processes share, as far as it does what it is told. */
class Kept {
  kept = new Map();
  asked = 0;
  does = "works";

  async get(keys) {
    this.asked++;
    if (this.does === "hangs") await once(new EventTarget(), "never");
    if (this.does === "throws") throw new RangeError("the password is wrong");
    if (this.does === "gives too few") return [];
    if (this.does === "gives numbers") return keys.map(() => 1);
    if (this.does === "gives a text") return "text";
    if (this.does === "gives garbage") return keys.map(() => "{");
    return keys.map((key) => this.kept.get(key));
  }

  set(key, text, ttl) {
    assert.ok(ttl >= 1000 && Number.isInteger(ttl / 1000));
    this.kept.set(key, text);
  }

  delete(key) {
    this.kept.delete(key);
  }
}

function counting() {
  let reads = 0;
  const count = () => String(++reads);
  return new Server("s", { cache: { ttl: 3_600_000 } })
    .resource("test://count", { cache: { scope: "public" } }, count)
    .resource("test://own", count);
}

const read = async (client, uri = "test://count") => (await client.readResource(uri)).text;

async function serving(app, body) {
  let listening;
  const url = new Promise((resolve) => {
    listening = resolve;
  });
  const serving = app.serveHttp({ port: 0, onListening: listening });
  try {
    await body(await within(url, "listening"));
  } finally {
    app.close();
    await within(serving, "the end");
  }
}

async function withClients(url, options, body) {
  const clients = await Promise.all(options.map((option) => connect(url, { ...MODERN, ...option })));
  try {
    await body(...clients);
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

test("clients share answers in a store that the engine knows", { skip: NOT_HERE }, async (t) => {
  const url = await redis(t);
  const stores = [url, { url, prefix: "p", secret: "a secret for tests, longer than thirty-two bytes" }];
  for (const store of stores) {
    await serving(counting(), async (at) => {
      for (const hits of [0, 1]) {
        await withClients(at, [{ cache: { store } }], async (client) => {
          assert.equal(await read(client), "1");
          assert.equal(client.metrics().cache.hits, hits);
        });
      }
    });
  }
  for (const [store, said] of [
    ["redis:hush", /"url": /],
    [{ url: "redis://127.0.0.1:1", hush: 1 }, /"cache": "store"/],
    [1, /expected a CacheStore, a URL or StoreOptions/],
  ]) {
    await assert.rejects(connect("http://127.0.0.1:1/mcp", { cache: { store } }), (error) => {
      assert.ok(error instanceof MisuseError);
      assert.match(error.message, said);
      assert.doesNotMatch(error.message, /hush/);
      return true;
    });
  }
});

test("processes share what a store keeps", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tricorn-"));
  try {
    await serving(counting(), async (url) => {
      for (const expected of ["1 0", "1 1"]) {
        const run = promisify(execFile)(process.execPath, [PROGRAM, url, folder]);
        assert.equal((await within(run, "the program")).stdout.trim(), expected);
      }
      await withClients(url, [{ cache: { store: folderStore(folder) } }], async (client) => {
        assert.equal(await read(client), "1");
      });
    });
    assert.ok((await readdir(folder)).every((name) => decodeURIComponent(name).startsWith("tricorn:1:")));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("private answers stay under their authorization", async () => {
  const store = new Kept();
  const user = (token, scope) => ({ headers: { Authorization: `Bearer ${token}` }, cache: { store, scope } });
  await serving(counting(), async (url) => {
    for (const [token, own] of [
      ["ada", "1"],
      ["bob", "3"],
      ["ada", "1"],
    ]) {
      await withClients(url, [user(token)], async (client) => {
        assert.deepEqual([await read(client, "test://own"), await read(client)], [own, "2"]);
        assert.equal(client.metrics().cache.entries, 0);
      });
    }
    for (const token of ["1", "2"]) {
      await withClients(url, [user(token, "carl")], async (client) => {
        assert.equal(await read(client, "test://own"), "4");
      });
    }
  });
});

test("what one hears of is dropped for all", async () => {
  const cache = { store: new Kept() };
  const app = counting();
  await serving(app, (url) =>
    withClients(url, [{ cache }, { cache }], async (ada, bob) => {
      for (const client of [ada, bob]) {
        assert.deepEqual([await read(client), await read(client, "test://own")], ["1", "2"]);
      }
      const changes = ada.listen({ uris: ["test://count"] });
      await changes.honoured;
      app.resourceUpdated("test://count");
      for await (const change of changes) {
        assert.equal(change.uri, "test://count");
        break;
      }
      for (const client of [ada, bob]) {
        assert.deepEqual([await read(client), await read(client, "test://own")], ["3", "2"]);
      }
    }),
  );
});

for (const [does, failures, thrown] of [
  ["hangs", 1],
  ["throws", 2, RangeError],
  ["gives too few", 2],
  ["gives numbers", 2, MisuseError],
  ["gives a text", 2, MisuseError],
  ["gives garbage", 4],
]) {
  test(`a store that ${does} costs a question at the server`, async () => {
    const store = new Kept();
    store.does = does;
    const [warned, failed] = [[], []];
    const hears = ({ message }) => message.startsWith("the cache's store: ") && warned.push(message);
    process.on("warning", hears);
    const onError = (error, name) => failed.push([error.constructor, name]);
    await serving(counting(), (url) =>
      withClients(url, [{ cache: { store }, onError }], async (client) => {
        assert.deepEqual([await read(client), await read(client)], ["1", "2"]);
        assert.equal(client.metrics().cache.failures, failures);
      }),
    );
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", hears);
    assert.equal(warned.length, 1);
    assert.match(warned[0], /^the cache's store: get: /);
    assert.doesNotMatch(warned[0], /password/);
    assert.deepEqual(failed, thrown ? [1, 2].map(() => [thrown, "cache"]) : []);
  });
}

test("onError hears all that a store throws, where it is given, and nobody else does", async (t) => {
  const said = t.mock.method(console, "error", () => {});
  const waits = (error) => new Promise((_, reject) => setTimeout(reject, 2500, error)); // Longer than a store has.
  for (const fails of [() => Promise.reject(new AuthError("sign in")), () => waits(new RangeError("late"))]) {
    const heard = [];
    const store = { get: fails, set() {}, delete() {} };
    const onError = (error, name) => heard.push([error.message, name]);
    await serving(counting(), (url) =>
      withClients(url, [{ cache: { store }, onError }, { cache: { store } }], async (...clients) => {
        for (const client of clients) await read(client);
        const { message } = await fails().catch((error) => error);
        await new Promise((resolve) => setTimeout(resolve, 100));
        assert.ok(heard.length > 0);
        for (const one of heard) assert.deepEqual(one, [message, "cache"]);
      }),
    );
  }
  assert.equal(said.mock.callCount(), 0);
});

test("a request can be given up while the store is asked", async () => {
  const store = new Kept();
  store.does = "hangs";
  await serving(counting(), (url) =>
    withClients(url, [{ cache: { store } }], async (client) => {
      const controller = new AbortController();
      const reading = client.readResource("test://count", { signal: controller.signal });
      while (store.asked === 0) await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      await assert.rejects(within(reading, "the abort"), { name: "AbortError" });
      store.does = "works";
      assert.equal(await read(client), "1");
    }),
  );
});

test("servers without an address are kept in memory", async () => {
  const store = new Kept();
  await withClient(
    counting(),
    async (client) => {
      assert.deepEqual([await read(client), await read(client)], ["1", "1"]);
      assert.equal(client.metrics().cache.entries, 1);
    },
    { ...MODERN, cache: { store } },
  );
  assert.equal(store.asked, 0);
});

test("the servers of a group are kept apart", async () => {
  const options = { ...MODERN, cache: { store: new Kept() } };
  await serving(counting(), (one) =>
    serving(counting(), async (two) => {
      for (const hits of [0, 1]) {
        const group = await connectMany({ one, two }, options);
        for (const name of ["one", "two"]) {
          const client = group.client(name);
          assert.equal(await read(client), "1");
          assert.equal(client.metrics().cache.hits, hits);
        }
        await group.close();
      }
    }),
  );
});

test("what is wrong is named", async () => {
  const refused = (cache, message) => assert.rejects(connect("http://127.0.0.1:1/mcp", { cache }), message);
  await refused({ store: "disk" }, /"cache": "store": "url": /);
  await refused({ store: {} }, /cache: store: expected a CacheStore: it has no function "get"$/);
  await refused({ store: { get() {}, set() {} } }, /: it has no function "delete"$/);
  const [store, circle] = [new Kept(), {}];
  circle.me = circle;
  await refused(store, /^MisuseError: cache: expected options, got a CacheStore; give cache: \{ store \}$/);
  await refused({ get() {}, set() {}, delete() {} }, /give cache: \{ store \}$/);
  await refused({ stor: circle }, /^MisuseError: cache: unknown option "stor", did you mean "store"\?$/);
  await refused({ scope: circle }, /^MisuseError: .*: "scope": expected a string, got an object$/);
  await refused({ maxEntries: () => 5 }, /: "maxEntries": expected an integer of at least 1, got a function$/);
  await assert.rejects(connectMany({}, { cache: store }), /^MisuseError: cache: .*give cache: \{ store \}$/);
  await refused({ store, shared: true }, /"shared": with a store of one's own they are shared already/);
});
