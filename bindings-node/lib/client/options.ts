/** Options of a client, as programs give them and as the engine takes them; its gauges. */

import { AsyncResource } from "node:async_hooks";
import { checkSignal } from "../bridge/abort.js";
import { logError } from "../bridge/scope.js";
import type { BuiltinMiddleware, MethodTiming, Middleware } from "../call/middleware.js";
import type { RequestContext } from "../call/request-context.js";
import { limit } from "../call/request-options.js";
import { MisuseError } from "../errors/errors.js";
import { toEngine } from "../json/options.js";
import { userPackage } from "../model/identity.js";
import type { TaskOptions } from "../model/task.js";
import type { TraceSource } from "../model/trace.js";
import type { ClientCapabilities, Icon } from "../types.js";
import { type ClientAuth, clientAuth } from "./auth.js";
import { type CacheUsage, type ClientCache, clientCache } from "./cache-store.js";
import { type Answers, LISTENERS, type Listeners } from "./handlers.js";
import { type Fetch, httpTransport } from "./http-transport.js";

/** Handlers and listeners of a client as one object: see {@link ClientOptions.policy}. */
export interface Policy extends Answers, Listeners, Pick<ClientOptions, "onClose" | "onStderr"> {}

/** Further options that a server of a group may have for itself. */
type OfServer = "policy" | "middleware" | "traceContext" | "onError";

/** Options that all servers of a group share. Said, as what a function returns may have more than its type. */
type OfGroup = { readonly [Name in Exclude<keyof ClientOptions, keyof Policy | OfServer>]?: never };

/** Options of one server of a group: its handlers and listeners. The rest is the group's. */
export interface ServerPolicy extends Policy, Pick<ClientOptions, OfServer>, OfGroup {}

