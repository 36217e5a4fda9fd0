/** What a handler may know about its call, and do during it. */

import { native } from "./errors.js";
import { bridge } from "./host.js";
import type {
  ClientCapabilities,
  Implementation,
  LoggingLevel,
  MetaObject,
  ProgressToken,
  RequestId,
} from "./types.js";

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
  /** Who is calling, when the client said so. */
  readonly clientInfo: Implementation | undefined;
  /** What the client can do; see {@link Context.require}. */
  readonly clientCapabilities: ClientCapabilities;
  /** The request's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** Present when the client wants to hear of progress. */
  readonly progressToken: ProgressToken | undefined;
  /** The least severe level the client wants to hear of. */
  readonly logLevel: LoggingLevel | undefined;
  /** How the request came; `memory` is a client in this process. */
  readonly transport: "stdio" | "http" | "memory";
  /** The `Mcp-Session-Id` of a legacy HTTP client. */
  readonly sessionId: string | undefined;
  /** The HTTP headers, names in lower case, repeated ones joined by `, `; empty on other transports. */
  readonly headers: { readonly [name: string]: string };
  /** All of it as the engine tells it, with names this version may not know. */
  readonly raw: { readonly [name: string]: unknown };
}

/** How the engine tells it: members without a value are left out. */
type Wire = Partial<Omit<RequestInfo, "id" | "headers" | "raw">> &
  Pick<RequestInfo, "method" | "protocolVersion" | "era" | "transport"> & {
    readonly requestId: RequestId;
    readonly headers?: readonly (readonly [name: string, value: string])[];
  };

/** The optional second argument of every handler. Good for this one call. */
export class Context {
  readonly #key: number;
  #request: RequestInfo | undefined;
  #controller: AbortController | undefined;
  #cancelled: DOMException | undefined;

  /** @internal */
  constructor(key: number) {
    this.#key = key;
  }

  /**
   * Aborted when nobody waits for this call any more: the client cancelled it or went away.
   * The reason is an `AbortError`. Whatever the handler returns after that is dropped.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  /** True once {@link signal} is aborted. */
  get cancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  /**
   * The request behind this call.
   *
   * @throws {Error} when the call has finished and this is the first time anybody asks.
   */
  get request(): RequestInfo {
    this.#request ??= read(this.#key);
    return this.#request;
  }

  /**
   * Tells the client how far this call is. Progress should grow with every report.
   *
   * @param total where progress ends, when known
   * @returns false when the call is over
   */
  progress(progress: number, total?: number, message?: string): boolean {
    return bridge.progress(this.#key, progress, total, message);
  }

  /**
   * Sends a log message to the client, if it wants to hear of that level.
   *
   * @param data any JSON value, usually a string or an object
   * @param logger the part of the program it comes from
   * @returns false when the client does not want it or the call is over
   */
  log(level: LoggingLevel, data: unknown, logger?: string): boolean {
    return native(() => bridge.log(this.#key, level, logger, JSON.stringify(data) ?? "null"));
  }

  /**
   * Checks that the client has a capability, such as `sampling`, `elicitation` or `elicitation.url`.
   *
   * @throws {RpcError} when it has not. Let it pass: it is the answer the client understands.
   */
  require(capability: string): void {
    native(() => bridge.require(this.#key, capability));
  }

  /** @internal */
  cancel(reason: string | null): void {
    if (this.#cancelled) return;
    this.#cancelled = new DOMException(reason ?? "the request was cancelled", "AbortError");
    this.#controller?.abort(this.#cancelled);
  }
}

function read(key: number): RequestInfo {
  const text = bridge.context(key);
  if (text === null) throw new Error("the call has finished: read ctx.request while it runs");
  const wire = JSON.parse(text) as Wire;
  return {
    id: wire.requestId,
    method: wire.method,
    protocolVersion: wire.protocolVersion,
    era: wire.era,
    clientInfo: wire.clientInfo,
    clientCapabilities: wire.clientCapabilities ?? {},
    meta: wire.meta ?? {},
    progressToken: wire.progressToken,
    logLevel: wire.logLevel,
    transport: wire.transport,
    sessionId: wire.sessionId,
    headers: joined(wire.headers ?? []),
    raw: wire,
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
