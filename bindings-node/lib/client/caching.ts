/** A client's option `cache`. */

import { Numbered } from "../bridge/callouts.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { checkNames, shown, typeOf } from "../json/checks.js";
import type { StoreOptions } from "../model/options.js";
import type { CacheStore } from "./cache-store.js";
import type { ClientCache } from "./options.js";

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

/** @throws {MisuseError} for anything but a list of texts; its value is not said, as it may be secret */
function textsOf(found: unknown): (string | null)[] {
  if (!Array.isArray(found)) throw new MisuseError(`cache: store: get: expected a list, got ${typeOf(found)}`);
  return found.map((text: unknown) => {
    if (text === null || text === undefined) return null;
    if (typeof text !== "string") throw new MisuseError(`cache: store: get: expected texts, got ${typeOf(text)}`);
    return text;
  });
}
