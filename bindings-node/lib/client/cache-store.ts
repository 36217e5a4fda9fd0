/** Stores that processes share for the answers of servers (revision 2026-07-28), and the use of a cache. */

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
