/** Stores of logins: those of the program's own. */

import { MisuseError } from "../errors/errors.js";

/** The key of a login: tokens of one issuer are never shown to another, nor those for one server to another. */
export interface TokenKey {
  /** The authorization server's issuer identifier, as its metadata spells it. */
  readonly issuer: string;
  /** The MCP server's URL, as the `resource` of its tokens. */
  readonly server: string;
}

/** A login as a store finds it. */
export interface StoredLogin {
  /** The issuer of its key. */
  readonly issuer: string;
  /** The text that was saved. */
  readonly login: string;
}

/**
 * A store of logins, each one text of at most 256 KiB: tokens, the registration, the key that tokens are bound to.
 * It is secret, and its meaning is the client's business. Each function has a minute.
 *
 * A refresh token is used up by being used, so that one at a time changes a login: in this program that is seen to, also
 * among clients that share a store. A store that other programs share needs {@link reserve}.
 */
export interface TokenStore {
  /** Returns the login that is kept under this key; null or undefined when there is none. */
  load(key: TokenKey): Later<string | null | undefined>;
  /** All that is kept for a server, whatever the issuer. A client asks for it before it knows the issuer. */
  find(server: string): Later<readonly StoredLogin[]>;
  /** Keeps this in place of what was there. When it settles, no crash may undo it; when it fails, what was there still is, and a warning says so. */
  save(key: TokenKey, login: string): unknown;
  /** Keeps nothing under this key any more. */
  remove(key: TokenKey): unknown;
  /**
   * Keeps other programs from changing what is kept under this key, until the function is called that it gives. It waits
   * for whoever has it, at most `wait` milliseconds.
   */
  reserve?(key: TokenKey, wait: number): Later<() => unknown>;
}

type Later<T> = T | PromiseLike<T>;

/** A request of the engine to a store. */
export interface StoreRequest {
  readonly op: "load" | "find" | "save" | "remove" | "reserve" | "release";
  readonly issuer: string;
  readonly server: string;
  readonly login: string;
  /** Seconds. */
  readonly wait: number;
}

/** By store and login: what has to end before the next one may change that. */
const turns = new WeakMap<TokenStore, Map<string, Promise<void>>>();

/** A turn at a login. */
interface Turn {
  /** The store's own reservation. */
  readonly granted: Promise<(() => unknown) | undefined>;
  readonly end: () => void;
}

const METHODS = ["load", "find", "save", "remove"] as const;

/**
 * Does what the engine asks of a store. One for each client.
 *
 * @param reserved told when there is a reservation, and when there is none any more: until then nobody else may bring a
 * login to its end, whose refresh token may be used up
 * @throws {MisuseError} for what is no store
 */
export function storing(
  store: TokenStore,
  reserved: (is: boolean) => void,
): (request: StoreRequest) => Promise<object> {
  const missing = METHODS.find((name) => typeof store[name] !== "function");
  if (missing) throw new MisuseError(`auth: store: expected a TokenStore: it has no function "${missing}"`);
  const held = new Map<string, Turn>();
  return async ({ op, issuer, server, login, wait }) => {
    const key: TokenKey = { issuer, server };
    const name = JSON.stringify([issuer, server]);
    switch (op) {
      case "load":
        return { login: (await store.load(key)) ?? undefined };
      case "find":
        return { logins: await store.find(server) };
      case "save":
        await store.save(key, login);
        return {};
      case "remove":
        await store.remove(key);
        return {};
      case "reserve": {
        const turn = turnAt(store, key, name, wait * 1000);
        held.set(name, turn);
        reserved(true);
        await turn.granted;
        return {};
      }
      case "release": {
        const turn = held.get(name);
        // Also of a reservation that was given up, or failed: the others get their turn.
        try {
          const release = await turn?.granted.catch(() => undefined);
          await release?.();
        } finally {
          if (held.get(name) === turn) held.delete(name);
          if (held.size === 0) reserved(false);
          turn?.end();
        }
        return {};
      }
    }
  };
}

function turnAt(store: TokenStore, key: TokenKey, name: string, wait: number): Turn {
  const queues = turns.get(store) ?? new Map<string, Promise<void>>();
  turns.set(store, queues);
  const before = queues.get(name);
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = () => {
      if (queues.get(name) === ended) queues.delete(name);
      resolve();
    };
  });
  queues.set(name, ended);
  const granted = (async () => {
    await before;
    return store.reserve?.(key, wait);
  })();
  // Whoever asked for it may be gone.
  granted.catch(() => {});
  return { granted, end };
}
