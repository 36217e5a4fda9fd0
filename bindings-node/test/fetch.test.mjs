// HTTP over a function of the program's own: the option `fetch` of a client.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { AuthError, connect, connectMany, MisuseError, Server, TimeoutError, TransportError } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { browse, guarded, OAuth, tell } from "./oauth.mjs";
import { deferred, LIMIT, legacy, within } from "./program.mjs";

const MODERN = { revision: "2026-07-28" };
/** An address where nobody is. */
const NOWHERE = "https://mcp.example.com/mcp";

async function until(what, isSo) {
  const end = Date.now() + LIMIT;
  while (!isSo()) {
    assert.ok(Date.now() < end, `${what} did not happen within ${LIMIT} ms`);
    await turn();
  }
}

function serve(t, app) {
  t.after(() => app.close());
  return within(new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve })), "listening");
}

function server() {
  return new Server("there")
    .tool("app", (_, ctx) => ctx.request.headers["x-app"] ?? "nobody")
    .tool("hang", (_, ctx) => once(ctx.signal, "abort"));
}

/** A `fetch` that adds a header, and knows of each answer that it was read to its end or given up. */
class Watched {
  asked = [];
  #over = 0;
  #fetch;

  constructor(app = "watched", fetch = globalThis.fetch) {
    this.#fetch = (url, init) => fetch(url, { ...init, headers: { ...init.headers, "x-app": app } });
  }

  fetch = async (url, init) => {
    this.asked.push({ url, ...init });
    let isOver = false;
    const over = () => {
      this.#over += isOver ? 0 : 1;
      isOver = true;
    };
    init.signal.addEventListener("abort", over);
    const response = await this.#fetch(url, init);
    if (response.body === null) over();
    const body = response.body?.pipeThrough(new TransformStream({ flush: over }));
    return new Response(body, response);
  };

  get methods() {
    return [...new Set(this.asked.map(({ method }) => method))].sort();
  }

  /** Nothing of it is left, neither here nor in the engine. */
  async over() {
    await until("the end of all exchanges", () => this.#over === this.asked.length);
    await until("the end of all calls", () => bridgeMetrics().calls === 0);
  }
}

const json = (value, init) => Response.json(value, init);

/** A server that is a function: `answer` gives what a request that is no handshake is answered with. */
function mock(answer) {
  return async (url, init) => {
    if (init.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = JSON.parse(init.body);
    if (id === undefined) return new Response(null, { status: 202 });
    if (method !== "initialize") return answer({ id, method, params, url, init });
    const serverInfo = { name: "mock", version: "1" };
    const result = { protocolVersion: legacy.revision, capabilities: { tools: {} }, serverInfo };
    return json({ jsonrpc: "2.0", id, result });
  };
}

const said = (id, text) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } });

/** Calls a tool of a mock. */
async function calling(answer, options = {}) {
  const client = await connect(NOWHERE, { ...legacy, fetch: mock(answer), ...options });
  try {
    return (await within(client.callTool("any"), "the answer")).text;
  } finally {
    await client.close();
  }
}

