/** Errors that came from a peer, and to whom: those of other connections are not for the client of a call. */

/** Errors that a peer sent, or of requests to it, with the calls that they belong to. */
const owners = new WeakMap<object, number | undefined>();

/** Marks an error as one that came from a peer, whoever asked. */
export function received<E>(error: E): E {
  if (typeof error === "object" && error !== null && !owners.has(error)) owners.set(error, undefined);
  return error;
}

/** Says that the call `key` asked for it: it may be let pass there. */
export function own(error: unknown, key: number): void {
  if (typeof error === "object" && error !== null && owners.has(error)) owners.set(error, key);
}

/** True if an error came from a peer to somebody else than the call `key`. */
export function isForeign(error: object, key: number): boolean {
  return owners.has(error) && owners.get(error) !== key;
}
