/** A store of the program's own that the processes of one server share. */

import { type AskedOptions, Numbered } from "../bridge/callouts.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError, PeerMisbehavedError } from "../errors/errors.js";
import { checkShapes, type Shape, shown, typeOf } from "../json/checks.js";
import type { StoreOptions } from "../model/options.js";

/** A text in a store, and its version. */
export interface Document {
  /** Another one each time that the text is written: visible ASCII of at most 32 bytes, used once. */
  readonly version: string;
  /** JSON without control characters, of some hundred bytes mostly, and of at most 16 MiB. */
  readonly text: string;
}

/** One write to a store. */
export interface DocumentWrite {
  /** Visible ASCII of at most 512 bytes, in which letters of either case are different. */
  readonly key: string;
  /** The content of the key from now on. Null: nothing. */
  readonly document: Document | null;
  /**
   * Milliseconds, whole seconds and at least one, after which nobody needs it any more, in place of those before. It
   * may stay there for longer.
   */
  readonly ttl: number;
}

type Found = readonly (Document | null | undefined)[];
type Versions = Readonly<Record<string, string | null>>;

/**
 * A store of the program's own that makes one server of several processes, such as a table of a database: documents,
 * which are texts under keys, each with a version.
 *
 * Two operations are enough: documents are read, and written all or none if nobody has written some others meanwhile.
 * They are called several times at once. A store whose documents are in a map, for one process:
 *
 * ```ts
 * const kept = new Map<string, Document>();
 * const store: DocumentStore = {
 *   get: (keys) => keys.map((key) => kept.get(key)),
 *   commit: (expected, writes) => {
 *     for (const [key, version] of Object.entries(expected)) {
 *       if ((kept.get(key)?.version ?? null) !== version) return false;
 *     }
 *     for (const { key, document } of writes) {
 *       if (document) kept.set(key, document);
 *       else kept.delete(key);
 *     }
 *     return true;
 *   },
 * };
 * ```
 *
 * An operation that takes longer than 2 seconds counts as failed. Requests that need the store are refused (503) while
 * it fails, and the rest goes on: a line on stderr says so once, and {@link ServerOptions.onError}, where it is given,
 * hears what was thrown each time, under the name `store`, or {@link PeerMisbehavedError} for what is no answer, such as
 * undefined of `commit`. A {@link MisuseError} that `get` or `commit` throws refuses that one question, such as one with
 * a text that is too long for the database, and the others go on. `checkDocumentStore` of `tricorn/testing` tries all
 * rules.
 */
export interface DocumentStore {
  /**
   * Returns the documents under these keys, in their order, as they are at one time; at most 64. Null or undefined for
   * a key without one.
   */
  get(keys: readonly string[]): Found | PromiseLike<Found>;
  /**
   * Does all of `writes` in one step, at most 1,024, and returns true, if the document under each key of `expected`
   * still has this version, or is still not there where it is null. Else does nothing, and returns false.
   */
  commit(expected: Versions, writes: readonly DocumentWrite[]): boolean | PromiseLike<boolean>;
  /**
   * Waits until a document under one of these keys has another version than this, or for `timeout` milliseconds; too
   * early is no error. The signal says that nobody waits any more. Each process reads a store without it ten times in a
   * second.
   */
  wait?(seen: Versions, timeout: number, options: AskedOptions): unknown;
  /**
   * Returns the store's time, in milliseconds since 1970, for machines whose clocks do not agree to a second; it is
   * asked once in a minute. Default: the clock of this machine.
   */
  now?(): number | PromiseLike<number>;
}

/** A server's store of the program's own, with more options. */
export interface DocumentStoreOptions {
  /** The store. */
  readonly documents: DocumentStore;
  /** First part of every key, 1 to 64 letters, digits or `-_.:`. Default `tricorn`. */
  readonly prefix?: string | undefined;
  /**
   * Secret of at least 32 bytes, the same in all processes, that seals the server's keys of request states. Default:
   * they are not sealed.
   */
  readonly secret?: string | undefined;
}

/** A request of the engine to a store. */
interface Asking {
  readonly op: "get" | "commit" | "wait" | "now";
  readonly keys: readonly string[];
  readonly expected: Versions;
  /** Their `ttl` is seconds. */
  readonly writes: readonly DocumentWrite[];
  readonly seen: Versions;
  /** Seconds. */
  readonly timeout: number;
}

