/** The trace that a request belongs to. */

import type { RequestOptions } from "../call/request-options.js";

/**
 * The trace that a request belongs to, each member as its W3C header has it. In a request's `_meta` the members have the
 * same names. What is malformed there is left out; what a program gives is checked by the engine, which names the member.
 */
export interface TraceContext {
  /** `version-traceid-parentid-flags`, such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. */
  readonly traceparent?: string | undefined;
  /** Data of tracing systems beside it, `key=value,…`; only with a `traceparent`. */
  readonly tracestate?: string | undefined;
  /** Data that the program gave the trace on its way, `key=value,…`, percent-encoded; 8,192 bytes at most. */
  readonly baggage?: string | undefined;
}

/** Says to which trace a request belongs that is made where it is called. */
export type TraceSource = () => TraceContext | undefined;

/** The options of a request with the trace that it belongs to. */
export type Traced = <Options extends RequestOptions>(options: Options) => Options;

/**
 * Returns the function that gives the requests of a client their trace, unless they say one: its option, else the first
 * of its middleware that knows. A request does not fail for want of it.
 */
export function tracing(
  given: TraceSource | undefined,
  middleware: readonly unknown[],
  { onError }: { readonly onError: (error: unknown, name: string, subject: string) => void },
): Traced {
  const known = middleware.map((one) => (one as { readonly traceContext?: unknown } | null)?.traceContext);
  const source = given ?? known.find((one): one is TraceSource => typeof one === "function");
  return (options) => {
    if (!source || options.traceContext) return options;
    try {
      const traceContext = source();
      return traceContext ? { ...options, traceContext } : options;
    } catch (error) {
      onError(error, "traceContext", "traceContext");
      return options;
    }
  };
}
