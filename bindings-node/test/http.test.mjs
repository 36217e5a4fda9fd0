// Streamable HTTP: our own listener, `fetch` and `node:http` mounts, all called by our client.
import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { Writable } from "node:stream";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { connect, RpcError, Server, TimeoutError } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { abandon, addon, mount, nativeServer } from "../dist/core.js";
import { within } from "./program.mjs";

function app(name) {
  return new Server(name, { maxMessageBytes: 100_000 })
    .tool("add", async ({ a, b }) => a + b)
    .tool("echo", ({ text }) => text)
    .tool("progress", (_, ctx) => {
      ctx.progress(1, 2);
      ctx.progress(2, 2);
      return "é".repeat(1000);
    })
    .tool("wait", async (_, ctx) => {
      ctx.progress(0);
      await once(ctx.signal, "abort");
      throw ctx.signal.reason;
    });
}

async function exercise(url) {
  for (const revision of [undefined, "2025-11-25", "2025-06-18", "2025-03-26"]) {
    const client = await connect(url, revision ? { revision } : {});
    assert.equal(client.transport, "http");
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    const heard = [];
    const { text } = await client.callTool("progress", {}, { onProgress: ({ progress }) => heard.push(progress) });
    assert.deepEqual(heard, [1, 2]);
    assert.equal(text, "é".repeat(1000));
    const sums = await Promise.all(Array.from({ length: 50 }, (_, a) => client.callTool("add", { a, b: 1 })));
    assert.deepEqual(
      sums.map(({ text }) => Number(text)),
      Array.from({ length: 50 }, (_, a) => a + 1),
    );
    const controller = new AbortController();
    const waiting = client.callTool("wait", {}, { signal: controller.signal, onProgress: () => controller.abort() });
    await assert.rejects(within(waiting, "the abort"), { name: "AbortError" });
    await assert.rejects(client.callTool("unknown"), RpcError);
    await client.close();
  }
}

const post = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
};

test("serveHttp", async () => {
  const server = app("served");
  let listening;
  const url = new Promise((resolve) => {
    listening = resolve;
  });
  const served = server.serveHttp({ port: 0, onListening: listening });
  const address = await within(url, "listening");
  assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  await exercise(address);
  const refused = await fetch(address, {
    ...post,
    headers: { ...post.headers, origin: "http://evil.example.com" },
    body: "{}",
  });
  assert.equal(refused.status, 403);
  await server.close();
  await within(served, "the end of serving");
  await assert.rejects(fetch(address), TypeError);
});

test("a node:http listener", async (t) => {
  const mounted = createServer(app("mounted").listener());
  t.after(() => mounted.close());
  mounted.listen(0, "127.0.0.1");
  await once(mounted, "listening");
  const url = `http://127.0.0.1:${mounted.address().port}/mcp`;
  await exercise(url);
  const large = await fetch(url, { ...post, body: JSON.stringify({ text: "x".repeat(200_000) }) });
  assert.equal(large.status, 413);
  const garbage = await fetch(url, { ...post, body: "not json" });
  assert.equal(garbage.status, 400);
  mounted.closeAllConnections();
});

/** A `node:http` listener that passes everything on to a `fetch` handler. */
function viaFetch(answer) {
  return async (request, response) => {
    const away = new AbortController();
    response.once("close", () => away.abort());
    const chunks = (await Array.fromAsync?.(request)) ?? (await collect(request));
    const given = await answer(
      new Request(`http://${request.headers.host}${request.url}`, {
        method: request.method,
        headers: request.headers,
        signal: away.signal,
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      }),
    );
    response.writeHead(given.status, [...given.headers].flat());
    try {
      for await (const chunk of given.body ?? []) response.write(chunk);
    } catch (error) {
      // The client went away, which is what the last calls are about.
      assert.equal(error.name, "AbortError");
    }
    response.end();
  };
}

test("fetch, below a server of somebody else", async (t) => {
  const mounted = createServer(viaFetch(app("fetched").fetch));
  t.after(() => mounted.close());
  mounted.listen(0, "127.0.0.1");
  await once(mounted, "listening");
  await exercise(`http://127.0.0.1:${mounted.address().port}/mcp`);
  mounted.closeAllConnections();
});

