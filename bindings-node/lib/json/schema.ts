/** Schemas of arguments and results: any library that speaks Standard Schema, or plain JSON Schema. */

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { MisuseError } from "../errors/errors.js";
import { shown, typeOf } from "./checks.js";
import { stringify } from "./encoding.js";
import { here } from "./module-url.js";

/** A fault of one value. */
export interface StandardIssue {
  /** For people. */
  readonly message: string;
  /** From the whole value to the part that is wrong: names and indices, bare or as `{key}`. Default: the whole. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The outcome of a check: the value after defaults and transforms, or what is wrong with it. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** The part of a Standard Schema used here. Zod 4, Valibot, ArkType and others have it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Everything is in here, so that it clashes with nothing. */
  readonly "~standard": {
    readonly version: 1;
    /** The library, such as `zod`. */
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** For the compiler only. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema, where the library has it. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
      readonly output: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

declare const described: unique symbol;

/** A JSON Schema object. `T` is what it describes, for the compiler only; see {@link jsonSchema}. */
export interface JsonSchema<T = unknown> {
  readonly [keyword: string]: unknown;
  readonly [described]?: T;
}

/** Says which type a JSON Schema describes, so that handlers get typed arguments. It is not checked. */
export function jsonSchema<T>(schema: Readonly<Record<string, unknown>>): JsonSchema<T> {
  return schema as JsonSchema<T>;
}

/** Either kind of schema. */
export type Schema = StandardSchema | JsonSchema;

/** The value that a handler receives for a schema: validated, after defaults and transforms. */
export type Infer<S> =
  S extends StandardSchema<infer _Input, infer Output> ? Output : S extends JsonSchema<infer T> ? T : never;

/** The value that callers write for a schema: before defaults and transforms. */
export type InferInput<S> =
  S extends StandardSchema<infer Input, infer _Output> ? Input : S extends JsonSchema<infer T> ? T : never;

/** The handler's first argument for an input schema. */
export type Arguments<Input> = [Input] extends [Schema]
  ? unknown extends Infer<Input>
    ? Record<string, unknown>
    : Infer<Input>
  : Record<string, unknown>;

/** @internal */
export function isStandard(schema: unknown): schema is StandardSchema {
  const isObject = typeof schema === "object" ? schema !== null : typeof schema === "function";
  return isObject && "~standard" in (schema as object);
}

/** The depth to which a JSON Schema is looked at; the engine refuses those that are deeper. */
const MAX_DEPTH = 64;

/**
 * The keywords of JSON Schema: of 2020-12, 2019-09 and draft 7. Every schema that says something has one of them, or is
 * of an extension, whose members begin with `x-`.
 */
const KEYWORDS = new Set([
  "$anchor",
  "$comment",
  "$defs",
  "$dynamicAnchor",
  "$dynamicRef",
  "$id",
  "$recursiveAnchor",
  "$recursiveRef",
  "$ref",
  "$schema",
  "$vocabulary",
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "const",
  "contains",
  "contentEncoding",
  "contentMediaType",
  "contentSchema",
  "default",
  "definitions",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "deprecated",
  "description",
  "else",
  "enum",
  "examples",
  "exclusiveMaximum",
  "exclusiveMinimum",
  "format",
  "if",
  "items",
  "maxContains",
  "maxItems",
  "maxLength",
  "maxProperties",
  "maximum",
  "minContains",
  "minItems",
  "minLength",
  "minProperties",
  "minimum",
  "multipleOf",
  "not",
  "oneOf",
  "pattern",
  "patternProperties",
  "prefixItems",
  "properties",
  "propertyNames",
  "readOnly",
  "required",
  "then",
  "title",
  "type",
  "unevaluatedItems",
  "unevaluatedProperties",
  "uniqueItems",
  "writeOnly",
]);
/** Those that hold schemas. A library's schema under another name is a property's. */
const HOLDERS =
  /^(properties|items|contains|not|if|then|else|propertyNames|contentSchema|(additional|unevaluated)(Items|Properties))$/;

function isKeyword(name: string): boolean {
  return KEYWORDS.has(name) || name.startsWith("x-");
}

/**
 * Refuses what is neither a Standard Schema nor a JSON Schema, and would be taken for one because it is an object.
 *
 * @param subject who it belongs to, for the error: `tool "add" input`
 * @throws {MisuseError} saying what it is, and what to give instead
 * @internal
 */
export function checkSchema(subject: string, schema: unknown): void {
  if (schema === undefined || isStandard(schema)) return;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    throw new MisuseError(
      `${subject}: expected a JSON Schema, or a schema such as z.object({ … }), got ${kindOf(schema)}`,
    );
  }
  const members = Object.entries(schema) as [string, unknown][];
  if (isOfLibrary(schema)) throw new MisuseError(`${subject}: ${OLD}`);
  const [name] = members.find(([, member]) => isStandard(member) || isOfLibrary(member)) ?? [];
  if (name !== undefined && !HOLDERS.test(name)) {
    throw new MisuseError(
      `${subject}: these are schemas by name, and no schema of an object: wrap them: z.object({ ${name}: … })`,
    );
  }
  checkPlain(subject, schema, "", 0);
  if (members.length > 0 && !members.some(([key]) => isKeyword(key))) {
    const first = shown(members[0]?.[0]);
    throw new MisuseError(
      `${subject}: ${first} is no keyword of JSON Schema: give {"type": "object", "properties": {${first}: …}}`,
    );
  }
}

const OLD = "this schema is of a library, or a version of it, without Standard Schema: zod has it since 3.24";

/** True for schemas of zod, also of versions which do not say so. */
function isOfLibrary(value: unknown): boolean {
  return typeof value === "object" && value !== null && ("_def" in value || "_zod" in value) && !isStandard(value);
}

/** Refuses a JSON Schema that has something in it which JSON has not. */
function checkPlain(subject: string, value: unknown, place: string, depth: number): void {
  if (depth > MAX_DEPTH) return;
  const wrong = (what: string, instead: string): MisuseError =>
    new MisuseError(`${subject}: ${place === "" ? "it" : `"${place}" in this JSON Schema`} is ${what}: ${instead}`);
  if (isStandard(value) || isOfLibrary(value)) {
    throw wrong("a schema of a library", "give the JSON Schema of it, or make the whole with the library");
  }
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint") {
    throw wrong(kindOf(value), "a JSON Schema is JSON");
  }
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) checkPlain(subject, item, `${place}[${index}]`, depth + 1);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain && typeof (value as { readonly toJSON?: unknown }).toJSON !== "function") {
    throw wrong(kindOf(value), "a JSON Schema is JSON, and a schema of a library has to speak Standard Schema");
  }
  for (const [name, member] of Object.entries(value)) {
    checkPlain(subject, member, place === "" ? name : `${place}.${name}`, depth + 1);
  }
}

