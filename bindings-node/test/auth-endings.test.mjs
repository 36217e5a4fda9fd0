// How logins end whose client has gone: given up, closed, forgotten. Nothing is lost, nothing is left behind.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, connectMany, Server } from "tricorn";
import { bridgeMetrics } from "tricorn/testing";
import { browse, guarded, Kept, nobody, OAuth, tell } from "./oauth.mjs";
import { deferred, start, within } from "./program.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

/** Collects until `done`, for a while at most. */
async function collect(done = () => false) {
  for (let round = 0; round < 100 && !done(); round++) {
    // In a turn of its own: what was looked at in this one stays.
    await turn();
    gc();
  }
}

/** A store with a login whose access token is good no more. The authorization server keeps the next one waiting. */
async function refreshing(t) {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const store = new Kept();
  const first = await connect(url, { auth: { browser: browse, store } });
  const [asked, answer] = [deferred(), deferred()];
  oauth.revoke();
  oauth.slow.refresh_token = () => {
    asked.resolve();
    return answer.promise;
  };
  const saved = deferred();
  store.save = async (key, login) => {
    await Kept.prototype.save.call(store, key, login);
    saved.resolve();
  };
  /** The login is good: the refresh token that was used up is replaced, and the new one is. */
  const lasts = async () => {
    await within(saved.promise, "the new login");
    oauth.slow = {};
    for (let round = 0; round < 2; round++) {
      const client = await connect(url, { auth: { browser: nobody, store } });
      assert.equal(await tell(client), "ada: read");
      await client.close();
      oauth.revoke();
    }
    assert.equal(oauth.count("authorize"), 1);
    assert.equal(oauth.count("token refresh_token"), 2);
  };
  return { first, url, store, asked: asked.promise, answer: answer.resolve, lasts };
}

test("a client that is closed during a refresh keeps the new login", async (t) => {
  const { first, asked, answer, lasts } = await refreshing(t);
  const call = assert.rejects(tell(first), { name: "ClosedError" });
  await within(asked, "the refresh");
  const closing = first.close();
  await call;
  await collect();
  answer();
  await within(closing, "the end");
  await lasts();
});

test("a client that nobody refers to any more, neither", async (t) => {
  const { first, url, store, asked, answer, lasts } = await refreshing(t);
  await first.close();
  // In a function of its own, so that nothing here refers to the client and its functions.
  const gone = await (async () => {
    const auth = { browser: nobody, store };
    const away = new AbortController();
    const connecting = assert.rejects(connect(url, { auth, signal: away.signal }), { name: "AbortError" });
    await within(asked, "the refresh");
    away.abort();
    await connecting;
    return new WeakRef(auth);
  })();
  await collect();
  answer();
  await lasts();
  await collect(() => !gone.deref());
  assert.equal(gone.deref(), undefined);
});

test("a program that has nothing else to do does not end before it is kept", async (t) => {
  const { first, url, store, asked, answer, lasts } = await refreshing(t);
  await first.close();
  const [key] = store.logins.keys();
  const [issuer, server] = key.split(" ");
  const program = start(t, "gives-up", [url, JSON.stringify(await store.find(server))]);
  await within(asked, "the refresh");
  await program.says("gave up: AbortError");
  program.child.stdin.write("?");
  await program.says("still there");
  answer();
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.equal(program.lines.length, 1);
  await store.save({ issuer, server }, JSON.parse(program.lines[0]).saved);
  await lasts();
});

/** A port of this machine that nobody listens on. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

test("a signal gives up connecting while a user logs in, and the port is free again", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const redirectPort = await freePort();
  for (const many of [false, true]) {
    const away = new AbortController();
    const [opened, over] = [deferred(), deferred()];
    const browser = (page, { signal }) => {
      signal.addEventListener("abort", over.resolve);
      opened.resolve(page);
      return over.promise;
    };
    const auth = { browser, redirectPort, store: "memory" };
    const options = { auth, signal: away.signal };
    const connecting = many ? connectMany({ one: url }, options) : connect(url, options);
    const given = assert.rejects(connecting, /changed my mind/);
    const page = new URL(await within(opened.promise, "the login page"));
    assert.match(page.searchParams.get("redirect_uri"), new RegExp(`:${redirectPort}/`));
    away.abort(new Error("changed my mind"));
    await within(given, "the end of connecting");
    await within(over.promise, "the end of the login");

    // The next one comes back to the same port, and its signal means nothing once it is connected.
    const later = new AbortController();
    const again = { auth: { ...auth, browser: browse }, signal: later.signal };
    const client = await within(connect(url, again), "the login");
    later.abort();
    assert.equal(await tell(client), "ada: read");
    await client.close();
    await assert.rejects(many ? connectMany({ one: url }, options) : connect(url, options), /changed my mind/);
  }
  await assert.rejects(connect(url, { signal: "now" }), /signal: expected an AbortSignal/);
  assert.equal(bridgeMetrics().calls, 0);
});

test("the functions of auth are let go with their clients and servers", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  /** All of the functions that a client may have. */
  const functions = () => {
    const came = deferred();
    return {
      redirectUri: "http://localhost:9/back",
      browser: async (page) => came.resolve((await fetch(page, { redirect: "manual" })).headers.get("location")),
      callback: () => came.promise,
      store: new Kept(),
    };
  };
  const endings = {
    closed: async (auth) => {
      const client = await connect(url, { auth });
      assert.equal(await tell(client), "ada: read");
      await client.close();
    },
    refused: (auth) => assert.rejects(connect(url, { auth: Object.assign(auth, { browser: nobody }) })),
    misused: (auth) => assert.rejects(connect(url, { auth: Object.assign(auth, { scopes: "read" }) })),
    "of a group": async (auth) => {
      const group = await connectMany({ one: url, two: url }, { auth });
      for (const name of ["one", "two"]) await group.client(name)?.close();
      await group.close();
    },
    "with tokens": async (auth) => {
      const tokens = Object.assign(auth, { token: () => "wr0ng", assertion: () => "none" });
      await assert.rejects(connect(url, { auth: tokens }), { name: "AuthError" });
    },
    "of a server": async () => {
      const auth = { verifier: oauth.verify, authorizationServers: [oauth.issuer] };
      const app = new Server("guarded", { auth });
      const at = await new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
      await assert.rejects(connect(at), { name: "AuthError" });
      await app.close();
      return auth;
    },
  };
  for (const [name, end] of Object.entries(endings)) {
    // In a function of its own, so that nothing here refers to them.
    const gone = await (async () => {
      const auth = functions();
      return new WeakRef((await end(auth)) ?? auth);
    })();
    await collect(() => !gone.deref());
    assert.equal(gone.deref(), undefined, name);
  }
  assert.equal(bridgeMetrics().calls, 0);
});
