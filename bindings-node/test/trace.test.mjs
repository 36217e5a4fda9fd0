// The trace that requests belong to: into handlers, and out with what they ask.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, connectMany, MisuseError, Server } from "tricorn";
import { withClient } from "tricorn/testing";

const REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"];

function trace(number) {
  const parent = String(number).padStart(16, "0");
  const traceparent = `00-4bf92f3577b34da6a3ce929d0e0e4736-${parent}-01`;
  return { traceparent, tracestate: "vendor=1", baggage: "tenant=a%20b" };
}

const seen = (ctx) => JSON.stringify(ctx.traceContext ?? null);

function filled(app = new Server("s")) {
  return app
    .tool("seen", (_, ctx) => seen(ctx))
    .tool("meta", (_, ctx) => JSON.stringify(ctx.request.meta))
    .tool("asks", async (_, ctx) => {
      const first = await ctx.sample("first?", { maxTokens: 9 });
      const second = await ctx.sample("second?", { maxTokens: 9 });
      return `[${first.text},${second.text}]`;
    });
}

const sampling = (_, ctx) => seen(ctx);

/** Returns what a tool says, as JSON. */
async function said(client, name, options) {
  const result = await client.callTool(name, {}, options);
  assert.ok(!result.isError, result.text);
  return JSON.parse(result.text);
}

/** Serves on a free port of this machine, until `close`. */
async function listening(app) {
  let ended;
  const url = await new Promise((resolve) => {
    ended = app.serveHttp({ port: 0, onListening: resolve });
  });
  const close = async () => {
    await app.close();
    await ended;
  };
  return { url, close };
}

async function goesAround(client, count) {
  assert.deepEqual(await said(client, "seen"), trace(count.last));
  // All rounds of one request are of one trace.
  const both = await said(client, "asks");
  assert.deepEqual(both, [trace(count.last), trace(count.last)]);
  assert.deepEqual(await said(client, "seen"), trace(count.last));
}

test("a trace goes to the handler and back with its questions", async () => {
  for (const revision of REVISIONS) {
    const count = { last: 0 };
    const options = { revision, sampling, traceContext: () => trace(++count.last) };
    await withClient(filled(), (client) => goesAround(client, count), options);
    assert.equal(count.last, 3);
    const app = filled();
    const { url, close } = await listening(app);
    const client = await connect(url, options);
    await goesAround(client, count);
    await client.close();
    await close();
  }
});

test("what is said of one request comes first", async () => {
  for (const revision of REVISIONS) {
    const client = await connect(filled(), { revision, traceContext: () => trace(1) });
    assert.deepEqual(await said(client, "seen", { traceContext: trace(2) }), trace(2));
    const { traceparent } = trace(3);
    assert.deepEqual(await said(client, "seen", { traceContext: { traceparent } }), { traceparent });
    const meta = await said(client, "meta", { traceContext: trace(2), meta: { traceparent, "own/key": 1 } });
    assert.equal(meta.traceparent, traceparent);
    assert.deepEqual([meta.tracestate, meta.baggage, meta["own/key"]], [undefined, "tenant=a%20b", 1]);
    await client.close();
    const silent = await connect(filled(), { revision, traceContext: () => undefined });
    assert.equal(await said(silent, "seen"), null);
    await silent.close();
  }
});

test("what is malformed is as if it were not there", async () => {
  for (const revision of REVISIONS) {
    const client = await connect(filled(), { revision });
    for (const bad of ["junk", trace(0).traceparent, 7, null]) {
      const meta = { traceparent: bad, tracestate: "a=1" };
      assert.equal(await said(client, "seen", { meta }), null);
      assert.deepEqual(await said(client, "seen", { meta: { ...meta, baggage: "k=v" } }), { baggage: "k=v" });
    }
    for (const [wrong, part] of [
      [{ traceparent: "junk" }, /"traceparent": expected/],
      [{ tracestate: "a=1" }, /a "traceparent" beside it/],
      [{ traceParent: "x" }, /expected one of/],
    ]) {
      await assert.rejects(client.callTool("seen", {}, { traceContext: wrong }), (error) => {
        assert.ok(error instanceof MisuseError);
        assert.match(error.message, part);
        return true;
      });
    }
    await client.close();
  }
});

test("what says it may fail", async () => {
  const failed = [];
  const traceContext = () => {
    throw new RangeError("no trace today");
  };
  const onError = (error, name) => failed.push([error.message, name]);
  const client = await connect(filled(), { traceContext, onError });
  assert.equal(await said(client, "seen"), null);
  assert.deepEqual(failed, [["no trace today", "traceContext"]]);
  await client.close();
  await assert.rejects(connect(filled(), { traceContext: "00-" }), /traceContext: expected a function/);
});

test("middleware may put another in its place", async () => {
  for (const revision of REVISIONS) {
    let number = 100;
    const before = [];
    const spans = (request, context, next) => {
      before.push(context.traceContext ?? null);
      context.traceContext = trace(number++);
      return next(request, context);
    };
    const client = await connect(filled().middleware(spans), { revision, sampling });
    number = 100;
    assert.deepEqual(await said(client, "seen", { traceContext: trace(1) }), trace(100));
    // Where rounds are requests, the second question is asked in the second one.
    const second = revision === "2026-07-28" ? 102 : 101;
    assert.deepEqual(await said(client, "asks"), [trace(101), trace(second)]);
    await client.close();
    const own = await connect(filled(), { revision, middleware: [spans], traceContext: () => trace(7) });
    [number, before.length] = [200, 0];
    assert.deepEqual(await said(own, "seen"), trace(200));
    assert.deepEqual(before, [trace(7)]);
    await own.close();
  }
});

test("a group asks for each server", async () => {
  const group = await connectMany({ one: filled() }, { traceContext: () => trace(3) });
  assert.deepEqual(JSON.parse((await group.callTool("seen")).text), trace(3));
  await group.close();
});
