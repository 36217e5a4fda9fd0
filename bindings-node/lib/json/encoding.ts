/** Values as JSON text, and what JSON has not. */

import { MisuseError } from "../errors/errors.js";
import { typeOf } from "./checks.js";

/** The escapes of JSON text: a whole character in two of them, half of one, anything else. */
const ESCAPES = /\\(?:ud[89ab]..\\ud[c-f]..|ud[89a-f]..|.)/g;

/**
 * As `JSON.stringify`, but U+FFFD stands for half a character (a lone surrogate), in names, too: that is no Unicode, and
 * would become an escape which other languages refuse.
 */
export function stringify(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  const text = JSON.stringify(value, replacer) as string | undefined;
  if (!text?.includes("\\ud")) return text as string;
  return text.replace(ESCAPES, (one) => (one.length === 6 ? "\ufffd" : one));
}

/**
 * `value` as JSON text.
 *
 * @throws {TypeError} for what JSON has not, naming the place of a number or a date that is none (JSON would say null), of
 *   a bigint, of what holds itself, and of what JSON empties: a Map, an Error, bytes, what a generator makes
 */
export function toJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = stringify(value) as string | undefined;
  } catch (error) {
    checkMembers(value);
    throw error;
  }
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  // Values that come out as something else look like this.
  if (EMPTIED.test(text) && isEmptied(value)) checkMembers(value);
  return text;
}

/**
 * The parameters of a request or a notification as JSON text.
 *
 * @param what sends them, for messages
 * @throws {MisuseError} naming what is no JSON
 */
export function paramsJson(what: string, params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  if (params === undefined) return undefined;
  checkObject(`${what}: parameters`, params);
  try {
    return toJson(params);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new MisuseError(`${what}: ${why}`, { cause: error });
  }
}

/**
 * Refuses what is no object of members; what it is is not said: it may be secret.
 *
 * @throws {MisuseError} naming it
 */
export function checkObject(name: string, value: unknown): void {
  const isMap = value instanceof Map || value instanceof Set; // JSON would make an empty object of it.
  if (typeof value === "object" && value !== null && !Array.isArray(value) && !isMap) return;
  const got = isMap ? `a ${value.constructor.name}; give its Object.fromEntries()` : typeOf(value);
  throw new MisuseError(`${name}: expected an object, such as {"name": "value"}, got ${got}`);
}

/** The JSON of numbers and dates that are none, of Maps, Errors, generators and bytes. */
const EMPTIED = /null|\{\}|\{"0":|"type":"Buffer"/;

/** The reason why JSON makes nothing of a value, or much too much, and what to give instead; undefined for all others. */
function emptied(value: object): string | undefined {
  if (value instanceof Map) return "a Map is not JSON; give its Object.fromEntries(), or a list of its entries";
  if (value instanceof Set) return "a Set is not JSON; give a list of it";
  if (Buffer.isBuffer(value)) return "bytes are not JSON; give text, an image(…), or their base64";
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    const isBytes = value instanceof Uint8Array || !ArrayBuffer.isView(value) || value instanceof DataView;
    if (isBytes) return "bytes are not JSON; give text, an image(…), or their base64";
    return `a ${value.constructor.name} is not JSON; give a list of it`;
  }
  if (typeof (value as { readonly toJSON?: unknown }).toJSON === "function" || Array.isArray(value)) return undefined;
  // Its own members are its JSON.
  if (Object.keys(value).length > 0) return undefined;
  if (value instanceof Error) return "an Error is not JSON; throw it, or give its message";
  if (value instanceof RegExp) return "a RegExp is not JSON; give its source";
  if (value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) return "it is not JSON";
  if (value instanceof Promise) return "a Promise is not JSON; await it";
  if (typeof (value as Partial<Response>).arrayBuffer === "function") {
    return `a ${value.constructor.name} is not JSON; give what its text() or json() comes to`;
  }
  if (Symbol.asyncIterator in value) return "what comes bit by bit is not JSON; wait for all of it, and give a list";
  if (Symbol.iterator in value) return "an iterator is not JSON; give a list of it";
  return undefined;
}

/** True if something in `value`, which has become JSON, is no longer what it was. Nothing with a `toJSON` is asked again. */
function isEmptied(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(isEmptied);
  if (value instanceof Date) return Number.isNaN(value.getTime());
  if (ArrayBuffer.isView(value)) return true;
  const members = value as Readonly<Record<string, unknown>>;
  if (typeof members["toJSON"] === "function") return false;
  const names = Object.keys(members);
  return names.length === 0 ? emptied(value) !== undefined : names.some((name) => isEmptied(members[name]));
}

/** Says why `value` is not JSON, and where; undefined for what is. */
export function notJson(value: unknown): string | undefined {
  try {
    checkMembers(value);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Goes through `value` as JSON does, to name the place of what JSON has not. */
function checkMembers(value: unknown): void {
  const places = new Map<unknown, string>();
  JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, member: unknown) {
    const before = places.get(this);
    const place = before === undefined ? "" : Array.isArray(this) ? `${before}[${key}]` : `${before}.${key}`;
    const named = place === "" ? "" : `"${place.replace(/^\./, "")}": `;
    if (typeof member === "number" && !Number.isFinite(member)) throw new TypeError(`${named}${member} is not JSON`);
    if (typeof member === "bigint") throw new TypeError(`${named}a bigint is not JSON; give a number, or text of it`);
    // The date, or the bytes, before they said what their JSON is.
    const given: unknown = place === "" && before === undefined ? value : this[key];
    if (given instanceof Date && Number.isNaN(given.getTime())) throw new TypeError(`${named}the date is none`);
    if (typeof given === "object" && given !== null) {
      const why = emptied(given);
      if (why !== undefined) throw new TypeError(`${named}${why}`);
    }
    if (typeof member === "object" && member !== null) {
      const earlier = places.get(member);
      if (earlier !== undefined && isWithin(place, earlier)) {
        throw new TypeError(`${named}it holds itself, which JSON cannot say`);
      }
      places.set(member, place);
    }
    return member;
  });
}

function isWithin(place: string, outer: string): boolean {
  return place.startsWith(outer) && /^[.[]/.test(place.slice(outer.length));
}