for (const revision of [legacy.revision, MODERN.revision]) {
  test(`the global fetch, ${revision}`, async (t) => {
    const client = await connect(await serve(t, server()), { revision, fetch });
    assert.equal(client.transport, "http");
    assert.equal((await client.callTool("app")).text, "nobody");
    assert.deepEqual(
      (await client.listTools()).map(({ name }) => name),
      ["app", "hang"],
    );
    await client.close();
    await until("the end of all calls", () => bridgeMetrics().calls === 0);
  });

  test(`a function around it sees all requests, ${revision}`, async (t) => {
    const url = await serve(t, server());
    const watched = new Watched();
    const client = await connect(url, { revision, fetch: watched.fetch, headers: { "X-Own": "1" } });
    assert.equal((await client.callTool("app")).text, "watched");
    if (revision === legacy.revision) await until("the standalone stream", () => watched.methods.includes("GET"));
    await client.close();
    await watched.over();
    assert.deepEqual(watched.methods, revision === legacy.revision ? ["DELETE", "GET", "POST"] : ["POST"]);
    for (const { url: asked, method, headers, body, redirect, signal } of watched.asked) {
      assert.deepEqual([asked, redirect], [url, "manual"]);
      assert.deepEqual([headers["x-own"], headers["accept-encoding"]], ["1", "identity"]);
      assert.equal(Object.getPrototypeOf(headers), Object.prototype);
      assert.equal(typeof body, method === "POST" ? "string" : "undefined");
      assert.ok(signal instanceof AbortSignal);
    }
  });

  test(`aborting a request aborts its signal, ${revision}`, async (t) => {
    const url = await serve(t, server());
    // Before there is a head, and while the body is read.
    for (const hangs of [true, false]) {
      const [asked, waiting] = [deferred(), deferred()];
      const fetch = async (input, init) => {
        if (!init.body?.includes('"hang"')) return globalThis.fetch(input, init);
        asked.resolve(init.signal);
        if (hangs) return new Promise(() => {});
        // Nothing in it tells of the signal.
        const start = (controller) => controller.enqueue(new TextEncoder().encode(": hello\n\n"));
        const body = new ReadableStream({ start, cancel: waiting.resolve });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      };
      const client = await connect(url, { revision, fetch });
      const away = new AbortController();
      const call = client.callTool("hang", {}, { signal: away.signal });
      const signal = await within(asked.promise, "the request");
      away.abort();
      await assert.rejects(within(call, "the abort"), { name: "AbortError" });
      await until("the abort of its signal", () => signal.aborted);
      assert.equal(signal.reason.name, "AbortError");
      if (!hangs) await within(waiting.promise, "the end of its body");
      assert.equal((await client.callTool("app")).text, "nobody");
      await client.close();
      await until("the end of all calls", () => bridgeMetrics().calls === 0);
    }
  });

  test(`an answer that never comes is given up in time, ${revision}`, async (t) => {
    const signals = [];
    const fetch = (url, init) => {
      if (!init.body?.includes('"tools/call"')) return globalThis.fetch(url, init);
      signals.push(init.signal);
      return new Promise(() => {});
    };
    const client = await connect(await serve(t, server()), { revision, fetch });
    const aborted = () => until("the abort of its signal", () => signals.every((signal) => signal.aborted));
    await assert.rejects(within(client.callTool("app", {}, { timeout: 50 }), "the timeout"), TimeoutError);
    await aborted();
    const ended = assert.rejects(client.callTool("app"), { name: "ClosedError" });
    await until("the request", () => signals.length === 2);
    await within(client.close(), "the end");
    await ended;
    await aborted();
    await until("the end of all calls", () => bridgeMetrics().calls === 0);
  });
}

