/** Checks of options and arguments, from callers that may not check their types. */

import { MisuseError } from "../errors/errors.js";
import { DURATIONS } from "./durations.js";

/**
 * Refuses numbers that JSON has not, wherever in `value`, which has become JSON.
 *
 * @param place what is before their names
 * @throws {MisuseError} naming the option
 */
export function checkFinite(place: string, value: object): void {
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    if (typeof member === "number" && !Number.isFinite(member)) {
      const what = DURATIONS.has(name) || name === "ttl" ? "number of milliseconds" : "number";
      throw new MisuseError(`${place}${name}: expected a finite ${what}, got ${member}`);
    }
    if (typeof member !== "object" || member === null || "toJSON" in member) continue;
    checkFinite(`${place}${name}.`, member);
  }
}

/**
 * Refuses what is there and no function.
 *
 * @throws {MisuseError} naming the option
 */
export function checkFunctions(options: object, names: readonly string[]): void {
  for (const name of names) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || typeof value === "function") continue;
    throw new MisuseError(`${name}: expected a function, got ${shown(value)}`);
  }
}

/** Requirements of an argument: its name, the value, the type, and whether it may be left out. */
type Typed = readonly [name: string, value: unknown, type: "string" | "number" | "boolean", optional?: "optional"];

/**
 * Refuses arguments of another type, and numbers that are none.
 *
 * @throws {MisuseError} naming the argument
 */
export function checkTypes(what: string, ...given: readonly Typed[]): void {
  for (const [name, value, type, optional] of given) {
    if (optional && (value === undefined || value === null)) continue;
    if (type === "number" ? Number.isFinite(value) : typeof value === type) continue;
    throw new MisuseError(`${what}: ${name}: expected a ${type}, got ${shown(value)}`);
  }
}

/**
 * Refuses options that do not exist.
 *
 * @param known has the names of those that do
 * @throws {MisuseError} naming the option, and the one that was probably meant
 */
export function checkNames(what: string, options: object, known: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(known, name)) continue;
    throw new MisuseError(`${what}: unknown option "${name}", ${hint(name, Object.keys(known))}`);
  }
}

/** The required type of an option; `any` is checked elsewhere. */
export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "function"
  | "object"
  | "list of strings"
  | "list of scopes"
  | "any";

/**
 * Refuses options that do not exist, and those of another type. What they are is not said: it may be secret.
 *
 * @param shapes by the names of those that do
 * @throws {MisuseError} naming the option
 */
export function checkShapes(what: string, options: object, shapes: Readonly<Record<string, Shape>>): void {
  checkNames(what, options, shapes);
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const shape = shapes[name] ?? "any";
    if (value === undefined || shape === "any") continue;
    if (isOf(shape, value)) {
      if (shape === "list of scopes") for (const scope of value as string[]) checkScope(`${what}: ${name}`, scope);
      if (!DURATIONS.has(name) || !((value as number) < 0)) continue;
      throw new MisuseError(`option "${name}": expected milliseconds of at least 0, got ${value}`);
    }
    const odd: unknown[] = Array.isArray(value) ? value.filter((one) => typeof one !== "string") : [];
    const got = shape.startsWith("list") && odd.length > 0 ? `${typeOf(odd[0])} in it` : typeOf(value);
    const kind = shape === "list of scopes" ? "list of strings" : shape;
    const expected = DURATIONS.has(name) ? "a number of milliseconds" : `${kind === "object" ? "an" : "a"} ${kind}`;
    const fix = typeof value === "string" && /scope/i.test(`${what}${name}`) ? ": split it" : "";
    throw new MisuseError(`${what}: ${name}: expected ${expected}, got ${got}${fix}`);
  }
}

/**
 * Refuses what is no scope, such as several in one string.
 *
 * @throws {MisuseError} naming the option, and what to do
 */
export function checkScope(what: string, scope: string): void {
  if (/^\S+$/.test(scope)) return;
  const fix = scope.trim() === "" ? "; leave it out" : ": split it";
  throw new MisuseError(`${what}: expected one scope in each string, got ${shown(scope)}${fix}`);
}

function isOf(shape: Shape, value: unknown): boolean {
  if (shape.startsWith("list")) return Array.isArray(value) && value.every((one) => typeof one === "string");
  if (shape === "object") return typeOf(value) === "an object";
  return typeof value === shape;
}

/** A value for a message: as JSON where it is small and JSON, else its type. */
export function shown(value: unknown): string {
  if (typeof value === "string") return cut(JSON.stringify(value.slice(0, SHOWN + 1)));
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value) && value.length <= ITEMS && value.every(isScalar))
    return cut(`[${value.map(shown).join()}]`);
  return typeOf(value);
}

const SHOWN = 60;
const ITEMS = 8;

function isScalar(value: unknown): boolean {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

/** Cuts a text between characters. */
function cut(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, "")}…` : text;
}

/** Returns the kind of a value, in words that tell nothing else of it. */
export function typeOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Suggests a name, if something known has half in common with it; else all that there are. */
export function hint(name: string, known: readonly string[]): string {
  const [nearest = ""] = [...known].sort((a, b) => distance(name, a) - distance(name, b));
  const isNear = distance(name, nearest) <= Math.ceil(Math.max(name.length, nearest.length) / 2);
  return isNear ? `did you mean "${nearest}"?` : `expected one of ${known.join(", ")}`;
}

/** Counts the letters that have to be added, removed or replaced. */
export function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (let at = 0; at < to.length; at++) {
      const replaced = (row[at] ?? 0) + (to[at] === letter ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
