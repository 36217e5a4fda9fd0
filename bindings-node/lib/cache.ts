/** How long answers keep (revision 2026-07-28): what servers say of it, and what clients make of that. */

/** How long what is answered keeps, and for whom. What is left out is said by what is more general. */
export interface CacheHints {
  /** Milliseconds for which it keeps after it was received. Default 0: not at all. */
  readonly ttl?: number;
  /** For whom: `public` is everybody, also under other authorization. Default `private`. */
  readonly scope?: "public" | "private";
}

/**
 * How long what a server answers keeps, and for whom: `ttl` and `scope` for everything, others for a part. What is read,
 * and a list of which a function gives a part, may depend on who asks: they are private unless `scope` is said of them.
 */
export interface ServerCache extends CacheHints {
  /** `server/discover`. */
  readonly discover?: CacheHints;
  /** The list of tools. */
  readonly tools?: CacheHints;
  /** The list of prompts. */
  readonly prompts?: CacheHints;
  /** The list of resources. */
  readonly resources?: CacheHints;
  /** The list of resource templates. */
  readonly resourceTemplates?: CacheHints;
  /** What is read, where neither the resource nor the result says it. */
  readonly read?: CacheHints;
}

/** What a client keeps of its server's answers, as long as these say that they keep. All optional. */
export interface ClientCache {
  /** Whether anything is kept. Default true. */
  readonly enabled?: boolean;
  /** Answers that are kept; those that were used longest ago make room. Default 1,000. */
  readonly maxEntries?: number;
  /** Bytes of them. Default 16 MiB. */
  readonly maxBytes?: number;
  /**
   * When the server cannot be asked, gives the last answer although it is no longer fresh, with `tricorn/stale` in its
   * `_meta`. Default false.
   */
  readonly staleOnError?: boolean;
  /**
   * Keeps them together with the other clients of this process that do: of one HTTP server, and private answers only
   * under the same authorization. Default false.
   */
  readonly shared?: boolean;
  /**
   * The authorization under which private answers are kept, such as a user's id, where that is not what the HTTP headers
   * and the address say.
   */
  readonly scope?: string;
}

/** What was kept of a server's answers, and what that was good for. */
export interface CacheUsage {
  /** Answers that are kept. */
  readonly entries: number;
  /** Their bytes. */
  readonly bytes: number;
  /** Requests that were answered with a fresh one. */
  readonly hits: number;
  /** Requests for which there was none. */
  readonly misses: number;
  /** Requests that were answered with one that was no longer fresh, because the server could not be asked. */
  readonly stale: number;
}
