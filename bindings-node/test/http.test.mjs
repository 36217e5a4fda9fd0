// Streamable HTTP: our own listener, `fetch` and `node:http` mounts, all called by our client.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { connect, RpcError, Server } from "tricorn";
import { within } from "./program.mjs";

function app(name) {
  return new Server(name, { maxMessageBytes: 100_000 })
    .tool("add", async ({ a, b }) => a + b)
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

test("fetch, below a server of somebody else", async (t) => {
  const { fetch: answer } = app("fetched");
  const mounted = createServer(async (request, response) => {
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
  });
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

test("maxConnections is passed on", () => {
  assert.throws(() => new Server("x").http({ maxConnections: 0 }), /"maxConnections": expected at least 1/);
});

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}
