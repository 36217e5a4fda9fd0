/**
 * Requests as spans and metrics of OpenTelemetry. It needs the package `@opentelemetry/api`.
 *
 * ```ts
 * import { telemetry } from "tricorn/otel";
 *
 * const app = new Server("demo").middleware(telemetry());
 * const client = await connect(target, { middleware: [telemetry()] });
 * ```
 */

import {
  type Attributes,
  type BaggageEntry,
  baggageEntryMetadataFromString,
  createTraceState,
  isSpanContextValid,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Context as Spans,
  context as spans,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { addon } from "./bridge/host.js";
import { type AnyState, Context } from "./call/context.js";
import type { Middleware, MiddlewareRequest } from "./call/middleware.js";
import type { RequestContext } from "./call/request-context.js";
import { RpcError, TricornError } from "./errors/errors.js";
import { InputRequired } from "./model/input-required.js";
import type { TraceContext } from "./model/trace.js";

/** Bounds of the histograms that the conventions want, in seconds. */
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** The most characters of a name, a URI, an id or a message: the peer chooses them, and spans keep them. */
const LONGEST = 1000;

/** More baggage is not sent, as nobody has to take it. */
const MOST_BAGGAGE = 8192;

/** Options of {@link telemetry}. */
export interface TelemetryOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider | undefined;
}

/** Middleware of servers and clients that also says in which trace a client's request is made. */
export interface Telemetry extends Middleware<AnyState> {
  /** The trace and the baggage that are current here. */
  readonly traceContext: () => TraceContext | undefined;
}

/**
 * Middleware that makes a span and a measurement of every request, of servers and clients, as the semantic conventions of
 * OpenTelemetry for MCP have them.
 *
 * - A server's span (kind `SERVER`) has the parent that the request's `_meta` names, and is current while its handler runs
 *   where a context manager is registered. What the handler asks the client belongs to it.
 * - A client's span (kind `CLIENT`) has the parent that is current where the request is made, and goes out in `_meta` with
 *   the current baggage. What is said there by hand stays.
 * - The span is called by method and tool or prompt, such as `tools/call add`; a request that fails, and a tool's result
 *   with `isError`, has the status error.
 * - Durations are in the histograms `mcp.server.operation.duration` and `mcp.client.operation.duration`.
 *
 * As the first middleware it measures what the others do, too.
 */
export function telemetry(options: TelemetryOptions = {}): Telemetry {
  const version = addon.version();
  const tracer = (options.tracerProvider ?? trace).getTracer("tricorn", version);
  const meter = (options.meterProvider ?? metrics).getMeter("tricorn", version);
  const histogram = (side: string, description: string) =>
    meter.createHistogram(`mcp.${side}.operation.duration`, {
      description,
      unit: "s",
      advice: { explicitBucketBoundaries: BUCKETS },
    });
  const served = histogram("server", "Time from a request's arrival to its answer");
  const asked = histogram("client", "Time from sending a request to its answer");

  const around: Middleware<RequestContext> = async (request, context, next) => {
    const serves = context instanceof Context;
    const measured = measurable(request, context);
    const parent = heard(context.traceContext);
    const span = tracer.startSpan(
      nameOf(request),
      {
        kind: serves ? SpanKind.SERVER : SpanKind.CLIENT,
        attributes: { ...measured, ...more(request, context, serves) },
      },
      parent,
    );
    const inside = trace.setSpan(parent, span);
    const own = told(inside);
    if (own) context.traceContext = own;
    const begun = performance.now();
    let failure: Failure | undefined;
    try {
      const result = await spans.with(inside, () => next(request, context));
      // What the model is told stays out of it: it may hold anything.
      if (request.method === "tools/call" && result["isError"] === true) failure = { type: "tool_error" };
      return result;
    } catch (error) {
      failure = failed(error, context, serves);
      throw error;
    } finally {
      const attributes: Attributes = {};
      if (failure) {
        attributes["error.type"] = failure.type;
        if (failure.code !== undefined) attributes["rpc.response.status_code"] = failure.code;
        span.setAttributes(attributes);
        const { message } = failure;
        span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) });
      }
      span.end();
      const seconds = (performance.now() - begun) / 1000;
      (serves ? served : asked).record(seconds, { ...measured, ...attributes }, inside);
    }
  };
  return Object.assign(around as Middleware<AnyState>, { traceContext: () => told(spans.active()) });
}

