/** Caches of clients for the answers of servers (revision 2026-07-28), and stores that processes share for them. */

import { Numbered } from "../bridge/callouts.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { checkNames, shown, typeOf } from "../json/checks.js";
import type { StoreOptions } from "../model/store-options.js";

/** Options of a client's cache of its server's answers, which keeps them as long as they say. All optional. */
export interface ClientCache {
  /** True if anything is kept. Default true. */
  readonly enabled?: boolean | undefined;
  /** Answers that are kept; those that were used longest ago make room. Default 1,000. */
  readonly maxEntries?: number | undefined;
  /** Bytes of them. Default 16 MiB. */
  readonly maxBytes?: number | undefined;
  /**
   * Gives the last answer when the server cannot be asked, although it is no longer fresh, with `tricorn/stale` in its
   * `_meta`. Default false.
   */
  readonly staleOnError?: boolean | undefined;
  /**
   * Keeps them together with the other clients of this process that do: of one HTTP server, and private answers only
   * under the same authorization. Default false.
   */
  readonly shared?: boolean | undefined;
  /**
   * The authorization under which private answers are kept, such as a user's id, where that is not what the HTTP headers
   * and the address say.
   */
  readonly scope?: string | undefined;
  /**
   * Keeps them in a Redis or Valkey at this URL, or in a store of the program's own, which other processes may share: of
   * HTTP servers, what is private only under the same authorization. What other servers say is kept in the client's memory. Default: all is.
   */
  readonly store?: CacheStore | string | StoreOptions | undefined;
}

/**
 * A store that the clients of several processes share for answers, such as a Redis: texts under keys. Those of one HTTP
 * server get what the others have kept, private answers only under the same authorization. With the package `redis`:
 *
 * ```ts
 * const store: CacheStore = {
 *   get: (keys) => redis.mGet([...keys]),
 *   set: (key, text, ttl) => redis.set(key, text, { PX: ttl }),
 *   delete: (key) => redis.del(key),
 * };
 * ```
 *
 * A key is visible ASCII of at most 160 characters, `tricorn:1:SERVER:METHOD:…`: the format's version, a digest of the
 * server's address, the method, then digests of what else the answer depends on. It is the same in all processes, languages
 * and versions that have this format; others begin otherwise. A text is JSON, or a word of 24 characters under the keys with
 * `:mark:`, by which clients know what has changed since an answer was kept.
 *
 * What is kept may go at any time: it is asked for again then. It must not come back, and whoever can read it can read the
 * answers, private ones too. The machines' clocks have to agree: by what they do not, answers are fresh for longer.
 *
 * What takes longer than 2 seconds counts as failed, and for 5 seconds the store is not asked. Where it fails the server is
 * asked instead, and nothing is kept: a warning of the process says so, once in a minute, {@link ClientOptions.onError},
 * where it is given, hears what was thrown each time, under the name `cache`, and {@link CacheUsage.failures} counts it.
 */
export interface CacheStore {
  /** Returns the texts kept under these keys, in their order, at most 16; null or undefined where there is nothing. */
  get(keys: readonly string[]): Found | PromiseLike<Found>;
  /** Keeps this text instead of the one before. After `ttl` milliseconds nobody needs it any more. */
  set(key: string, text: string, ttl: number): unknown;
  /** Keeps nothing under this key any more; no error when there was nothing. */
  delete(key: string): unknown;
}

type Found = readonly (string | null | undefined)[];

/** The state of a client's cache of its server's answers, and its use. */
export interface CacheUsage {
  /** Answers that are kept in memory; 0 with a {@link CacheStore}, of which that is not known. */
  readonly entries: number;
  /** Their bytes. */
  readonly bytes: number;
  /** Requests that were answered with a fresh one. */
  readonly hits: number;
  /** Requests for which there was none. */
  readonly misses: number;
  /** Requests that were answered with one that was no longer fresh, because the server could not be asked. */
  readonly stale: number;
  /** Failures of a {@link CacheStore}: it threw, did not answer in time, or gave what nobody has put there. */
  readonly failures: number;
}