/** Options with schemas of a library where they belong: `inputSchema` is JSON Schema here, and the same word elsewhere. */
interface Given {
  readonly input?: Schema | undefined;
  readonly output?: Schema | undefined;
  readonly inputSchema?: Schema | undefined;
  readonly outputSchema?: Schema | undefined;
}

/**
 * Checks options before anything else looks at them, and puts the schemas of libraries where they belong.
 *
 * @param what whose they are: `tool "add"`
 * @throws {MisuseError} for what is no object of options, and what is no schema
 * @internal
 */
export function withSchemas<Options extends Given>(what: string, options: Options): Options {
  const given: unknown = options;
  if (typeof given === "string") {
    throw new MisuseError(`${what}: the second argument is an object: { description: ${stringify(given)} }`);
  }
  if (isStandard(given))
    throw new MisuseError(`${what}: the second argument is an object of options: { input: schema }`);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new MisuseError(`${what}: the second argument is an object of options, got ${kindOf(given)}`);
  }
  const isKnown = /^(in|out)put(Schema)?$/;
  const [shape] =
    Object.entries(given).find(([name, one]) => !isKnown.test(name) && (isStandard(one) || isOfLibrary(one))) ?? [];
  if (shape !== undefined) {
    throw new MisuseError(
      `${what}: "${shape}" is a schema: those of arguments are { input: z.object({ ${shape}: … }) }`,
    );
  }
  let settled: Options = options;
  for (const name of ["input", "output"] as const) {
    const [own, json] = [options[name], options[`${name}Schema`]];
    checkSchema(`${what}: ${name}`, own);
    checkSchema(`${what}: ${name}Schema`, json);
    if (!isStandard(json)) continue;
    if (own !== undefined) throw new MisuseError(`${what}: ${name}Schema beside ${name} is its JSON Schema`);
    // Others call it so.
    settled = { ...settled, [name]: json, [`${name}Schema`]: undefined };
  }
  return settled;
}

