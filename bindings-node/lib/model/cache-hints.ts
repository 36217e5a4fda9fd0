/** Lifetime and audience of answers in caches (revision 2026-07-28), as servers say them. */

/** Lifetime and audience of an answer in caches. A member that is left out is taken from the more general option. */
export interface CacheHints {
  /** Milliseconds for which it keeps after it was received. Default 0: not at all. */
  readonly ttl?: number | undefined;
  /** The audience: `public` is everybody, also under other authorization. Default `private`. */
  readonly scope?: "public" | "private" | undefined;
}
