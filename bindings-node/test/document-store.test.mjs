// A server's store of the program's own, in place of a Redis.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, MisuseError, PeerMisbehavedError, Server } from "tricorn";
import { checkDocumentStore } from "tricorn/testing";
import { deferred, initialize, LIMIT, within } from "./program.mjs";

const LEGACY = "2025-06-18";

/** Documents in a map, as far as it does what it is told. */
class Kept {
  kept = new Map();
  does = "works";

  get(keys) {
    if (this.does === "throws") throw new RangeError("the password is wrong");
    if (this.does === "gives a text") return "text";
    if (this.does === "gives nothing") return undefined;
    if (this.does === "gives texts") return keys.map(() => "text");
    if (this.does === "gives numbers") return keys.map(() => ({ version: 1, text: "{}" }));
    if (this.does === "gives too few") return [];
    return keys.map((key) => this.kept.get(key));
  }

  commit(expected, writes) {
    assert.ok(writes.every(({ ttl }) => ttl >= 1000 && Number.isInteger(ttl / 1000)));
    for (const [key, version] of Object.entries(this.does === "ignores versions" ? {} : expected)) {
      if ((this.kept.get(key)?.version ?? null) !== version) return this.said(false);
    }
    for (const { key, document } of writes) {
      if (document === null) this.kept.delete(key);
      else this.kept.set(key, document);
    }
    return this.said(true);
  }

  said(done) {
    if (this.does === "returns nothing") return undefined;
    return this.does === "counts" ? Number(done) : done;
  }
}

/** The same with promises, and with the functions that a store need not have. */
class Waiting {
  #kept = new Kept();
  #changes = new EventEmitter().setMaxListeners(0);
  waited = 0;
  timed = 0;

  async get(keys) {
    return this.#kept.get(keys).map((document) => document ?? null);
  }

  async commit(expected, writes) {
    const done = this.#kept.commit(expected, writes);
    this.#changes.emit("change");
    return done;
  }

  async wait(seen, timeout) {
    assert.ok(timeout > 0);
    this.waited++;
    const found = this.#kept.get(Object.keys(seen)).map((document) => document?.version ?? null);
    if (!found.every((version, at) => version === Object.values(seen)[at])) return;
    await once(this.#changes, "change", { signal: AbortSignal.timeout(timeout) }).catch(() => {});
  }

  now() {
    this.timed++;
    return Date.now();
  }
}

const named = (who, store, options = {}) => new Server("shop", { store, ...options }).tool("who", () => who);

/** Serves HTTP with all of these servers, and closes them. */
async function serving(apps, body) {
  const listening = await Promise.all(apps.map((app) => within(app.listen({ port: 0 }), "listening")));
  try {
    await body(...listening.map(({ url }) => url));
  } finally {
    await within(Promise.all(apps.map((app) => app.close())), "the end");
  }
}

/** The answer to a message of a client of an older revision. */
async function post(url, message, session) {
  const ours = session === undefined ? {} : { "mcp-session-id": session, "mcp-protocol-version": LEGACY };
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...ours },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(LIMIT),
  });
  return { status: answer.status, session: answer.headers.get("mcp-session-id"), text: await answer.text() };
}

/** Opens a session of a client of an older revision. */
async function opened(url) {
  const [first, second] = initialize(LEGACY);
  const { status, session, text } = await post(url, first);
  assert.equal(status, 200, text);
  assert.ok(session);
  assert.equal((await post(url, second, session)).status, 202);
  return session;
}

const CALL = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who", arguments: {} } };

test("a store that keeps the rules passes", async () => {
  await checkDocumentStore(new Kept());
  const store = new Waiting();
  await checkDocumentStore(store);
  assert.ok(store.waited > 0 && store.timed > 0);
});

for (const [does, said] of [
  ["ignores versions", "commit: a document was there, and expected not to be"],
  ["gives a text", "get: it failed: store: get: expected a list in the order of the keys, got a string"],
  ["gives nothing", "store: get: expected a list in the order of the keys, got undefined"],
  ["gives texts", "store: get: expected a Document, got a string"],
  ["gives numbers", "store: get: version: expected a string, got a number"],
  ["gives too few", "get: it returned another number of documents than there were keys"],
  ["returns nothing", "store: commit: expected true or false, got undefined"],
  ["counts", "store: commit: expected true or false, got a number"],
]) {
  test(`a store that breaks a rule is refused: ${does}`, async () => {
    const store = Object.assign(new Kept(), { does });
    await assert.rejects(checkDocumentStore(store), (error) => {
      assert.ok(error instanceof MisuseError);
      assert.ok(error.message.includes(said), error.message);
      return true;
    });
  });
}

