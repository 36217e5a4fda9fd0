/** Options and gauges of a server. */

import type { AnyState } from "../call/context.js";
import type { MethodTiming } from "../call/middleware.js";
import type { CacheHints } from "../model/cache-hints.js";
import type { StoreOptions } from "../model/store-options.js";
import type { TaskOptions } from "../model/task.js";
import type { Icon } from "../types.js";
import type { ServerAuth } from "./auth.js";
import type { DocumentStore, DocumentStoreOptions } from "./document-store.js";
import type { Extension } from "./extension.js";
import type { Lifespan } from "./lifespan.js";

/**
 * Lifetime and audience of a server's answers in caches: `ttl` and `scope` for everything, others for a part. What is
 * read, and a list of which a function gives a part, may depend on who asks: they are private unless `scope` is said of
 * them.
 */
export interface ServerCache extends CacheHints {
  /** `server/discover`. */
  readonly discover?: CacheHints | undefined;
  /** The list of tools. */
  readonly tools?: CacheHints | undefined;
  /** The list of prompts. */
  readonly prompts?: CacheHints | undefined;
  /** The list of resources. */
  readonly resources?: CacheHints | undefined;
  /** The list of resource templates. */
  readonly resourceTemplates?: CacheHints | undefined;
  /** Contents of resources, where neither the resource nor the result says it. */
  readonly read?: CacheHints | undefined;
}

/** All optional. Sizes are bytes. */
export interface ServerOptions<State = unknown> {
  /** Default: the version in your package.json. */
  readonly version?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** A description of the server, for people. */
  readonly description?: string | undefined;
  /** The URL of a page to read about it. */
  readonly websiteUrl?: string | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /** Instructions for using this server, for the model. */
  readonly instructions?: string | undefined;
  /**
   * Speak only this revision, such as `2025-11-25`, or only those with handshakes (`legacy`) or without (`modern`).
   * Default: all of them.
   */
  readonly revision?: string | undefined;
  /** Validation of access tokens over HTTP; elsewhere there are none. Default: everybody may ask. */
  readonly auth?: ServerAuth | undefined;
  /** Entries per page of a list. Default 250. */
  readonly pageSize?: number | undefined;
  /** Largest message accepted. Default 4 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Deepest JSON accepted. Default 128. */
  readonly maxNesting?: number | undefined;
  /** Memory that a message's values may take once decoded, in bytes and by estimate. Default 64 MiB. */
  readonly maxDecodedBytes?: number | undefined;
  /**
   * Bytes that the whole process keeps for its peers at most: long bodies and what is in them, events for clients that
   * lose a stream, notifications for slow readers. One client has at most as much as is left for others; beyond that new
   * work is refused (503). The server that is made last decides. Default: a quarter of the memory of the machine or its
   * control group.
   */
  readonly maxMemory?: number | undefined;
  /** Requests running at once per connection. Default 256. */
  readonly maxInFlight?: number | undefined;
  /** Notifications waiting for a slow peer. Default 256. */
  readonly maxQueuedNotifications?: number | undefined;
  /** Listen streams that one connection may have open; over HTTP each is a request of its own. Default 64. */
  readonly maxListeners?: number | undefined;
  /** Milliseconds without a message of a legacy client after which it is asked for a sign of life. Default 0: never. */
  readonly pingInterval?: number | undefined;
  /** Milliseconds after which a client that does not answer that is taken for lost, and its session ends. Default 20 seconds. */
  readonly pingTimeout?: number | undefined;
  /**
   * Capabilities declared to clients besides those of what is registered. Names: though there is none of it yet, for
   * what is added later or in sessions, as what a client was not told of as it connected it never asks for; tools are
   * always declared. An object can also declare `experimental` and capabilities that this library knows nothing of:
   * `{ prompts: {}, experimental: { ours: {} } }`. Default: nothing.
   */
  readonly capabilities?:
    | readonly ("completions" | "prompts" | "resources")[]
    | Readonly<Record<string, Readonly<Record<string, unknown>>>>
    | undefined;
  /**
   * Runs tool calls as tasks, where client and tool want that: in revision 2025-11-25 as the specification has them
   * (experimental), in 2026-07-28 by the extension `io.modelcontextprotocol/tasks`. A tool says so by `taskSupport`, or its
   * function by {@link Context.runAsTask}. Default: no tasks.
   */
  readonly tasks?: boolean | TaskOptions | undefined;
  /** Extensions of the protocol to offer; see {@link Server.addExtension}. Default: none. */
  readonly extensions?: readonly Extension<AnyState>[] | undefined;
  /**
   * Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 has to remember between two rounds of
   * questions (`requestState`). The first one seals, all of them open, so that they can be changed one after the other.
   * Servers that answer the same clients need the same. An empty list is refused: it is a setting that has got lost.
   * Default: a secret of this process alone.
   */
  readonly requestStateKeys?: readonly string[] | undefined;
  /** Milliseconds for which such a state holds: as long as a user may take to answer. Default 10 minutes. */
  readonly requestStateTtl?: number | undefined;
  /** The longest such state. It holds the answers so far. Default 16 KiB. */
  readonly maxRequestStateBytes?: number | undefined;
  /**
   * The store that makes one server of several processes, which need the same name and the same store: a URL such as
   * `redis://host:6379`, {@link StoreOptions}, or a {@link DocumentStore} of the program's own, alone or as
   * `{ documents: store, prefix: "shop" }`. Default: that of the environment variable `TRICORN_STORE`; without one each
   * process is a server of its own.
   */
  readonly store?: string | StoreOptions | DocumentStore | DocumentStoreOptions | undefined;
  /**
   * Lifetime and audience of answers in clients' caches: `{ ttl: 60_000, tools: { scope: "public" } }`. Default: they
   * are not to be cached.
   */
  readonly cache?: ServerCache | undefined;
  /** Start and stop of the value that the functions share, `ctx.state`, as long as the server is used. */
  readonly lifespan?: Lifespan<State> | undefined;
  /** `ctx.state` where nothing has to be started or stopped. */
  readonly state?: State | undefined;
  /**
   * Hears of what handlers throw, other than `ToolError` and `RpcError`, and of results that do not fit their output
   * schema, as `MisuseError`. And of what the `verifier` of `auth` throws, other than `AuthError`: name `verifier`.
   * Errors of a {@link DocumentStore} are heard, too, if this is given: name `store`.
   * Default: a line on stderr. The client only ever learns the type of such an error.
   *
   * @param name of the tool or prompt, the URI of the resource, …
   */
  readonly onError?: ((error: unknown, name: string) => void) | undefined;
}

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