test("a mount is reached at whatever path its host gives it", async (t) => {
  const mounted = app("anywhere");
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  for (const { fetch: answer } of [mounted, mounted.http(), mounted.http({ path: "/elsewhere" })]) {
    for (const url of ["http://localhost/api/mcp", "http://localhost/", "http://localhost/mcp?key=1"]) {
      const given = await answer(new Request(url, { ...post, body }));
      assert.match(await given.text(), /"protocolVersion":"2025-11-25"/);
    }
  }
  const listener = mounted.listener();
  const host = createServer((request, response) => {
    if (request.url === "/api/mcp") listener(request, response);
    else response.writeHead(404).end();
  });
  t.after(() => host.close());
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  await exercise(`http://127.0.0.1:${host.address().port}/api/mcp`);
  host.closeAllConnections();
});

async function mounted(t, listener) {
  const host = createServer(listener);
  t.after(() => {
    host.closeAllConnections();
    host.close();
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  return `http://127.0.0.1:${host.address().port}/mcp`;
}

test("a client of the oldest transport, below a server of somebody else", async (t) => {
  const server = app("old");
  for (const listener of [server.listener({ sse: true }), viaFetch(server.http({ sse: true }).fetch)]) {
    const url = (await mounted(t, listener)).replace("/mcp", "/api/sse?key=1");
    const client = await connect({ mcpServers: { old: { type: "sse", url } } });
    assert.deepEqual([client.era, client.transport], ["legacy", "http"]);
    const sums = await Promise.all(Array.from({ length: 20 }, (_, a) => client.callTool("add", { a, b: 1 })));
    assert.deepEqual(
      sums.map(({ text }) => Number(text)),
      Array.from({ length: 20 }, (_, a) => a + 1),
    );
    await client.close();
  }
});

test("handlers see the headers of the request", async (t) => {
  const app = new Server("headers").tool("headers", (_, ctx) => ctx.request.headers);
  const listener = app.listener();
  const url = await mounted(t, (request, response) => {
    request.rawHeaders.push("X-Twice", "a", "x-twice", "b");
    request.headers["x-twice"] = "a, b";
    Object.defineProperty(request.headers, "__proto__", { value: "no trap", enumerable: true });
    listener(request, response);
  });
  const client = await connect(url, { headers: { Authorization: "Bearer secret" } });
  const headers = JSON.parse((await client.callTool("headers")).text);
  assert.equal(headers["authorization"], "Bearer secret");
  assert.equal(headers["x-twice"], "a, b");
  assert.equal(Object.getOwnPropertyDescriptor(headers, "__proto__")?.value, "no trap");
  assert.equal(headers["host"], new URL(url).host);
  await client.close();
  await withClient(app, async (client) => assert.equal((await client.callTool("headers")).text, "{}"));
});

test("a body that somebody else has read", async (t) => {
  const listener = app("read").listener();
  const url = await mounted(t, async (request, response) => {
    const body = Buffer.concat(await collect(request));
    if (request.url === "/mcp?bytes") request.body = body;
    if (request.url === "/mcp?text") request.body = body.toString();
    if (request.url === "/mcp?parsed") request.body = JSON.parse(body);
    listener(request, response);
  });
  for (const kept of ["bytes", "text", "parsed"]) {
    const client = await connect(`${url}?${kept}`);
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    await client.close();
  }
  const logged = t.mock.method(addon, "writeStderr", () => {});
  const lost = await within(fetch(url, { ...post, body: "{}" }), "the answer to a body that is lost");
  assert.equal(lost.status, 500);
  assert.match(String(logged.mock.calls[0]?.arguments[0]), /MisuseError: the body was read before/);
  // There was none: what the engine makes of that is not about bodies.
  const none = await within(fetch(url, { method: "DELETE" }), "the answer to no body");
  assert.equal(none.status, 400);
});

/** Things that were done to a request before it came to the server. */
const TOUCHED = {
  "it is paused": (request) => void request.pause(),
  "it is paused a moment later": (request, next) => {
    next();
    request.pause();
    return true;
  },
  "somebody listens to readable": (request) => void request.on("readable", () => {}),
  "somebody reads what is readable": (request) => {
    request.on("readable", () => {
      while (request.read() !== null);
    });
  },
  "it is paused with such a listener": (request) => {
    request.on("readable", () => {});
    request.pause();
  },
  "middleware waits with the request paused": async (request) => {
    request.pause();
    await setTimeout(20);
  },
  "it is text": (request) => void request.setEncoding("utf8"),
  "it is another text": (request) => void request.setEncoding("base64"),
  "somebody counts its bytes": (request) => void request.on("data", () => {}),
  "somebody pipes it away, too": (request) =>
    void request.pipe(new Writable({ write: (_, __, done) => setImmediate(done) })),
  "a proxy left it raw": async (request) => {
    request.rawBody = Buffer.concat(await collect(request));
    request.body = { not: "this" };
  },
};

for (const [name, touch] of Object.entries(TOUCHED)) {
  test(`a request of which ${name}`, async (t) => {
    const listener = app("touched").listener();
    const url = await mounted(t, (request, response) => {
      const next = () => listener(request, response);
      const touched = touch(request, next);
      if (touched instanceof Promise) touched.then(next);
      else if (touched !== true) next();
    });
    const text = "\u00e4\u{1f600}".repeat(8_000);
    const client = await within(connect(url), "a connection");
    assert.equal((await within(client.callTool("echo", { text }), "an answer")).text, text);
    await client.close();
  });
}

test("a body that is lost in part is said to be", async (t) => {
  const listener = app("half").listener();
  const url = await mounted(t, async (request, response) => {
    await once(request, "readable");
    request.read(4);
    listener(request, response);
  });
  const logged = t.mock.method(addon, "writeStderr", () => {});
  const lost = await within(fetch(url, { ...post, body: '{"jsonrpc":"2.0"}' }), "the answer");
  assert.equal(lost.status, 500);
  assert.match(String(logged.mock.calls[0]?.arguments[0]), /MisuseError: the body was read in part before/);
});

test("fetch names what to do with a body that was read", async () => {
  const server = app("read");
  const url = "http://localhost/mcp";
  const read = new Request(url, { ...post, body: "{}" });
  await read.text();
  await assert.rejects(server.fetch(read), /MisuseError.*the body was read before.*fetch\(request, \{ body \}\)/);
  const locked = new Request(url, { ...post, body: "{}" });
  locked.body.getReader();
  await assert.rejects(server.fetch(locked), /MisuseError.*the body was read before/);
});

test("a client that left while somebody else held its request", async (t) => {
  let left;
  const gone = new Promise((resolve) => {
    left = resolve;
  });
  const listener = app("late").listener();
  const url = await mounted(t, async (request, response) => {
    client.destroy();
    await once(response, "close");
    listener(request, response);
    left(response);
  });
  const client = httpRequest(url, { method: "POST", headers: { "content-length": "10" } });
  client.on("error", () => {});
  client.flushHeaders();
  const response = await within(gone, "the end of the connection");
  assert.ok(response.destroyed);
  assert.equal(bridgeMetrics().ops, 0);
});

test("an exchange that the engine gives up errors the body and leaves nothing behind", async () => {
  const server = app("given up");
  const exchanges = [];
  const native = nativeServer(server).http("{}");
  const endpoint = {
    resourceMetadata: () => null,
    exchange(op, head, body) {
      exchanges.push(op);
      native.exchange(op, head, body);
    },
    written: (op) => native.written(op),
  };
  const signal = new AbortController().signal;
  const version = "2026-07-28";
  const headers = { ...post.headers, "mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "wait" };
  const meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
    progressToken: 1,
  };
  const params = { name: "wait", arguments: {}, _meta: meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const request = new Request("http://localhost/mcp", { ...post, headers, body, signal });
  const answer = await within(mount(endpoint, 1 << 20, server).fetch(request), "the progress");
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  abandon(exchanges[0], new TimeoutError("nobody reads"));
  await assert.rejects(within(answer.text(), "the error"), TimeoutError);
  assert.equal(getEventListeners(request.signal, "abort").length, 0);
  assert.equal(bridgeMetrics().ops, 0);
});

test("maxConnections is passed on", () => {
  assert.throws(() => new Server("x").http({ maxConnections: 0 }), /"maxConnections": expected at least 1/);
});

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
