/** The request as a handler of either side sees it. */

import { bridge } from "../bridge/host.js";
import { checkTypes } from "../json/checks.js";
import { infoFrom, type RequestInfo } from "../model/request-info.js";
import type { TraceContext } from "../model/trace.js";

/** @internal */
export let keyOf: (context: RequestContext) => number;

/** The request as a handler of either side sees it. Good for this one call. */
export class RequestContext {
  readonly #key: number;
  #request: RequestInfo | undefined;
  #controller: AbortController | undefined;
  #cancelled: DOMException | undefined;
  /** @internal A run of this handler has ended at a question, whatever it makes of that. */
  stopped = false;
  /** @internal That of the innermost middleware around this call. It stays when that is done, and the call a task. */
  around: RequestContext | undefined;
  #values: Map<unknown, unknown> | undefined;
  /** @internal What middleware put in the place of the request's trace. */
  trace: TraceContext | undefined;

  static {
    keyOf = (context) => context.#key;
  }

  /** @internal */
  constructor(key: number) {
    this.#key = key;
  }

  /**
   * Aborted when nobody waits for this call any more: the peer cancelled it or went away.
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
    if (!this.#request) {
      const text = bridge.context(this.#key);
      if (text === null) throw new Error("the call has finished: read ctx.request while it runs");
      this.#request = infoFrom(text);
    }
    return this.#request;
  }

  /**
   * The trace that the request belongs to; what a handler asks belongs to it, too. Undefined: nobody said. Middleware may
   * set it before it calls `next`.
   */
  get traceContext(): TraceContext | undefined {
    return this.trace ?? this.request.traceContext;
  }

  set traceContext(trace: TraceContext) {
    this.trace = trace;
  }

  /** Values that middleware and the handler of one request share, by any key. */
  get values(): Map<unknown, unknown> {
    this.#values ??= this.around?.values ?? new Map<unknown, unknown>();
    return this.#values;
  }

  /**
   * Tells the peer how far this call is. Progress should grow with every report.
   *
   * @param total where progress ends, when known
   * @returns false when the call is over
   * @throws {MisuseError} for what is no number, such as NaN, and a message that is no text
   */
  progress(progress: number, total?: number, message?: string): boolean {
    checkTypes(
      "progress",
      ["progress", progress, "number"],
      ["total", total, "number", "optional"],
      ["message", message, "string", "optional"],
    );
    return bridge.progress(this.#key, progress, total, message);
  }

  /**
   * Says what this call is doing, for who looks at its task; without one nobody does.
   *
   * @returns false when the call is over
   */
  setStatus(message: string): boolean {
    checkTypes("setStatus", ["message", message, "string"]);
    return bridge.setStatus(this.#key, message);
  }

  /**
   * Steps that are being done.
   *
   * @internal
   */
  atWork: Set<Promise<unknown>> | undefined;

  /** @internal */
  cancel(reason: string | null): void {
    if (this.#cancelled) return;
    this.#cancelled = new DOMException(reason ?? "the request was cancelled", "AbortError");
    this.#controller?.abort(this.#cancelled);
  }
}
