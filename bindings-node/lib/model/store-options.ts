/** Options of a store that several processes share. */

/** A store that several processes share: Redis 6.2 or later, or Valkey. */
export interface StoreOptions {
  /**
   * `redis://` or with TLS `rediss://`, then `user:password@host:6379/0`, all but the host optional;
   * `redis+cluster://host:6379,host:6379`; `redis+sentinel://host:26379,host:26379/service/0`, with
   * `?sentinel_user=…&sentinel_password=…` where the sentinels want a login of their own; `rediss+cluster://` and
   * `rediss+sentinel://`; `unix:///path?db=0&user=…&pass=…`. Special characters of a password are percent-encoded.
   */
  readonly url: string;
  /** First part of every key, 1 to 64 letters, digits or `-_.:`. Default `tricorn`. */
  readonly prefix?: string | undefined;
  /**
   * Secret of at least 32 bytes, the same in all processes, that seals a server's keys of request states, a client's
   * answers, and logins, which need one. Default: the others are not sealed.
   */
  readonly secret?: string | undefined;
}
