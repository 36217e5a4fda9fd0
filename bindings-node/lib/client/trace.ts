/** The trace that the requests of a client belong to. */

import type { RequestOptions } from "../call/options.js";
import type { TraceSource } from "../model/trace.js";

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