/** The sides of a definition that its library judges, and the engine does not. */
export function judged({ input, output }: Given): readonly ("input" | "output")[] {
  const sides = [isStandard(input) && ("input" as const), isStandard(output) && ("output" as const)];
  return sides.filter((side) => side !== false);
}

/** The kind of a thing, for messages. */
function kindOf(value: unknown): string {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return `a ${value.constructor?.name || "object"}`;
  }
  return typeOf(value);
}

// Converting is slow in most libraries, and tools often share a schema.
const converted = { input: new WeakMap<object, string>(), output: new WeakMap<object, string>() };

/**
 * The JSON Schema of `schema` as JSON text.
 *
 * @param subject who it belongs to, for the error: `tool "add" input`
 * @param option the option that the schema was given as
 * @internal
 */
export function toJsonSchema(
  schema: Schema,
  direction: Direction,
  subject: string,
  option: string = direction,
): string {
  if (!isStandard(schema)) {
    checkSchema(subject, schema);
    return stringify(schema);
  }
  let text = converted[direction].get(schema);
  if (text === undefined) {
    text = stringify(convert(schema, direction, subject, option));
    converted[direction].set(schema, text);
  }
  return text;
}

type Direction = "input" | "output";
type Json = Record<string, unknown>;

/** The parts of zod that are used besides Standard Schema. */
interface Zod {
  readonly _zod?: { readonly def?: ZodDefinition };
  readonly toJSONSchema?: (options: ZodOptions) => Json;
  readonly safeEncode?: (value: unknown) => ZodResult;
  readonly safeEncodeAsync?: (value: unknown) => Promise<ZodResult>;
}

interface ZodDefinition {
  readonly type: string;
  readonly coerce?: boolean;
  readonly reverseTransform?: unknown;
  readonly in?: Zod;
  readonly out?: Zod;
  readonly values?: readonly unknown[];
}

interface ZodOptions {
  readonly io: Direction;
  readonly target: "draft-2020-12";
  readonly unrepresentable?: "any" | "throw";
  readonly override?: (context: { readonly zodSchema: Zod; readonly jsonSchema: Json }) => void;
}

type ZodResult =
  | { readonly success: true; readonly data: unknown }
  | { readonly success: false; readonly error: Refusal };
interface Refusal {
  readonly issues: readonly StandardIssue[];
}

/** A fault of a schema that another JSON Schema would not help. */
class Helpless extends Error {}

function convert(schema: StandardSchema, direction: Direction, subject: string, option: string): Json {
  const standard = schema["~standard"];
  let json: Json;
  try {
    if (isZod4(schema)) json = ofZod(schema, direction);
    else if (standard.jsonSchema) json = standard.jsonSchema[direction]({ target: "draft-2020-12" });
    else json = byConverter(schema, standard.vendor, direction);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const remedy = cause instanceof Helpless ? "" : `; pass ${direction}Schema beside ${option}`;
    throw new MisuseError(`${subject}: ${reason}${remedy}`, { cause });
  }
  // 2020-12 is the protocol's default dialect: naming it again in every tool only costs bytes.
  if (json["$schema"] === "https://json-schema.org/draft/2020-12/schema") delete json["$schema"];
  json = withParts(json) as Json;
  // Arguments are always an object, which a union of objects does not say at its top.
  return direction === "input" && json["type"] === undefined ? { type: "object", ...json } : json;
}

/** Keywords that hold values, and no schemas. */
const VALUES = new Set(["default", "examples", "enum", "const", "required"]);
/** Keywords that hold schemas by name. */
const BY_NAME = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/**
 * The schema with the type of each choice of one type, and the items of each array, which some clients do not read
 * without them.
 */