test("connecting is given up in time, too", async () => {
  for (const options of [legacy, { probeTimeout: 50 }]) {
    const signals = [];
    const fetch = (_, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const connecting = connect(NOWHERE, { ...options, fetch, requestTimeout: 50 });
    await assert.rejects(within(connecting, "the timeout"), TimeoutError);
    await until("the abort of its signals", () => signals.every(({ aborted }) => aborted));
    assert.ok(signals.length > 0);
    await until("the end of all calls", () => bridgeMetrics().calls === 0);
  }
});

test("a server that is a function needs no network", async () => {
  const asked = [];
  const answer = ({ id, method, url }) => {
    asked.push([method, url]);
    return json(said(id, "mock"));
  };
  assert.equal(await calling(answer), "mock");
  assert.deepEqual(asked, [["tools/call", NOWHERE]]);
  // An answer of whatever library, if it can be read; without a Promise, if it likes.
  const bare = { status: 200, headers: new Map([["content-type", "application/json"]]) };
  for (const more of [
    (text) => ({ text: async () => text }),
    (text) => ({ body: ReadableStream.from([text]) }),
    (text) => ({ body: { [Symbol.asyncIterator]: () => [Buffer.from(text), new ArrayBuffer(0)].values() } }),
  ]) {
    assert.equal(await calling(({ id }) => ({ ...bare, ...more(JSON.stringify(said(id, "bare"))) })), "bare");
  }
});

test("a server of this process answers by its own fetch", async () => {
  for (const revision of [legacy.revision, MODERN.revision]) {
    const app = server();
    const watched = new Watched("inside", (url, init) => app.fetch(new Request(url, init)));
    const heard = deferred();
    const options = { revision, fetch: watched.fetch, onListChanged: heard.resolve };
    const client = await connect("http://localhost/mcp", options);
    assert.equal((await client.callTool("app")).text, "inside");
    await until("a stream", () => app.metrics().streams + app.metrics().listeners > 0);
    app.tool("late", () => "");
    assert.equal(await within(heard.promise, "the notification"), "tool");
    await client.close();
    await watched.over();
    await app.close();
  }
});

test("bodies come in any pieces", async () => {
  const text = `\ufeffgrüße 🦀 ${"🦀".repeat(60_000)}`;
  const pieces = {
    *bytes(all) {
      for (let at = 0; at < 200; at++) yield all.subarray(at, at + 1);
      yield all.subarray(200);
    },
    *odd(all) {
      for (let at = 0; at < all.length; at += 4093) yield all.subarray(at, at + 4093);
    },
    *whole(all) {
      yield all;
    },
  };
  for (const cut of Object.values(pieces)) {
    for (const [type, frame] of [
      ["text/event-stream", (message) => `event: message\ndata: ${message}\n\n`],
      ["application/json", (message) => message],
    ]) {
      const answer = ({ id }) => {
        const body = ReadableStream.from(cut(Buffer.from(frame(JSON.stringify(said(id, text))))));
        return new Response(body, { headers: { "content-type": type } });
      };
      assert.equal(await calling(answer), text, `${cut.name} of ${type}`);
    }
  }
});

test("an answer comes before its stream ends", async () => {
  let signal;
  const cancelled = deferred();
  const answer = ({ id, init }) => {
    signal = init.signal;
    const frame = `data: ${JSON.stringify(said(id, "early"))}\n\n`;
    const start = (controller) => controller.enqueue(new TextEncoder().encode(frame));
    const body = new ReadableStream({ start, cancel: cancelled.resolve });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  assert.equal(await calling(answer), "early");
  await within(cancelled.promise, "the end of the body");
  assert.ok(signal.aborted);
});

test("notifications come over the standalone stream", async (t) => {
  const app = server();
  const watched = new Watched();
  const heard = deferred();
  const options = { ...legacy, fetch: watched.fetch, onListChanged: heard.resolve };
  const client = await connect(await serve(t, app), options);
  await until("the standalone stream", () => app.metrics().streams > 0);
  app.tool("late", () => "");
  assert.equal(await within(heard.promise, "the notification"), "tool");
  await client.close();
  await watched.over();
});

test("changes come over a stream that listens", async (t) => {
  const app = server().resource("test://a", "a");
  const watched = new Watched();
  const client = await connect(await serve(t, app), { ...MODERN, fetch: watched.fetch });
  const changes = client.listen({ uris: ["test://a"] });
  await within(changes.honoured, "listening");
  app.resourceUpdated("test://a");
  assert.equal((await within(changes.next(), "the change")).value.uri, "test://a");
  await client.close();
  await watched.over();
});

test("redirects are followed within the origin, and nowhere else", async () => {
  const asked = [];
  const to =
    (location) =>
    ({ id, url }) => {
      asked.push(url);
      if (asked.length > 1) return json(said(id, "moved"));
      return new Response(null, { status: 307, headers: { location } });
    };
  assert.equal(await calling(to("/elsewhere")), "moved");
  assert.deepEqual(asked.splice(0), [NOWHERE, "https://mcp.example.com/elsewhere"]);
  await assert.rejects(calling(to("https://other.example.com/mcp")), /other\.example\.com.* is not followed/);
  assert.deepEqual(asked, [NOWHERE]);
});

test("each client has its own, and a group one for all", async (t) => {
  const urls = [await serve(t, server()), await serve(t, server())];
  const all = ["ada", "bob"].map((name) => new Watched(name));
  const clients = await Promise.all(all.map(({ fetch }, at) => connect(urls[at], { ...legacy, fetch })));
  const apps = await Promise.all([0, 1, 0, 1].map((at) => clients[at].callTool("app")));
  assert.deepEqual(
    apps.map(({ text }) => text),
    ["ada", "bob", "ada", "bob"],
  );
  await Promise.all(clients.map((client) => client.close()));
  for (const watched of all) await watched.over();
  for (const [at, { asked }] of all.entries()) assert.ok(asked.every(({ url }) => url === urls[at]));

  const shared = new Watched("shared");
  const group = await connectMany({ one: urls[0], two: urls[1], inside: server() }, { ...legacy, fetch: shared.fetch });
  assert.deepEqual([...group.failures], []);
  const texts = ["one", "two", "inside"].map(async (name) => (await group.client(name).callTool("app")).text);
  assert.deepEqual(await Promise.all(texts), ["shared", "shared", "nobody"]);
  await group.close();
  await shared.over();
  assert.deepEqual([...new Set(shared.asked.map(({ url }) => url))].sort(), [...urls].sort());
});

test("a login goes through it, with all that is asked for it", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const watched = new Watched();
  const client = await within(
    connect(url, { fetch: watched.fetch, auth: { browser: browse, store: "memory" } }),
    "the login",
  );
  assert.equal(await tell(client), "ada: read");
  await client.close();
  await watched.over();
  const asked = watched.asked.map((one) => one.url);
  for (const path of ["/.well-known/oauth-authorization-server", "/register", "/token"]) {
    assert.ok(asked.includes(oauth.issuer + path), `${path} is not among ${asked}`);
  }
  assert.ok(asked.some((one) => one.startsWith(new URL("/.well-known/oauth-protected-resource", url).href)));
  const token = watched.asked.find((one) => one.url.endsWith("/token"));
  assert.match(token.headers["content-type"], /^application\/x-www-form-urlencoded/);
  assert.match(token.body, /grant_type=authorization_code/);
});

test("where a login cannot get through it, that is why it fails", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const fetch = async (input, init) => {
    if (input.startsWith(oauth.issuer)) throw new Error("the firewall says no");
    return globalThis.fetch(input, init);
  };
  const connecting = connect(url, { fetch, auth: { browser: browse, store: "memory" } });
  await assert.rejects(within(connecting, "the failure"), /the firewall says no/);
  assert.deepEqual(oauth.asked, []);
});

