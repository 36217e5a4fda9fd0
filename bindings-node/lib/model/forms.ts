/** Forms out of schemas: what a form may say (specification, "Requested Schema"), and how its answer is read. */

import { PeerMisbehavedError } from "../errors/errors.js";
import { type Arguments, describe, isStandard, type JsonSchema, type Schema, toJsonSchema } from "../json/schema.js";
import type { ElicitResult } from "../types.js";
import { type Whole, whole } from "./results.js";

type Json = Readonly<Record<string, unknown>>;

/** A form's schema, and how its answer becomes the value that the schema describes. */
interface Made {
  readonly schema: JsonSchema;
  /** The library judges what an answer holds: it has transforms, checks and words that a JSON Schema has not. */
  readonly judged: boolean;
  read(content: Json): Promise<unknown>;
}

let enginesCheck: (form: JsonSchema) => void = () => {};

/**
 * Sets the engine's check of forms, which throws. It is loaded by what needs the classes here.
 *
 * @internal
 */
export function checkFormsWith(check: typeof enginesCheck): void {
  enginesCheck = check;
}

/**
 * A form that {@link Context.elicit} asks the user to fill in, checked when it is made: what no client could show stops
 * the program where the form is written, and not the first user that would see it.
 *
 * ```ts
 * const booking = new Form(z.object({ name: z.string(), seats: z.int().default(2) }));
 *
 * app.tool("book", { description: "Book a table" }, async (_, ctx) => (await ctx.elicit("A table?", booking)).action);
 * ```
 */
export class Form<const S extends Schema = Schema> {
  /** The `requestedSchema`. */
  readonly schema: JsonSchema;
  /**
   * A schema library judges what an answer holds.
   *
   * @internal
   */
  readonly judged: boolean;
  readonly #read: Made["read"];

  /**
   * @param schema an object of text, numbers, booleans and choices, nothing within something; of a schema library also
   *   one of these alone
   * @throws {MisuseError} that names the property, for a schema that no form can be made of
   */
  constructor(schema: S) {
    const { schema: json, read, judged } = formOf(schema);
    enginesCheck(json);
    this.schema = json;
    this.judged = judged;
    this.#read = read;
  }

  /**
   * The value of an answer, checked by the schema, after its defaults and transforms.
   *
   * @throws {PeerMisbehavedError} when it does not fit
   * @internal
   */
  read(content: Json): Promise<Arguments<S>> {
    return this.#read(content) as Promise<Arguments<S>>;
  }
}

/** The only field of a form that asks for one value. */
const SINGLE = "value";

/** The form that a schema describes: an object of text, numbers, booleans and choices, or one of these. */
function formOf(schema: Schema): Made {
  const json = JSON.parse(toJsonSchema(schema, "input", "elicit")) as JsonSchema;
  // The engine checks that it is a form, and the answer.
  if (!isStandard(schema)) return { schema: json, judged: false, read: async (content) => content };
  const whole = isObject(json["properties"]);
  const asked = whole ? json : { properties: { [SINGLE]: single(json) }, required: [SINGLE] };
  const { properties, required } = asked as {
    readonly properties: Json;
    readonly required?: readonly string[] | undefined;
  };
  const fields = Object.entries(properties).map(([name, property]) => [name, field(property, json)] as const);
  // What may be null need not be answered.
  const nullable = (required ?? []).filter((name) => allowsNull(properties[name], json));
  const needed = required?.filter((name) => !nullable.includes(name));
  const standard = schema["~standard"];
  return {
    schema: { type: "object", properties: Object.fromEntries(fields), ...(needed && { required: needed }) },
    judged: true,
    read: async (content) => {
      const given: Json = { ...Object.fromEntries(nullable.map((name) => [name, null])), ...content };
      const outcome = await standard.validate(whole ? given : given[SINGLE]);
      if (!outcome.issues) return outcome.value;
      const why = describe(outcome.issues, "answer", whole ? "the answer" : `answer "${SINGLE}"`);
      throw new PeerMisbehavedError(`the client's answer to "elicitation/create" does not fit the form: ${why}`);
    },
  };
}

/** Drops `type` from a union. */
function single(json: JsonSchema): unknown {
  const { type, ...rest } = json;
  return "anyOf" in rest || "oneOf" in rest ? rest : json;
}

const FORMATS = new Set<unknown>(["email", "uri", "date", "date-time"]);

/**
 * Returns what a form may say of a property. Libraries say more: that is checked when the answer is here.
 * What is no field of a form stays as it is, for the engine to refuse.
 */