function withParts(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withParts);
  if (typeof schema !== "object" || schema === null) return schema;
  const typed: Json = {};
  for (const [keyword, member] of Object.entries(schema)) {
    if (VALUES.has(keyword)) typed[keyword] = member;
    else if (BY_NAME.has(keyword) && typeof member === "object" && member !== null) {
      typed[keyword] = Object.fromEntries(Object.entries(member).map(([name, one]) => [name, withParts(one)]));
    } else typed[keyword] = withParts(member);
  }
  const choices = "const" in typed ? [typed["const"]] : typed["enum"];
  if (Array.isArray(choices) && typed["type"] === undefined) {
    const [kind, ...others] = new Set(choices.map((choice) => (choice === null ? "null" : typeof choice)));
    if (others.length === 0 && kind !== undefined && kind !== "object") typed["type"] = kind;
  }
  const type = typed["type"];
  const isArray = type === "array" || (Array.isArray(type) && type.includes("array"));
  if (isArray && !("items" in typed) && !("prefixItems" in typed)) typed["items"] = {};
  return typed;
}

function isZod4(schema: StandardSchema): schema is StandardSchema & Required<Pick<Zod, "toJSONSchema">> {
  return schema["~standard"].vendor === "zod" && typeof (schema as Zod).toJSONSchema === "function";
}

/** Types that JSON has not, by the names that zod gives them. A date is text there. */
const UNREPRESENTABLE: Readonly<Record<string, string>> = {
  bigint: "BigInt",
  custom: "Custom types",
  function: "Function types",
  map: "Map",
  set: "Set",
  symbol: "Symbols",
  transform: "Transforms",
  undefined: "Undefined",
  void: "Void",
};

/** Dates leave as text, and come as text where they are coerced. */
function ofZod(schema: Required<Pick<Zod, "toJSONSchema">>, direction: Direction): Json {
  const target = "draft-2020-12";
  const isBack = direction === "output" && hasCodec(schema as unknown as StandardSchema);
  const io = isBack ? "input" : direction;
  if (isBack && has(schema, isOneWay)) {
    throw new Helpless("a codec goes the way back, which a transform beside it cannot: make a codec of that, too");
  }
  try {
    return { ...schema.toJSONSchema({ io, target }) };
  } catch (error) {
    let mended = 0;
    const override: ZodOptions["override"] = ({ zodSchema, jsonSchema }) => {
      const { type = "", coerce, values } = zodSchema._zod?.def ?? {};
      if (type === "date" && (direction === "output" || coerce)) {
        mended++;
        Object.assign(jsonSchema, { type: "string", format: "date-time" });
      } else if (type === "transform" && direction === "output") {
        mended++; // It may come to anything.
      } else if (type === "date") {
        throw new Helpless("a Date is not JSON: z.coerce.date() reads it from text");
      } else if (type in UNREPRESENTABLE) {
        throw new Error(`${UNREPRESENTABLE[type]} cannot be represented in JSON Schema`);
      } else if (type === "literal" && values?.some((value) => value === undefined || typeof value === "bigint")) {
        throw error;
      }
    };
    const json = { ...schema.toJSONSchema({ io, target, unrepresentable: "any", override }) };
    if (mended === 0) throw error;
    return json;
  }
}

const codecs = new WeakMap<object, boolean>();

/** True if a schema has both ways of something, such as a date and its text: results then go the way back. */
function hasCodec(schema: StandardSchema): boolean {
  if (!isZod4(schema) || typeof (schema as Zod).safeEncode !== "function") return false;
  let found = codecs.get(schema);
  if (found === undefined) {
    found = has(schema, (part) => typeof part.reverseTransform === "function");
    codecs.set(schema, found);
  }
  return found;
}

/** True for a transform, or a pipe with one in it, such as what `z.preprocess` makes. */
function isOneWay({ type, in: first, out: second }: ZodDefinition): boolean {
  return type === "transform" || [first, second].some((one) => one?._zod?.def !== undefined && isOneWay(one._zod.def));
}

/** True if something in a schema is so. */
function has({ toJSONSchema }: Required<Pick<Zod, "toJSONSchema">>, isIt: (part: ZodDefinition) => boolean): boolean {
  let found = false;
  const override: ZodOptions["override"] = ({ zodSchema }) => {
    const part = zodSchema._zod?.def;
    if (part && isIt(part)) found = true;
  };
  try {
    toJSONSchema({ io: "output", target: "draft-2020-12", unrepresentable: "any", override });
  } catch {
    // It cannot be listed at all, which is said elsewhere.
  }
  return found;
}