test("what it throws is why a request fails", async () => {
  const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
  const addresses = new AggregateError([cause, new Error("connect ECONNREFUSED ::1:9")]);
  const circle = new Error("a circle");
  circle.cause = circle;
  for (const [thrown, why] of [
    [new RangeError("no network"), /no network$/],
    [new TypeError("fetch failed", { cause }), /fetch failed: connect ECONNREFUSED 127\.0\.0\.1:9$/],
    [
      new TypeError("fetch failed", { cause: addresses }),
      /failed: connect ECONNREFUSED 127\S+, connect ECONNREFUSED ::/,
    ],
    [new Error("no way: the line is cut", { cause: new Error("the line is cut") }), /no way: the line is cut$/],
    [new Error("", { cause: "the reason" }), /Error: the reason$/],
    [circle, /a circle$/],
    [new AuthError("the vault is locked"), /the vault is locked$/],
    [new MisuseError("not this way"), /not this way$/],
    ["text", /text$/],
    [undefined, /undefined$/],
  ]) {
    for (const throws of [() => Promise.reject(thrown), () => raise(thrown)]) {
      const heard = [];
      const onError = (error, name) => heard.push([error, name]);
      await assert.rejects(calling(throws, { onError }), (error) => {
        assert.ok(error instanceof TransportError, `${error}`);
        assert.match(error.message, why);
        return true;
      });
      assert.deepEqual(heard, [[thrown, "fetch"]]);
    }
  }
  const connecting = connect(NOWHERE, { ...legacy, fetch: () => raise(new Error("no network")) });
  await assert.rejects(connecting, { name: "TransportError", message: /no network/ });
});

