/** The trace that a request belongs to. */

/**
 * The trace that a request belongs to, each member as its W3C header has it. In a request's `_meta` the members have the
 * same names. Malformed values are left out there; what a program gives is checked by the engine, which names the member.
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