/** The libraries' own converters, for versions of schema libraries that cannot do it themselves. */
function byConverter(schema: StandardSchema, vendor: string, direction: Direction): Json {
  if (vendor === "zod") {
    const name = "zod-to-json-schema";
    const { zodToJsonSchema } = converter<{ zodToJsonSchema(schema: unknown, options: object): Json }>(name, "zod 3");
    const strategies = { pipeStrategy: direction, effectStrategy: direction === "input" ? "input" : "any" };
    const json = zodToJsonSchema(schema, { target: "jsonSchema7", $refStrategy: "root", ...strategies });
    delete json["$schema"];
    return json;
  }
  if (vendor === "valibot") {
    const name = "@valibot/to-json-schema";
    const { toJsonSchema } = converter<{ toJsonSchema(schema: unknown, options: object): Json }>(name, "valibot");
    const json = toJsonSchema(schema, { typeMode: direction, target: "draft-2020-12" });
    delete json["$schema"];
    return json;
  }
  throw new Error(`this version of ${vendor} cannot make a JSON Schema`);
}

function converter<T>(name: string, library: string): T {
  const places = [here(), pathToFileURL(join(process.cwd(), "package.json")).href];
  for (const place of places) {
    try {
      return createRequire(place)(name) as T;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  throw new Error(`${library} cannot make a JSON Schema by itself: install ${name}`);
}

/**
 * Checks a value, or what a function of the program has made, and gives it as the library makes it: after its defaults,
 * transforms and coercions, without what it strips.
 *
 * @internal
 */
export function judge(
  schema: StandardSchema,
  value: unknown,
): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  return schema["~standard"].validate(value);
}

/**
 * The same for what is sent: a codec goes the way back.
 *
 * @internal
 */
export function judgeSent(
  schema: StandardSchema,
  value: unknown,
): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  if (!hasCodec(schema)) return judge(schema, value);
  const { safeEncode, safeEncodeAsync } = schema as unknown as Required<Zod>;
  const read = (result: ZodResult): StandardResult<unknown> =>
    result.success ? { value: result.data } : { issues: result.error.issues };
  try {
    return read(safeEncode(value));
  } catch (error) {
    if (!/async/i.test(String((error as Error | null)?.constructor.name))) throw error;
    return safeEncodeAsync(value).then(read);
  }
}

/**
 * The issues as the text a model reads, in the shape the engine uses for its own.
 *
 * @param part what the parts of the value are called, `whole` what the value is
 * @internal
 */
export function describe(issues: readonly StandardIssue[], part: string, whole: string): string {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => `${subject(issue.path, part, whole)}: ${sentence(issue)}`);
  if (issues.length > MAX_ISSUES) shown.push(`and ${issues.length - MAX_ISSUES} more`);
  return shown.join("; ");
}

/** As many are enough to mend a call, and more would fill the model's context. */
const MAX_ISSUES = 16;
const MAX_SENTENCE = 1000;

/** The library's sentence on one value; of a union, which says nothing by itself, those of its members. */
function sentence(issue: StandardIssue): string {
  const { message, errors } = issue as StandardIssue & { readonly errors?: unknown };
  let text = String(message);
  if (Array.isArray(errors) && errors.length > 0 && text === "Invalid input") {
    const each = (errors as readonly unknown[]).slice(0, MAX_ISSUES).map((branch) => {
      const [first] = Array.isArray(branch) ? (branch as StandardIssue[]) : [];
      if (!first) return "";
      const within = subject(first.path, "", "").trim();
      return within === "" ? String(first.message) : `${within}: ${first.message}`;
    });
    const different = [...new Set(each.filter((one) => one !== ""))];
    if (different.length > 0) text += ` (${different.join("; or ")})`;
  }
  return text.length > MAX_SENTENCE ? `${text.slice(0, MAX_SENTENCE)}…` : text;
}

function subject(path: StandardIssue["path"], part: string, whole: string): string {
  let text = "";
  for (const step of path ?? []) {
    const key = typeof step === "object" ? step.key : step;
    if (typeof key === "number") text += `[${key}]`;
    else text += text ? `.${String(key)}` : String(key);
  }
  return text ? `${part} "${text}"` : whole;
}