function raise(thrown) {
  throw thrown;
}

test("a body that breaks off is why a request fails", async () => {
  for (const type of ["application/json", "text/event-stream"]) {
    const answer = () => {
      const pull = (controller) => controller.error(new Error("the line is cut"));
      const start = (controller) => controller.enqueue(Buffer.from('{"jsonrpc"'));
      return new Response(new ReadableStream({ start, pull }), { headers: { "content-type": type } });
    };
    await assert.rejects(calling(answer), { name: "TransportError", message: /the line is cut/ });
  }
});

test("answers that are none are named", async () => {
  const read = json({});
  await read.text();
  const taken = json({});
  taken.body.getReader();
  const headers = new Headers();
  for (const [given, got] of [
    [undefined, "undefined"],
    [5, "a number"],
    ["text", "a string"],
    [{}, "an object without a status"],
    [{ status: "200", headers }, "an object without a status"],
    [{ status: 200 }, "an object whose headers cannot be iterated"],
    [{ status: 200, headers: { a: "b" } }, "an object whose headers cannot be iterated"],
    [{ status: 200, headers: ["ab"] }, "an object whose headers are no names and values"],
    [{ status: 200, headers, json: async () => ({}) }, "an object whose body cannot be read"],
    [{ status: 200, headers, body: "text" }, "an object whose body cannot be read"],
  ]) {
    const message = new RegExp(`fetch: expected a Response, got ${got}$`);
    await assert.rejects(
      calling(() => given),
      { name: "MisuseError", message },
    );
  }
  for (const given of [read, taken]) {
    const message = /fetch: the body of the Response was read already: read that of its clone\(\)$/;
    await assert.rejects(
      calling(() => given),
      { name: "MisuseError", message },
    );
  }
  const numbers = () => new Response(ReadableStream.from([5]), { headers: { "content-type": "application/json" } });
  await assert.rejects(calling(numbers), /a number/);
});

test("options that are wrong are named", async () => {
  const refused = (options, message) =>
    assert.rejects(connect(NOWHERE, { ...legacy, ...options }), { name: "MisuseError", message });
  await refused({ fetch: 5 }, /^fetch: expected a function, got a number$/);
  await refused({ fetch: null }, /^fetch: expected a function, got null$/);
  await refused({ fetch: { fetch } }, /^fetch: expected a function, got an object$/);
  await refused({ fetsh: fetch }, /unknown option "fetsh", did you mean "fetch"\?$/);
  await assert.rejects(connectMany({}, { fetch: "undici" }), /^MisuseError: fetch: expected a function, got a string$/);
  for (const [name, value] of Object.entries({ proxy: "http://p:3128", ca: "ca.pem", cert: "c.pem", key: "k.pem" })) {
    await refused({ fetch, [name]: value }, new RegExp(`"${name}"`));
  }
});

test("servers that are not behind a URL are reached without it", async () => {
  const fetch = () => assert.fail("nothing is asked over HTTP");
  const use = async (client) => assert.equal((await client.callTool("app")).text, "nobody");
  for (const options of [MODERN, legacy]) await withClient(server(), use, { ...options, fetch });
});

test("it runs where connecting began", async () => {
  const user = new AsyncLocalStorage();
  const client = await user.run("connect", () =>
    connect(NOWHERE, { ...legacy, fetch: mock(({ id }) => json(said(id, user.getStore()))) }),
  );
  for (const name of ["ada", "bob"]) {
    assert.equal(await user.run(name, async () => (await client.callTool("any")).text), "connect");
  }
  await client.close();
});

test("a client that is closed lets go of it", async (t) => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  const url = await serve(t, server());
  // In a function of its own, so that nothing here refers to it.
  const gone = await (async () => {
    const watched = new Watched();
    const client = await connect(url, { ...legacy, fetch: watched.fetch });
    await client.callTool("app");
    await client.close();
    await watched.over();
    return new WeakRef(watched.fetch);
  })();
  for (let round = 0; round < 100 && gone.deref(); round++) {
    await turn();
    gc();
  }
  assert.equal(gone.deref(), undefined);
});