/** All optional. Durations are milliseconds, sizes bytes. */
export interface ClientOptions extends Answers, Listeners {
  /**
   * An object that answers and hears for many clients: its methods and members that are called like the options
   * (`sampling`, `elicitation`, `roots`, `onLog`, …). What is given beside it counts more.
   */
  readonly policy?: Policy | undefined;
  /** Default: the name in your package.json. */
  readonly name?: string | undefined;
  /** Default: the version in your package.json. */
  readonly version?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** A description of the program, for people. */
  readonly description?: string | undefined;
  /** The URL of a page to read about it. */
  readonly websiteUrl?: string | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /**
   * Speak exactly this protocol revision, or only those with handshakes (`legacy`) or without (`modern`). Default: the
   * newest the server knows.
   */
  readonly revision?: string | undefined;
  /** Longest wait for an answer, counted anew at each sign of progress; null or 0: no limit. Default one minute. */
  readonly requestTimeout?: number | null | undefined;
  /** Longest wait for the first sign of a modern server. Default 5 seconds. */
  readonly probeTimeout?: number | undefined;
  /** Largest message accepted. Default 32 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** Deepest JSON accepted. Default 128. */
  readonly maxNesting?: number | undefined;
  /** Memory that a message's values may take once decoded, in bytes and by estimate. Default 64 MiB. */
  readonly maxDecodedBytes?: number | undefined;
  /**
   * Bytes that the whole process keeps for its peers at most, such as long messages until they are read. The last client
   * or server that says it decides for all. Default: a quarter of the memory of the machine or its control group.
   */
  readonly maxMemory?: number | undefined;
  /** Requests awaiting an answer at once, further ones wait their turn; at least 1. Default 256. */
  readonly maxInFlight?: number | undefined;
  /**
   * Authorization at a protected server (https, or http on this machine): true finds out everything, and lets
   * the user log in when the server asks for it. `headers` must not have an `Authorization` then. Default: only `headers`
   * are sent.
   */
  readonly auth?: boolean | ClientAuth | undefined;
  /** Aborted before the connection is there, it gives that up, also while a user logs in. Later it means nothing. */
  readonly signal?: AbortSignal | undefined;
  /** Sent with every HTTP request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sends every HTTP request, those of logins included, in place of connections of the client's own: the global `fetch`,
   * one with another agent, a mock. Bodies of answers are read as they come; one that stays open may keep the program
   * running until {@link Client.close}. Redirects are left to the client (`redirect: "manual"`), which follows them within
   * the origin. The global `fetch` gives up after 300 s without a byte: for longer calls take undici's with
   * `new Agent({ headersTimeout: 0, bodyTimeout: 0 })`. Errors that it throws are a {@link TransportError} of the request. `proxy`, `ca`, `cert` and `key` are about
   * the client's own connections, and are refused beside it. Default: the client connects itself.
   */
  readonly fetch?: Fetch | undefined;
  /**
   * The proxy for all that is asked over HTTP, logins included: a URL with `http://` or `socks5://`; empty for none.
   * Default: what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
   */
  readonly proxy?: string | undefined;
  /**
   * Authorities whose certificates are trusted besides those of this machine, which `SSL_CERT_FILE`, `SSL_CERT_DIR` and
   * `NODE_EXTRA_CA_CERTS` may name: PEM, or the path of a file with that. Default: none.
   */
  readonly ca?: string | undefined;
  /** The client's own certificate: PEM, or the path of a file with that. Default: none. */
  readonly cert?: string | undefined;
  /** The private key that it belongs to: PEM, or the path of a file with that. Default: it is in `cert`. */
  readonly key?: string | undefined;
  /** Time that a server that was started has to end by itself. Default 2 seconds. */
  readonly shutdownGrace?: number | undefined;
  /** Time without a message of the server after which it is asked for a sign of life. Default 0: never. */
  readonly pingInterval?: number | undefined;
  /** Time after which a server that does not answer that is taken for lost, and the connection ends. Default 20 seconds. */
  readonly pingTimeout?: number | undefined;
  /**
   * Called where a request is made, for the trace that it belongs to. Default: what the first of `middleware` says that
   * has a method `traceContext`, as that of `tricorn/otel` has; else nothing.
   */
  readonly traceContext?: TraceSource | undefined;
  /** Middleware around every request that is sent: functions, or `logging()`, `rateLimit(5)`, …; outermost first. */
  readonly middleware?: readonly (Middleware<RequestContext> | BuiltinMiddleware)[] | undefined;
  /**
   * Runs sampling and elicitation as tasks, where the server wants that (revision 2025-11-25, experimental). In 2026-07-28
   * it declares the extension `io.modelcontextprotocol/tasks`: the server may answer calls of tools with tasks, which are
   * followed to their end. Default: no tasks.
   */
  readonly tasks?: boolean | TaskOptions | undefined;
  /** The cache of the server's answers. Default: those are kept that say they may be; false keeps none. */
  readonly cache?: boolean | ClientCache | undefined;
  /**
   * Extensions of the protocol to declare, each with its settings: `{ "com.example/search": {} }`. What belongs to them may
   * be asked for and listened to. That for tasks is the option `tasks`. Default: none.
   */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined;
  /**
   * True if a tool's structured content is checked against the output schema that this client has listed; what does not
   * fit is a {@link PeerMisbehavedError}. Default true.
   */
  readonly validateOutput?: boolean | undefined;
  /**
   * Records everything that passes as a cassette, in this file, which is replaced; `replay:FILE` is a target that plays
   * it. Default: nothing.
   */
  readonly record?: string | undefined;
  /**
   * Leaves secrets out of what is recorded: values of headers, of the target's environment and query, of `auth`, of members
   * and variables that are named like secrets, and texts that look like them. Default true.
   */
  readonly redact?: boolean | undefined;
  /**
   * True if a program that has ended unasked is started again when it is needed, in revisions without sessions, at most
   * five times within a minute; in others the client ends with it. Default true.
   */
  readonly restart?: boolean | undefined;
  /**
   * The environment that a program inherits, besides the `env` of its target: all of it (true), a short list of
   * variables that programs need, without secrets (false), or that list and these names. Default true.
   */
  readonly inheritEnv?: boolean | readonly string[] | undefined;
  /**
   * Values for the placeholders of an `mcp.json`, by the text between their braces: `{ "input:key": "…" }`. They come
   * before the environment. Default: none.
   */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** Capabilities to declare, as in the protocol. */
  readonly capabilities?: ClientCapabilities | undefined;
  /** The entry of an `mcp.json` to use; not needed when there is only one. */
  readonly server?: string | undefined;
  /** Hears why the connection ended, when it was not by {@link Client.close}. */
  readonly onClose?: ((reason: string) => void) | undefined;
  /**
   * Hears the stderr of a program line by line, unless the target itself says where that goes. Default: it goes to ours.
   */
  readonly onStderr?: ((line: string) => void) | undefined;
  /**
   * Hears of what `sampling`, `elicitation` and `roots` throw, other than `RpcError`, and the functions of `auth`, other
   * than `AuthError`: name `token`, `browser`, `store`, …; and of all that the cache's store and `fetch` throw, names
   * `cache` and `fetch`. Default: a line on stderr, but for that store, of which a warning of the process tells, and for
   * `fetch`. The server only ever learns the type of such an error, and so does who waits for a login.
   */
  readonly onError?: ((error: unknown, name: string) => void) | undefined;
}

