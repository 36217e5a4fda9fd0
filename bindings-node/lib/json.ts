/** Values as JSON text, and what JSON has not. */

import { MisuseError } from "./errors.js";
import { typeOf } from "./options.js";
import { stringify } from "./unicode.js";

/**
 * `value` as JSON text.
 *
 * @throws {TypeError} for what JSON has not, naming the place of a number that is none (JSON would say null), of a bigint
 *   and of what holds itself
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
  if (text.includes("null") && hasNonFinite(value)) checkMembers(value);
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
  throw new MisuseError(`${name}: expected an object, such as { name: "value" }, got ${got}`);
}

/** Whether a number in `value`, which has become JSON, may be none. What has a `toJSON` is not asked again. */
function hasNonFinite(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  if (typeof value !== "object" || value === null) return false;
  const members = value as Readonly<Record<string, unknown>>;
  if (typeof members["toJSON"] === "function") return false;
  if (Array.isArray(value)) return value.some(hasNonFinite);
  return Object.keys(members).some((key) => hasNonFinite(members[key]));
}

/** Goes through `value` as JSON does, to name the place of what JSON has not. */
function checkMembers(value: unknown): void {
  const places = new Map<unknown, string>();
  JSON.stringify(value, function (this: unknown, key, member: unknown) {
    const before = places.get(this);
    const place = before === undefined ? "" : Array.isArray(this) ? `${before}[${key}]` : `${before}.${key}`;
    const named = place === "" ? "" : `"${place.replace(/^\./, "")}": `;
    if (typeof member === "number" && !Number.isFinite(member)) throw new TypeError(`${named}${member} is not JSON`);
    if (typeof member === "bigint") throw new TypeError(`${named}a bigint is not JSON; give a number, or text of it`);
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