test("the cause is what the store threw", async () => {
  await assert.rejects(checkDocumentStore(Object.assign(new Kept(), { does: "throws" })), (error) => {
    assert.match(error.message, /get: it failed: RangeError/);
    assert.doesNotMatch(error.message, /password/);
    assert.ok(error.cause instanceof RangeError);
    return true;
  });
});

test("a wrong answer is a failure, and no refusal", async () => {
  await assert.rejects(checkDocumentStore(Object.assign(new Kept(), { does: "returns nothing" })), (error) => {
    assert.ok(error.cause instanceof PeerMisbehavedError, error);
    return true;
  });
});

test("a wrong store is named, and its secrets are not", () => {
  const missing = 'server option "store": expected a URL, StoreOptions or a DocumentStore: it has no function';
  const documents = new Kept();
  for (const [store, said] of [
    [1, `${missing} "get"`],
    [() => documents, `${missing} "get"`],
    [new Map(), `${missing} "commit"`],
    [{ get: () => [] }, `${missing} "commit"`],
    [{ documents: {} }, 'server option "store": documents: expected a DocumentStore: it has no function "get"'],
    [{ documents, url: "redis://hush@127.0.0.1:1" }, 'server option "store": expected "url" or "documents", got both'],
    [{ documents, secret: 17 }, 'server option "store": secret: expected a string, got a number'],
    [{ documents, secret: "hush" }, 'server option "store": "secret": expected at least 32 bytes'],
    [{ documents, prefix: "a b" }, 'server option "store": "prefix": expected 1 to 64 letters'],
    [{ documents, pre: "hush" }, 'unknown option "pre"'],
    [{ prefix: "p" }, 'option "store": expected a URL such as'],
  ]) {
    assert.throws(
      () => new Server("shop", { store }),
      (error) => {
        assert.ok(error instanceof MisuseError);
        assert.ok(error.message.includes(said), error.message);
        assert.doesNotMatch(error.message, /hush/);
        return true;
      },
    );
  }
});

for (const Store of [Kept, Waiting]) {
  test(`servers with one store have one session: ${Store.name}`, async () => {
    const store = new Store();
    await serving([named("one", store), named("another", store)], async (one, another) => {
      const session = await opened(one);
      for (const [url, who] of [
        [another, "another"],
        [one, "one"],
      ]) {
        const { status, text } = await post(url, CALL, session);
        assert.equal(status, 200, text);
        assert.ok(text.includes(`"text":"${who}"`), text);
      }
    });
  });
}

test("options begin the keys", async () => {
  const documents = new Kept();
  const ours = { documents, prefix: "ours", secret: "a secret for tests, longer than thirty-two bytes" };
  await serving([named("one", ours), named("another", { documents })], async (one, another) => {
    const session = await opened(one);
    assert.equal((await post(one, CALL, session)).status, 200);
    assert.equal((await post(another, CALL, session)).status, 404);
  });
  const begins = new Set([...documents.kept.keys()].map((key) => key.split(":")[0]));
  assert.deepEqual([...begins].sort(), ["ours", "tricorn"]);
});

test("a store that fails stops only what needs it", async () => {
  const store = new Kept();
  const heard = deferred();
  const onError = (error, name) => heard.resolve([error, name]);
  await serving([named("one", store), named("another", store, { onError })], async (one, another) => {
    const session = await opened(one);
    store.does = "throws";
    const refused = await post(another, CALL, session);
    assert.equal(refused.status, 503, refused.text);
    assert.doesNotMatch(refused.text, /password/);
    assert.equal((await post(another, initialize(LEGACY)[0])).status, 503);
    const [error, name] = await within(heard.promise, "the error");
    assert.ok(error instanceof RangeError);
    assert.equal(name, "store");
    const client = await connect(another, { revision: "2026-07-28" });
    assert.equal((await client.callTool("who")).text, "another");
    await client.close();
    store.does = "works";
    const again = async () => {
      while ((await post(another, CALL, session)).status !== 200) await sleep(50);
    };
    await within(again(), "an answer of the store");
  });
});