/** The options that have to be functions. */
export const CALLBACKS = [...LISTENERS, "onClose", "onError", "onStderr", "traceContext"] as const;

/** The options that a policy may have. */
const POLICY = ["sampling", "elicitation", "roots", ...LISTENERS, "onClose", "onStderr"] as const;

/** The options that the engine does not see. */
export const OWN = [
  ...CALLBACKS,
  "sampling",
  "elicitation",
  "roots",
  "fetch",
  "middleware",
  "policy",
  "server",
  "signal",
] as const;

/**
 * The options with what their policy does where nothing else is given. Methods stay methods of their object.
 *
 * @throws {MisuseError} for a policy that does nothing
 */
export function withPolicy<Options extends ClientOptions>(options: Options): Options {
  const { policy, ...beside } = options;
  checkSignal("", options.signal);
  if (policy === undefined) return options;
  if (typeof policy !== "object" || policy === null) throw new MisuseError("policy: expected an object");
  if (!POLICY.some((name) => policy[name] !== undefined)) {
    throw new MisuseError(`policy: the object has none of ${POLICY.join(", ")}`);
  }
  const merged: Record<string, unknown> = beside;
  for (const name of POLICY) {
    const owner: Policy = options[name] === undefined ? policy : options;
    const value: unknown = owner[name];
    if (value !== undefined) merged[name] = typeof value === "function" ? value.bind(owner) : value;
  }
  return merged as unknown as Options;
}

/** The options as the engine takes them, and what keeps the functions alive that are in them. */
export function engineOptions(options: ClientOptions): { readonly engine: string; readonly kept: readonly object[] } {
  const given = Object.entries(options).filter(([name]) => !(OWN as readonly string[]).includes(name));
  const { requestTimeout, auth, cache, ...plain } = Object.fromEntries(given) as ClientOptions;
  const user = userPackage();
  const onError = options.onError ?? logError;
  const login = clientAuth(auth, { scope: new AsyncResource("tricorn.auth"), running: 0, onError });
  // The engine warns of a store that fails: only who wants to hears each time.
  const onFailure = options.onError ?? (() => {});
  const kept = clientCache(cache, { scope: new AsyncResource("tricorn.cache"), running: 0, onError: onFailure });
  // The caller is told why a request fails.
  const home = { scope: new AsyncResource("tricorn.fetch"), running: 0, onError: onFailure };
  const http = httpTransport(options.fetch, home);
  const engine = toEngine({
    name: user.name ?? "client",
    version: user.version ?? "0.0.0",
    ...plain,
    auth: login.wire,
    cache: kept.wire,
    httpTransport: http.wire,
    requestTimeout: requestTimeout === undefined ? undefined : (limit(requestTimeout) ?? 0),
  });
  return { engine, kept: [...login.kept, ...kept.kept, ...http.kept] };
}

/** Gauges of a client. */
export interface ClientMetrics {
  /** Requests that wait for an answer. */
  readonly awaited: number;
  /** The state of the cache of the server's answers, and its use. */
  readonly cache: CacheUsage;
  /** Counts of the middleware {@link timing}, by method. */
  readonly timing?: Readonly<Record<string, MethodTiming>> | undefined;
}