/** A request of the engine to a store. */
interface Asking {
  readonly op: "get" | "set" | "delete";
  readonly keys: readonly string[];
  readonly key: string;
  readonly text: string;
  /** Seconds. */
  readonly ttl: number;
}

const METHODS = ["get", "set", "delete"] as const;

const [FLAG, COUNT] = ["true or false", "an integer of at least 1"];

/** The value of each option, in the engine's words. */
const OPTIONS: Readonly<Record<keyof ClientCache, string>> = {
  enabled: FLAG,
  maxEntries: COUNT,
  maxBytes: COUNT,
  staleOnError: FLAG,
  shared: FLAG,
  scope: "a string",
  store: "a CacheStore, a URL or StoreOptions",
};

/** An option as the engine takes it, and what keeps the functions alive that are in it. */
interface WireCache {
  readonly wire: boolean | object | undefined;
  readonly kept: readonly object[];
}

/** The engine knows such a store. */
function isShared(store: unknown): store is string | StoreOptions {
  return (
    typeof store === "string" || (typeof store === "object" && store !== null && "url" in store && !("get" in store))
  );
}

/**
 * The option `cache` of a client.
 *
 * @throws {MisuseError} naming what is wrong with it
 */
export function clientCache(given: boolean | ClientCache | undefined, home: Home): WireCache {
  if (typeof given !== "object" || given === null) return { wire: given, kept: [] };
  checkOptions(given);
  if (given.store === undefined) return { wire: given, kept: [] };
  const { store, ...plain } = given;
  if (isShared(store)) return { wire: given, kept: [] };
  if (typeof store !== "object" || store === null) {
    throw new MisuseError(`cache: store: expected ${OPTIONS.store}, got ${typeOf(store)}`);
  }
  const missing = METHODS.find((name) => typeof store[name] !== "function");
  if (missing) throw new MisuseError(`cache: store: expected a CacheStore: it has no function "${missing}"`);
  const functions = new Numbered(home, "all");
  const handler = functions.number("cache", async ({ op, keys, key, text, ttl }: Asking) => {
    switch (op) {
      case "get":
        return { texts: textsOf(await store.get(keys)) };
      case "set":
        await store.set(key, text, ttl * 1000);
        return {};
      case "delete":
        await store.delete(key);
        return {};
    }
  });
  return { wire: { ...plain, store: { handler } }, kept: functions.kept };
}

/** Refuses what JSON has not: it leaves functions out, and an object may hold itself. The engine checks the rest. */
function checkOptions(given: ClientCache & Partial<CacheStore>): void {
  if (METHODS.some((name) => typeof given[name] === "function")) {
    throw new MisuseError("cache: expected options, got a CacheStore; give cache: { store }");
  }
  const said = Object.entries(given).filter(([, value]) => value !== null); // To the engine null is not given.
  checkNames("cache", Object.fromEntries(said), OPTIONS);
  for (const [name, value] of said as [keyof ClientCache, unknown][]) {
    if (name === "store" || ["undefined", "boolean", "number", "string"].includes(typeof value)) continue;
    throw new MisuseError(`client options: option "cache": "${name}": expected ${OPTIONS[name]}, got ${shown(value)}`);
  }
}

/** @throws {MisuseError} for anything but a list of texts. What it is is not said: it may be secret */
function textsOf(found: unknown): (string | null)[] {
  if (!Array.isArray(found)) throw new MisuseError(`cache: store: get: expected a list, got ${typeOf(found)}`);
  return found.map((text: unknown) => {
    if (text === null || text === undefined) return null;
    if (typeof text !== "string") throw new MisuseError(`cache: store: get: expected texts, got ${typeOf(text)}`);
    return text;
  });
}
