/** A client's options on their way to the engine; its gauges. */

import { AsyncResource } from "node:async_hooks";
import { checkSignal } from "../bridge/abort.js";
import { logError } from "../bridge/scope.js";
import type { MethodTiming } from "../call/middleware.js";
import { limit } from "../call/request-options.js";
import { MisuseError } from "../errors/errors.js";
import { toEngine } from "../json/options.js";
import { userPackage } from "../model/identity.js";
import { clientAuth } from "./auth.js";
import type { CacheUsage } from "./cache-store.js";
import { clientCache } from "./caching.js";
import { LISTENERS } from "./handlers.js";
import { httpTransport } from "./http-transport.js";
import { type ClientOptions, OWN, type Policy } from "./options.js";

/** The options that have to be functions. */
export const CALLBACKS = [...LISTENERS, "onClose", "onError", "onStderr", "traceContext"] as const;

/** The options that a policy may have. */
const POLICY = ["sampling", "elicitation", "roots", ...LISTENERS, "onClose", "onStderr"] as const;

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
