/** Schemas of arguments and results: any library that speaks Standard Schema, or plain JSON Schema. */

import { MisuseError } from "./errors.js";
import { stringify } from "./unicode.js";

/** What went wrong with one value. */
export interface StandardIssue {
  /** For people. */
  readonly message: string;
  /** From the whole value to the part that is wrong: names and indices, bare or as `{key}`. Default: the whole. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a check came to: the value after defaults and transforms, or what is wrong with it. */
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

/** What a handler receives for a schema: the validated value, after defaults and transforms. */
export type Infer<S> =
  S extends StandardSchema<infer _Input, infer Output> ? Output : S extends JsonSchema<infer T> ? T : never;

/** What callers write for a schema: before defaults and transforms. */
export type InferInput<S> =
  S extends StandardSchema<infer Input, infer _Output> ? Input : S extends JsonSchema<infer T> ? T : never;

/** @internal */
export function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema;
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
  direction: "input" | "output",
  subject: string,
  option: string = direction,
): string {
  if (!isStandard(schema)) return stringify(schema);
  let text = converted[direction].get(schema);
  if (text === undefined) {
    text = stringify(convert(schema, direction, subject, option));
    converted[direction].set(schema, text);
  }
  return text;
}

/** Zod's own conversion, which versions without Standard JSON Schema have too. */
interface ZodLike {
  readonly toJSONSchema?: (options: { io: "input" | "output"; target: "draft-2020-12" }) => Record<string, unknown>;
}

function convert(
  schema: StandardSchema,
  direction: "input" | "output",
  subject: string,
  option: string,
): Record<string, unknown> {
  const standard = schema["~standard"];
  const zod = schema as ZodLike;
  let json: Record<string, unknown>;
  try {
    if (standard.jsonSchema) json = standard.jsonSchema[direction]({ target: "draft-2020-12" });
    else if (zod.toJSONSchema) json = { ...zod.toJSONSchema({ io: direction, target: "draft-2020-12" }) };
    else throw new Error(`this version of ${standard.vendor} cannot make a JSON Schema`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new MisuseError(`${subject}: ${reason}; pass ${direction}Schema beside ${option}`, { cause });
  }
  // 2020-12 is the protocol's default dialect: naming it again in every tool only costs bytes.
  if (json["$schema"] === "https://json-schema.org/draft/2020-12/schema") delete json["$schema"];
  // Arguments are always an object, which a union of objects does not say at its top.
  return direction === "input" && json["type"] === undefined ? { type: "object", ...json } : json;
}

/**
 * The issues as the text a model reads, in the shape the engine uses for its own.
 *
 * @param part what the parts of the value are called, `whole` what the value is
 * @internal
 */
export function describe(issues: readonly StandardIssue[], part: string, whole: string): string {
  return issues.map(({ path, message }) => `${subject(path, part, whole)}: ${message}`).join("; ");
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
