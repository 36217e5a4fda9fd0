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

/** The engine's refusal of a name that does not exist, set by the bridge. */
let enginesRefusal = (what: string, name: string, _known: readonly string[]): void => {
  throw new MisuseError(`${what}: unknown option "${name}"`);
};

/**
 * Sets the engine's refusal of a name that does not exist.
 *
 * @internal
 */
export function refuseNamesWith(refuse: typeof enginesRefusal): void {
  enginesRefusal = refuse;
}

/**
 * Refuses an option that does not exist, in the engine's words.
 *
 * @param known the names of those that do
 * @throws {MisuseError} naming the option, and the one that was probably meant
 */
export function refuseName(what: string, name: string, known: readonly string[]): void {
  enginesRefusal(what, name, known);
}

/**
 * Refuses options that do not exist.
 *
 * @param known has the names of those that do
 * @throws {MisuseError} naming the option, and the one that was probably meant
 */
export function checkNames(what: string, options: object, known: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !Object.hasOwn(known, name)) refuseName(what, name, Object.keys(known));
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
