/** Gauges of a server. */

import type { MethodTiming } from "../call/middleware.js";

/** Gauges of a server. */
export interface Metrics {
  /** Pipes and sockets. */
  readonly connections: number;
  /** Legacy sessions over HTTP. */
  readonly sessions: number;
  /** Requests at work, of all transports. */
  readonly in_flight: number;
  /** Open event streams over HTTP. */
  readonly streams: number;
  /** Clients that listen (`subscriptions/listen` of revision 2026-07-28); they are no requests at work. */
  readonly listeners: number;
  /** Bytes that the whole process keeps for its peers, of at most `maxMemory`. */
  readonly memory: number;
  /** Tasks kept, finished or not. */
  readonly tasks: number;
  /** Counts of the middleware {@link timing}, by method. */
  readonly timing?: Readonly<Record<string, MethodTiming>> | undefined;
  /** Calls that JavaScript has not answered, of all servers and clients of this program. */
  readonly bridge_calls: number;
  /** Operations that JavaScript waits for. */
  readonly bridge_ops: number;
  /** Deliveries that JavaScript has not taken. */
  readonly bridge_queued: number;
  /** Events dropped, ever, because nobody took them in time. */
  readonly bridge_dropped: number;
}