function field(property: unknown, root: Json): unknown {
  const found = withoutNull(property, root);
  if (!isObject(found)) return property;
  const type = found["type"] ?? typeOf(choices(found, root));
  const notes = { ...pick(found, "title", "description"), ...(found["default"] !== null && pick(found, "default")) };
  switch (type) {
    case "string": {
      const format = FORMATS.has(found["format"]) ? pick(found, "format") : {};
      const known = titled(found["oneOf"])
        ? pick(found, "oneOf")
        : titled(found["anyOf"])
          ? { oneOf: found["anyOf"] }
          : chosen(choices(found, root));
      return { type, ...pick(found, "minLength", "maxLength", "enumNames"), ...format, ...known, ...notes };
    }
    case "integer":
    case "number": {
      const step = type === "integer" ? 1 : 0;
      const bound = (keyword: string, beyond: string, by: number): Json => {
        const [closed, open] = [found[keyword], found[beyond]];
        const value = typeof open === "number" ? open + by : closed;
        // What libraries say of any number is nothing to a user.
        return typeof value !== "number" || Math.abs(value) >= Number.MAX_SAFE_INTEGER ? {} : { [keyword]: value };
      };
      const low = bound("minimum", "exclusiveMinimum", step);
      return { type, ...low, ...bound("maximum", "exclusiveMaximum", -step), ...notes };
    }
    case "boolean":
      return { type, ...notes };
    case "array": {
      const items = withoutNull(found["items"], root);
      if (!isObject(items)) return found;
      const known = titled(items["anyOf"]) ? items["anyOf"] : titled(items["oneOf"]) ? items["oneOf"] : undefined;
      const values = choices(items, root);
      if (!known && typeOf(values) !== "string") return found;
      const one = known ? { anyOf: known } : { type: "string", ...chosen(values) };
      return { type, items: one, ...pick(found, "minItems", "maxItems"), ...notes };
    }
    default:
      return found;
  }
}

/** A schema without the alternative `null`, and with what it refers to. */
function withoutNull(schema: unknown, root: Json): unknown {
  if (!isObject(schema)) return schema;
  const { $ref, ...own } = schema;
  if (typeof $ref === "string") {
    const [, name = ""] = /^#\/\$defs\/([^/]+)$/.exec($ref) ?? [];
    const target = (root["$defs"] as Json | undefined)?.[name];
    // What refers to something refers to nothing that refers on: a chain of them is no field of a form.
    return isObject(target) && !("$ref" in target) ? withoutNull({ ...target, ...own }, root) : schema;
  }
  const { type, anyOf, ...rest } = schema;
  if (Array.isArray(type)) {
    const [only, ...others] = type.filter((one) => one !== "null");
    return others.length > 0 ? schema : { ...rest, type: only, ...(anyOf !== undefined && { anyOf }) };
  }
  if (!Array.isArray(anyOf)) return schema;
  const left = anyOf.filter((one) => !isObject(one) || one["type"] !== "null");
  const [only] = left;
  if (left.length === 1 && isObject(only)) return withoutNull({ ...only, ...rest }, root);
  return left.length === anyOf.length ? schema : { ...schema, anyOf: left };
}

function allowsNull(schema: unknown, root: Json): boolean {
  if (!isObject(schema)) return false;
  const { type, anyOf, $ref } = schema;
  if (typeof $ref === "string") return withoutNull(schema, root) !== schema;
  if (Array.isArray(type)) return type.includes("null");
  return Array.isArray(anyOf) && anyOf.some((one) => isObject(one) && one["type"] === "null");
}

/** The values that a schema names, undefined when it does not. */
function choices(schema: Json, root: Json): readonly unknown[] | undefined {
  if ("const" in schema) return [schema["const"]];
  if (Array.isArray(schema["enum"])) return schema["enum"].filter((value) => value !== null);
  const several: unknown = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(several)) return undefined;
  const all = several.map((one) => (isObject(one) ? choices(one, root) : undefined));
  return all.every((values) => values !== undefined) ? [...new Set(all.flat())] : undefined;
}

function typeOf(values: readonly unknown[] | undefined): string | undefined {
  const [type, ...others] = new Set(values?.map((value) => typeof value));
  return others.length > 0 ? undefined : type;
}

function chosen(values: readonly unknown[] | undefined): Json {
  return typeOf(values) === "string" ? { enum: values } : {};
}

/** True if these are choices with titles, as forms have them. */
function titled(several: unknown): boolean {
  const isTitled = (one: unknown): boolean =>
    isObject(one) && typeof one["const"] === "string" && typeof one["title"] === "string";
  return Array.isArray(several) && several.every(isTitled);
}

function pick(schema: Json, ...keywords: readonly string[]): Json {
  return Object.fromEntries(keywords.filter((key) => key in schema).map((key) => [key, schema[key]]));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The form for a question that is being asked: the engine checks it then. */
export function asked(schema: Schema | Form): Made {
  return schema instanceof Form ? schema : formOf(schema);
}

/** The user's response to a question: only a user who accepted has answered. */
export type Elicited<T> =
  | { readonly action: "accept"; readonly content: T }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined | undefined };

/** Reads the client's answer to a form. */
export async function elicited<T>(
  form: { read(content: Readonly<Record<string, unknown>>): Promise<unknown> },
  result: Readonly<Record<string, unknown>>,
): Promise<Elicited<T> & Whole> {
  const { action, content = {} } = result as unknown as ElicitResult;
  const answer: Elicited<T> = action === "accept" ? { action, content: (await form.read(content)) as T } : { action };
  return whole(answer, result);
}