const OPTION = 'server option "store"';
const METHODS = ["get", "commit"] as const;

const OPTIONS: Readonly<Record<keyof DocumentStoreOptions, Shape>> = {
  documents: "any",
  prefix: "string",
  secret: "string",
};

/** An option as the engine takes it, and what keeps the functions alive that are in it. */
interface WireStore {
  readonly wire: unknown;
  readonly kept: readonly object[];
}

/**
 * The option `store` of a server.
 *
 * @throws {MisuseError} naming what is wrong with it
 */
export function serverStore(
  given: string | StoreOptions | DocumentStore | DocumentStoreOptions | null | undefined,
  home: Home,
): WireStore {
  if (given === undefined || given === null || typeof given === "string") return { wire: given, kept: [] };
  if (!isOptions(given)) {
    checkMethods(`${OPTION}: expected a URL, StoreOptions or a DocumentStore`, given);
    return placed(given, {}, home);
  }
  if (!("documents" in given) || given.documents === undefined) return { wire: given, kept: [] };
  const { url, ...own } = given as DocumentStoreOptions & Partial<StoreOptions>;
  if (url !== undefined && url !== null) throw new MisuseError(`${OPTION}: expected "url" or "documents", got both`);
  const said = Object.entries(own).filter(([, value]) => value !== null); // Null is not given to the engine.
  checkShapes(OPTION, Object.fromEntries(said), OPTIONS);
  const { documents, ...plain } = own;
  checkMethods(`${OPTION}: documents: expected a DocumentStore`, documents);
  return placed(documents, plain, home);
}

/** Options are no object of a class, and have none of a store's functions. */
function isOptions(given: object): given is StoreOptions | DocumentStoreOptions {
  if (typeof given !== "object" || METHODS.some((name) => name in given)) return false;
  const kind: unknown = Object.getPrototypeOf(given);
  return kind === Object.prototype || kind === null;
}

function checkMethods(expected: string, store: unknown): void {
  const functions = store as Partial<DocumentStore> | null | undefined;
  const missing = METHODS.find((name) => typeof functions?.[name] !== "function");
  if (missing) throw new MisuseError(`${expected}: it has no function "${missing}"`);
}

function placed(store: DocumentStore, plain: object, home: Home): WireStore {
  const functions = new Numbered(home, "all");
  const documents = functions.number("store", async (asking: Asking, options) => {
    const { op, keys, expected, writes, seen, timeout } = asking;
    switch (op) {
      case "get":
        return { documents: documentsOf(await store.get(keys)) };
      case "commit": {
        const all = writes.map((write) => ({ ...write, ttl: write.ttl * 1000 }));
        return { done: isDone(await store.commit(expected, all)) };
      }
      case "wait":
        await store.wait?.(seen, Math.ceil(timeout * 1000), options); // Timers of Node take whole milliseconds.
        return {};
      case "now":
        return { now: secondsOf(await store.now?.()) };
    }
  });
  const has = (name: "wait" | "now"): boolean => typeof store[name] === "function";
  return { wire: { ...plain, documents, waits: has("wait"), tells_time: has("now") }, kept: functions.kept };
}

/** The error of a store that returned what is none of its answers. It has failed: a MisuseError is a refusal of its own. */
function broken(why: string): PeerMisbehavedError {
  return new PeerMisbehavedError(`store: ${why}`);
}

/** @throws {PeerMisbehavedError} for anything but a list of documents, by its type alone: it may be secret */
function documentsOf(found: unknown): (Document | null)[] {
  if (!Array.isArray(found)) {
    throw broken(`get: expected a list in the order of the keys, got ${typeOf(found)}`);
  }
  return found.map((one: unknown) => {
    if (one === null || one === undefined) return null;
    if (typeOf(one) !== "an object") throw broken(`get: expected a Document, got ${typeOf(one)}`);
    const { version, text } = one as Partial<Document>;
    return { version: textOf("version", version), text: textOf("text", text) };
  });
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw broken(`get: ${name}: expected a string, got ${typeOf(value)}`);
}

function isDone(done: unknown): boolean {
  if (typeof done === "boolean") return done;
  throw broken(`commit: expected true or false, got ${typeOf(done)}`);
}

function secondsOf(now: unknown): number {
  if (typeof now === "number" && Number.isFinite(now)) return now / 1000;
  throw broken(`now: expected a number of milliseconds since 1970, got ${shown(now)}`);
}