/** The context of OpenTelemetry that a trace context names. */
function heard(given: TraceContext | undefined): Spans {
  const [, traceId, spanId, flags] = given?.traceparent?.split("-") ?? [];
  let found = ROOT_CONTEXT;
  if (traceId && spanId && flags) {
    const traceState = given?.tracestate === undefined ? undefined : createTraceState(given.tracestate);
    const traceFlags = Number.parseInt(flags, 16) & 1;
    const remote = { traceId, spanId, traceFlags, isRemote: true, ...(traceState && { traceState }) };
    found = trace.setSpanContext(found, remote);
  }
  if (given?.baggage === undefined) return found;
  const entries: Record<string, BaggageEntry> = {};
  for (const member of given.baggage.split(",")) {
    const [pair = "", ...properties] = member.split(";");
    const at = pair.indexOf("=");
    const value = decoded(pair.slice(at + 1).trim());
    if (value === undefined) continue;
    const metadata = baggageEntryMetadataFromString(properties.join(";").trim());
    entries[decoded(pair.slice(0, at).trim()) ?? ""] = { value, ...(properties.length > 0 && { metadata }) };
  }
  return propagation.setBaggage(found, propagation.createBaggage(entries));
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A context's span and baggage, when there are any. */
function told(context: Spans): TraceContext | undefined {
  const span = trace.getSpanContext(context);
  const members: { traceparent?: string; tracestate?: string; baggage?: string } = {};
  if (span && isSpanContextValid(span)) {
    const flags = (span.traceFlags & 1).toString(16).padStart(2, "0");
    members.traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
    const state = span.traceState?.serialize();
    if (state) members.tracestate = state;
  }
  const entries = propagation.getBaggage(context)?.getAllEntries() ?? [];
  const all = entries.map(([key, { value, metadata }]) => {
    const properties = metadata?.toString();
    return `${encodeURIComponent(key)}=${encodeURIComponent(value)}${properties ? `;${properties}` : ""}`;
  });
  const baggage = all.join(",");
  if (baggage.length > 0 && baggage.length <= MOST_BAGGAGE) members.baggage = baggage;
  return Object.keys(members).length > 0 ? members : undefined;
}

function text(request: MiddlewareRequest, member: string): string | undefined {
  const value = (request.params as Readonly<Record<string, unknown>> | undefined)?.[member];
  return typeof value === "string" ? value.slice(0, LONGEST) : undefined;
}

/** A tool or a prompt: of these there are few. */
function target(request: MiddlewareRequest): string | undefined {
  const { method } = request;
  return method === "tools/call" || method === "prompts/get" ? text(request, "name") : undefined;
}

function nameOf(request: MiddlewareRequest): string {
  const name = target(request);
  return name === undefined ? request.method : `${request.method} ${name}`;
}

/** Returns the attributes of metrics and spans. */
function measurable(request: MiddlewareRequest, { request: known }: RequestContext): Attributes {
  const found: Attributes = { "mcp.method.name": request.method, "mcp.protocol.version": known.protocolVersion };
  const name = target(request);
  if (name !== undefined) found[request.method === "tools/call" ? "gen_ai.tool.name" : "gen_ai.prompt.name"] = name;
  if (request.method === "tools/call") found["gen_ai.operation.name"] = "execute_tool";
  if (known.transport === "http") {
    found["network.transport"] = "tcp";
    found["network.protocol.name"] = "http";
  } else if (known.transport === "stdio") found["network.transport"] = "pipe";
  return found;
}

/** Returns the further attributes of spans. */
function more(request: MiddlewareRequest, { request: known }: RequestContext, serves: boolean): Attributes {
  const found: Attributes = {};
  const uri = text(request, "uri");
  if (uri !== undefined && request.method.startsWith("resources/")) found["mcp.resource.uri"] = uri;
  // The number of what goes out is the connection's, and not known here.
  if (serves) found["jsonrpc.request.id"] = String(known.id).slice(0, LONGEST);
  if (known.sessionId !== undefined) found["mcp.session.id"] = known.sessionId;
  return found;
}

interface Failure {
  readonly type: string;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** Returns the failure of a request that ended with this error; undefined when it goes on with the client's answer. */
function failed(error: unknown, context: RequestContext, serves: boolean): Failure | undefined {
  if (error instanceof InputRequired) return undefined;
  if (error instanceof RpcError) {
    // The engine answers modern clients with another code than middleware sees.
    const isRenamed = serves && error.code === -32002 && context.request.era === "modern";
    const code = String(isRenamed ? -32602 : error.code);
    return { type: code, code, message: error.message.slice(0, LONGEST) };
  }
  if (context.cancelled) return { type: "cancelled", message: "the request was cancelled" };
  if (error instanceof TricornError) return { type: error.kind, message: error.message.slice(0, LONGEST) };
  return { type: error instanceof Error ? error.name : "_OTHER" };
}
