/** Options on their way to the engine: the same names, in its casing and units. */

import { MisuseError } from "../errors/errors.js";
import { checkFinite } from "./checks.js";
import { DURATIONS } from "./durations.js";
import { notJson, stringify } from "./encoding.js";

/**
 * `options` as JSON with snake_case names. Those that are undefined are left out.
 *
 * @throws {MisuseError} naming what JSON has not: a bigint, what holds itself, or a number that would be null there, which
 *   is not given
 */
export function toEngine(options: object): string {
  const wire = toWire(options);
  let text: string;
  try {
    text = stringify(wire);
  } catch (error) {
    throw new MisuseError(notJson(options) ?? String(error), { cause: error });
  }
  if (text.includes("null")) checkFinite("", options);
  return text;
}

/**
 * Options within options, as the engine takes them. Members that are objects stay as they are.
 *
 * @param place what is before their names
 * @throws {MisuseError} naming the number that JSON has not
 */
export function optionsToEngine(place: string, options: object): Record<string, unknown> {
  checkFinite(place, options);
  return toWire(options);
}

function toWire(options: object): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const known = snake(name);
    // JSON would leave it out, and nobody would say that there is no such option.
    if (typeof value === "function" || typeof value === "symbol") wire[known] = `a ${typeof value}`;
    else if (name === "tasks") wire[known] = tasks(value as boolean | object);
    else if (name === "cache") wire[known] = cache(value);
    else wire[known] = DURATIONS.has(name) && typeof value === "number" ? value / 1000 : value;
  }
  return wire;
}

/** Returns the name of an option as the engine has it. */
export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns cache hints as the engine takes them. */
function cache(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    members.map(([name, member]: [string, unknown]) => {
      return [snake(name), name === "ttl" && typeof member === "number" ? member / 1000 : cache(member)];
    }),
  );
}

/** Options within options; true stands for the defaults. */
function tasks(value: boolean | object): unknown {
  if (typeof value === "boolean") return value ? {} : null;
  return typeof value === "object" ? toWire(value) : value;
}
