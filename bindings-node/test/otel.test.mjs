// Requests as spans and metrics, with the SDK of OpenTelemetry, between real clients and servers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { connect, RpcError, Server, ToolError } from "tricorn";
import { telemetry } from "tricorn/otel";
import { within } from "./program.mjs";

before(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
after(() => context.disable());

/** One side's providers with what they were told. */
class Told {
  #exporter = new InMemorySpanExporter();
  #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  #reader = new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 });
  meterProvider = new MeterProvider({ readers: [this.#reader] });
  tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#exporter)] });
  tracer = this.tracerProvider.getTracer("the program");

  telemetry() {
    return telemetry({ tracerProvider: this.tracerProvider, meterProvider: this.meterProvider });
  }

  spans(name) {
    return this.#exporter.getFinishedSpans().filter((span) => span.name === name);
  }

  span(name) {
    const found = this.spans(name);
    assert.equal(found.length, 1, name);
    return found[0];
  }

  /** Counts the measurements of each combination of attributes. */
  async measured(name) {
    await this.#reader.forceFlush();
    const all = this.#metrics
      .getMetrics()
      .at(-1)
      .scopeMetrics.flatMap(({ metrics }) => metrics);
    const metric = all.find(({ descriptor }) => descriptor.name === name);
    assert.equal(metric.descriptor.unit, "s");
    return metric.dataPoints.map(({ attributes, value }) => {
      assert.deepEqual(value.buckets.boundaries.slice(0, 3), [0.01, 0.02, 0.05]);
      return [attributes, value.count];
    });
  }

  async close() {
    await this.meterProvider.shutdown();
    await this.tracerProvider.shutdown();
  }
}

const id = (span) => span.spanContext().spanId;
const parent = (span) => span.parentSpanContext?.spanId;

function filled(theirs) {
  return new Server("s")
    .middleware(theirs.telemetry())
    .tool("work", async (_, ctx) => {
      await null;
      theirs.tracer.startSpan("inside").end();
      const tenant = propagation.getActiveBaggage()?.getEntry("tenant")?.value;
      return { trace: ctx.traceContext, tenant };
    })
    .tool("ask", async (_, ctx) => (await ctx.sample("where?", { maxTokens: 9 })).text)
    .tool("fail", () => {
      throw new ToolError("a secret");
    })
    .tool("refuse", () => {
      throw new RpcError(4242, "custom");
    })
    .tool("wait", async (_, ctx) => {
      ctx.progress(1);
      await new Promise((_, reject) => {
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
      });
    })
    .resource("x://a", "text")
    .prompt("greet", () => "hello");
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

/** Runs a test between one client and one server, over each transport, in each era. */
async function everywhere(run) {
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    for (const transport of ["memory", "http"]) {
      const [ours, theirs] = [new Told(), new Told()];
      const sampling = (_, ctx) => ctx.traceContext?.traceparent?.split("-")[2] ?? "none";
      const options = { revision, sampling, middleware: [ours.telemetry()] };
      const app = filled(theirs);
      const serving = transport === "http" ? await listening(app) : undefined;
      const client = await connect(serving?.url ?? app, options);
      try {
        await run(client, ours, theirs, { revision, transport });
      } finally {
        await client.close();
        await serving?.close();
        await Promise.all([ours.close(), theirs.close()]);
      }
    }
  }
}

test("client and server are one trace", async () => {
  await everywhere(async (client, ours, theirs, { revision, transport }) => {
    const top = ours.tracer.startSpan("root");
    const baggage = propagation.createBaggage({ tenant: { value: "a b" } });
    const inside = propagation.setBaggage(trace.setSpan(context.active(), top), baggage);
    const result = await context.with(inside, () => client.callTool("work"));
    top.end();
    const [root, sent] = [ours.span("root"), ours.span("tools/call work")];
    const [served, child] = [theirs.span("tools/call work"), theirs.span("inside")];
    for (const [span, of, kind] of [
      [sent, root, SpanKind.CLIENT],
      [served, sent, SpanKind.SERVER],
      [child, served, SpanKind.INTERNAL],
    ]) {
      assert.equal(parent(span), id(of), span.name);
      assert.equal(span.spanContext().traceId, root.spanContext().traceId);
      assert.equal(span.kind, kind);
      assert.equal(span.status.code, SpanStatusCode.UNSET);
    }
    const traceparent = `00-${root.spanContext().traceId}-${id(served)}-01`;
    assert.deepEqual(result.structured, { trace: { traceparent, baggage: "tenant=a%20b" }, tenant: "a b" });
    const expected = {
      "mcp.method.name": "tools/call",
      "mcp.protocol.version": revision,
      "gen_ai.tool.name": "work",
      "gen_ai.operation.name": "execute_tool",
      ...(transport === "http" && { "network.transport": "tcp", "network.protocol.name": "http" }),
    };
    assert.deepEqual(sent.attributes, expected);
    assert.deepEqual(await ours.measured("mcp.client.operation.duration"), [[expected, 1]]);
    assert.deepEqual(await theirs.measured("mcp.server.operation.duration"), [[expected, 1]]);
    const { "jsonrpc.request.id": request, "mcp.session.id": session, ...rest } = served.attributes;
    assert.ok(request);
    assert.equal(session, client.sessionId);
    assert.deepEqual(rest, expected);
  });
});

test("what a handler asks belongs to its span", async () => {
  await everywhere(async (client, ours, theirs, { revision }) => {
    const asked = (await client.callTool("ask")).text;
    const served = theirs.spans("tools/call ask");
    // In rounds the same request is served twice; the question is of the first time.
    assert.equal(served.length, revision === "2026-07-28" ? 2 : 1);
    for (const span of served) {
      assert.equal(parent(span), id(ours.span("tools/call ask")));
      assert.equal(span.status.code, SpanStatusCode.UNSET);
    }
    assert.equal(asked, id(served[0]));
  });
});

test("a request that fails is an error of both", async () => {
  await everywhere(async (client, ours, theirs) => {
    assert.ok((await client.callTool("fail")).isError);
    await assert.rejects(client.callTool("refuse"), RpcError);
    await client.readResource("x://a");
    await client.getPrompt("greet");
    for (const told of [ours, theirs]) {
      const [failed, refused] = [told.span("tools/call fail"), told.span("tools/call refuse")];
      assert.equal(failed.attributes["error.type"], "tool_error");
      assert.deepEqual(failed.status, { code: SpanStatusCode.ERROR });
      assert.equal(refused.attributes["error.type"], "4242");
      assert.equal(refused.attributes["rpc.response.status_code"], "4242");
      assert.deepEqual(refused.status, { code: SpanStatusCode.ERROR, message: "custom" });
      assert.equal(told.span("resources/read").attributes["mcp.resource.uri"], "x://a");
      assert.equal(told.span("prompts/get greet").attributes["gen_ai.prompt.name"], "greet");
      assert.equal(told.span("prompts/get greet").attributes["gen_ai.operation.name"], undefined);
    }
    const measured = await theirs.measured("mcp.server.operation.duration");
    assert.deepEqual(measured.map(([all]) => String(all["error.type"])).sort(), [
      "4242",
      "tool_error",
      "undefined",
      "undefined",
    ]);
    assert.ok(measured.every(([all]) => all["mcp.resource.uri"] === undefined));
  });
});

test("a request that is given up is one too", async () => {
  await everywhere(async (client, ours, theirs) => {
    const given = new AbortController();
    const onProgress = () => given.abort();
    await assert.rejects(within(client.callTool("wait", {}, { signal: given.signal, onProgress })));
    const ended = async () => {
      // Both sides hear of it later.
      while (ours.spans("tools/call wait").length + theirs.spans("tools/call wait").length < 2) {
        await client.callTool("work");
      }
    };
    await within(ended());
    for (const told of [ours, theirs]) {
      const span = told.span("tools/call wait");
      assert.equal(span.attributes["error.type"], "cancelled");
      assert.equal(span.status.code, SpanStatusCode.ERROR);
    }
  });
});

test("what the caller says by hand stays", async () => {
  const [ours, theirs] = [new Told(), new Told()];
  const client = await connect(filled(theirs), { middleware: [ours.telemetry()] });
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  await client.callTool("work", {}, { meta: { traceparent } });
  assert.equal(parent(theirs.span("tools/call work")), "00f067aa0ba902b7");
  await client.close();
  await Promise.all([ours.close(), theirs.close()]);
});
