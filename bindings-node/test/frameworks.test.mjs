// Mounted in the web frameworks that people have, the way these have it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { connect, Server } from "tricorn";
import { within } from "./program.mjs";

const app = () => new Server("mounted").tool("who", ({ text }, ctx) => `${ctx.host?.user ?? "nobody"}: ${text}`);

/** Calls the tool of what is mounted at `url` in both eras. */
async function exercise(url, user = "ann") {
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const client = await within(connect(url, { revision, headers: { "X-User": user } }), "a connection");
    const text = "\u00e4".repeat(1000);
    assert.equal((await within(client.callTool("who", { text }), "an answer")).text, `${user}: ${text}`);
    await client.close();
  }
}

async function listening(t, web) {
  const server = web.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

for (const parser of ["none", "json", "text", "raw", "after a pause"]) {
  test(`Express, ${parser}`, async (t) => {
    const listener = app().listener();
    const web = express();
    if (parser === "after a pause") {
      web.use((request, _, next) => {
        request.pause();
        setImmediate(next);
      });
    } else if (parser !== "none") web.use(express[parser]({ type: "*/*" }));
    web.use("/mcp", (request, response) => {
      listener(request, response, { context: { user: request.get("x-user") } });
    });
    await exercise(await listening(t, web));
  });
}

test("Express, as its own handler", async (t) => {
  const web = express().use("/mcp", new Server("mounted").tool("who", () => "ann: x").listener());
  const client = await connect(await listening(t, web));
  assert.equal((await client.callTool("who")).text, "ann: x");
  await client.close();
});

test("Fastify", async (t) => {
  const listener = app().listener();
  const web = fastify();
  web.all("/mcp", (request, reply) => {
    reply.hijack();
    listener(request.raw, reply.raw, { body: request.body, context: { user: request.headers["x-user"] } });
  });
  t.after(() => web.close());
  await exercise(`${await web.listen({ port: 0, host: "127.0.0.1" })}/mcp`);
});

for (const parsed of [false, true]) {
  test(`Koa${parsed ? ", a body that was parsed" : ""}`, async (t) => {
    const listener = app().listener();
    const web = new Koa();
    if (parsed) {
      web.use(async (ctx, next) => {
        const parts = [];
        for await (const part of ctx.req) parts.push(part);
        if (parts.length > 0) ctx.request.body = JSON.parse(Buffer.concat(parts));
        await next();
      });
    }
    web.use((ctx) => {
      ctx.respond = false;
      const context = { user: ctx.get("x-user") };
      listener(ctx.req, ctx.res, { context, ...(ctx.request.body && { body: ctx.request.body }) });
    });
    await exercise(await listening(t, web));
  });
}

test("Hono", async (t) => {
  const server = app();
  const web = new Hono();
  // Each of these reads the body before.
  web.use(async (c, next) => {
    if (c.req.query("read") === "1" && c.req.method === "POST") c.set("body", await c.req.json());
    await next();
  });
  web.all("/mcp", (c) =>
    server.fetch(c.req.raw, {
      context: { user: c.req.header("x-user") },
      ...(c.get("body") && { body: c.get("body") }),
    }),
  );
  const url = await listening(
    t,
    nodeServer((request) => web.fetch(request)),
  );
  await exercise(url);
  await exercise(`${url}?read=1`);
});

test("the second argument of a runtime is no option", async () => {
  const server = new Server("deno").tool("t", () => 1);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const request = new Request("http://localhost/mcp", { method: "POST", headers, body });
  const info = { remoteAddr: { hostname: "127.0.0.1" }, completed: Promise.resolve() };
  assert.ok((await server.fetch(request, info)).status < 500);
});

/** An adapter: a `fetch` behind `node:http`. */
function nodeServer(answer) {
  return createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = parts.length > 0 ? { body: Buffer.concat(parts) } : {};
    const url = `http://${request.headers.host}${request.url}`;
    const away = new AbortController();
    response.once("close", () => away.abort());
    const given = new Request(url, { method: request.method, headers: request.headers, ...body, signal: away.signal });
    const answered = await answer(given);
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.flushHeaders();
    try {
      for await (const part of answered.body ?? []) response.write(part);
    } catch {
      // The client has gone.
    }
    response.end();
  });
}
