/** Facts of the request behind a call. */

import type {
  ClientCapabilities,
  Implementation,
  LoggingLevel,
  MetaObject,
  ProgressToken,
  RequestId,
} from "../types.js";
import { type Principal, principalFrom, type WirePrincipal } from "./principal.js";
import type { TraceContext } from "./trace.js";

/** The request behind a call. Handlers cannot tell where it came from unless they look here. */
export interface RequestInfo {
  /** The JSON-RPC id. */
  readonly id: RequestId;
  /** The JSON-RPC method, such as `tools/call`. */
  readonly method: string;
  /** The protocol revision in force, such as `2025-11-25`. */
  readonly protocolVersion: string;
  /** `legacy`: opened by `initialize`. `modern`: stateless, everything is in the request. */
  readonly era: "legacy" | "modern";
  /** The client's name and version, when the client said so. */
  readonly clientInfo: Implementation | undefined;
  /** The client's capabilities; see {@link Context.require}. */
  readonly clientCapabilities: ClientCapabilities;
  /** The request's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** The trace that the request belongs to, as its `_meta` says it, or middleware. */
  readonly traceContext: TraceContext | undefined;
  /** Present when the client wants to hear of progress. */
  readonly progressToken: ProgressToken | undefined;
  /** The least severe level the client wants to hear of. */
  readonly logLevel: LoggingLevel | undefined;
  /** The task that the call has run as from its beginning. */
  readonly taskId: string | undefined;
  /** The transport that the request came over; `memory` is a client in this process. */
  readonly transport: "stdio" | "http" | "memory";
  /** The `Mcp-Session-Id` of a legacy HTTP client. */
  readonly sessionId: string | undefined;
  /** The principal that sent it, where the server has `auth`; see {@link Context.principal}. */
  readonly principal: Principal | undefined;
  /** The HTTP headers, names in lower case, repeated ones joined by `, `; empty on other transports. */
  readonly headers: { readonly [name: string]: string };
  /** All of it as the engine tells it, with names this version may not know. */
  readonly raw: { readonly [name: string]: unknown };
}

/** The request as the engine tells it: members without a value are left out. */
type Wire = Partial<Omit<RequestInfo, "id" | "headers" | "principal" | "raw">> &
  Pick<RequestInfo, "method" | "protocolVersion" | "era" | "transport"> & {
    readonly requestId: RequestId;
    readonly principal?: WirePrincipal | undefined;
    readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  };

/** The request that the engine tells of, as JSON text. */
export function infoFrom(text: string): RequestInfo {
  const wire = JSON.parse(text) as Wire;
  const principal = wire.principal && principalFrom(wire.principal);
  return {
    id: wire.requestId,
    method: wire.method,
    protocolVersion: wire.protocolVersion,
    era: wire.era,
    clientInfo: wire.clientInfo,
    clientCapabilities: wire.clientCapabilities ?? {},
    meta: wire.meta ?? {},
    traceContext: wire.traceContext,
    progressToken: wire.progressToken,
    logLevel: wire.logLevel,
    taskId: wire.taskId,
    transport: wire.transport,
    sessionId: wire.sessionId,
    principal,
    headers: joined(wire.headers ?? []),
    // What is known of the principal is shown to nobody who only looks.
    raw: principal ? { ...wire, principal } : wire,
  };
}

function joined(pairs: NonNullable<Wire["headers"]>): RequestInfo["headers"] {
  const headers = new Map<string, string>();
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(headers);
}
