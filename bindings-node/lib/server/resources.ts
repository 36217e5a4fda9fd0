/** Resources and resource templates: what users say about them, and what happens when one is read. */

import { addon, handle } from "../bridge/host.js";
import type { AnyState, Context } from "../call/context.js";
import { type AnyFunction, type Home, invalidParams, Runner, validated } from "../call/handler.js";
import type { CacheHints } from "../client/cache-store.js";
import { MisuseError } from "../errors/errors.js";
import { checkFinite, checkNames } from "../json/checks.js";
import { toJson } from "../json/encoding.js";
import type { JsonSchema, Schema } from "../json/schema.js";
import { stringify } from "../json/unicode.js";
import { base64 } from "../model/content.js";
import { ReadResourceResult } from "../model/results.js";
import type { Annotations, Icon, MetaObject } from "../types.js";
import type { Completes } from "./completion.js";
import type { Arguments } from "./tools.js";

/** Options of a resource or a template, beside its URI and its function. All optional. */
export interface ResourceOptions<
  Input extends Schema | undefined = undefined,
  Names extends string = string,
  State = unknown,
> {
  /** Default: the function's name, else the URI. */
  readonly name?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** A description for the model. */
  readonly description?: string | undefined;
  /** The MIME type of the contents: `text/plain`, `image/png`, … */
  readonly mimeType?: string | undefined;
  /** Bytes, when known. Not of a template. */
  readonly size?: number | undefined;
  /** The audience, the importance, and the time of the last change. */
  readonly annotations?: Annotations | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /** The resource's `_meta`. */
  readonly meta?: MetaObject | undefined;
  /**
   * Scopes that the caller's access token needs, all of them: a caller without them neither sees it in a list nor may
   * use it. Over HTTP nobody may where the server has no `auth`; in one process and over standard streams nobody is
   * asked. Default: nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[] | undefined;
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean | undefined;
  /** True puts it in the place of what has this URI, if there is something; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean | undefined;
  /** Lifetime and audience of what is read, in caches. Default: what the server's option `cache` says. */
  readonly cache?: CacheHints | undefined;
  /** The variables of a template: they come as text, and what the schema wants otherwise is converted. Default: text. */
  readonly input?: Input | undefined;
  /** The JSON Schema of the variables, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** Suggestions for the variables of a template: functions, or all values that there are. */
  readonly complete?: { readonly [Name in Names]?: Completes<State> | undefined } | undefined;
}

/** Contents of a resource; the URI and the MIME type are the resource's unless they say otherwise. */
export type Contents = {
  readonly uri?: string | undefined;
  readonly mimeType?: string | undefined;
  /** The contents' `_meta`. */
  readonly _meta?: MetaObject | undefined;
} & ({ readonly text: string } | { /** Bytes, or base64 text. */ readonly blob: Uint8Array | string });

/** A resource that is not computed: text, bytes, contents, several of those, or anything that is JSON. */
export type ResourceValue =
  | string
  | Uint8Array
  | number
  | boolean
  | null
  | Contents
  | readonly unknown[]
  | { readonly [member: string]: unknown };

/** Arguments of the function of a resource: the variables of a template, else the URI. */
export type ResourceArguments<Uri extends string, Input> = [Input] extends [Schema]
  ? Arguments<Input>
  : string extends Uri
    ? Record<string, string>
    : Uri extends `${string}{${string}`
      ? Variables<Uri>
      : { readonly uri: string };

/** Reads a resource: returns text, bytes, {@link Contents}, several of those, or anything that is JSON. */
export type ResourceHandler<Args, State = unknown> = (args: Args, ctx: Context<State>) => unknown;

/** The variables of a URI template (RFC 6570), as its text says: but for the first of `{…}` and `{+…}` they may be missing. */
export type Variables<Template extends string> = Flat<Expressions<Template>>;

type Flat<T> = { [Name in keyof T]: T[Name] };
type Expressions<Text extends string> = Text extends `${string}{${infer Inner}}${infer Rest}`
  ? Expression<Inner> & Expressions<Rest>
  : unknown;
type Expression<Inner extends string> = Inner extends `${"?" | "&" | "#" | "." | "/" | ";"}${infer List}`
  ? Partial<Names<List>>
  : Inner extends `+${infer List}`
    ? First<List>
    : First<Inner>;
type First<List extends string> = List extends `${infer Spec},${infer Rest}`
  ? Name<Spec> & Partial<Names<Rest>>
  : Name<List>;
type Names<List extends string> = List extends `${infer First},${infer Rest}` ? Name<First> & Names<Rest> : Name<List>;
type Name<Spec extends string> = Spec extends `${infer Exploded}*`
  ? { readonly [Key in Exploded]: readonly string[] }
  : Spec extends `${infer Prefix}:${string}`
    ? { readonly [Key in Prefix]: string }
    : { readonly [Key in Spec]: string };

export type AnyResourceOptions = ResourceOptions<Schema | undefined, string, AnyState>;

const OPTIONS: Readonly<Record<keyof AnyResourceOptions, true>> = {
  name: true,
  title: true,
  description: true,
  mimeType: true,
  size: true,
  annotations: true,
  icons: true,
  meta: true,
  enabled: true,
  replace: true,
  scopes: true,
  cache: true,
  input: true,
  inputSchema: true,
  complete: true,
};

/** A registered resource or template. */
export class Resource extends Runner {
  constructor(uri: string, options: AnyResourceOptions, body: unknown, home: Home) {
    const call = typeof body === "function" ? (body as AnyFunction) : () => body;
    super(uri, resourceSubject(uri), validated(options.input, call, invalidParams), home);
  }

  protected override answer(key: number, value: unknown): void {
    answerContents(key, value);
  }
}

/** Answers a read with what a function returned. */
export function answerContents(key: number, value: unknown): void {
  if (typeof value === "string") {
    addon.answerText(handle, key, value);
    return;
  }
  const given = value instanceof ReadResourceResult ? value.raw : value;
  if (isWhole(given)) {
    addon.answerResult(handle, key, toJson({ ...given, contents: given.contents.map(encoded) }));
  } else {
    if (given === undefined || given === null) {
      throw new TypeError("nothing was returned: expected text, bytes, contents, or anything that is JSON");
    }
    addon.answerValue(handle, key, toJson(Array.isArray(given) ? several(given) : encoded(given)));
  }
}

/** A list: several contents when all of it is, else JSON. */
function several(items: readonly unknown[]): readonly unknown[] {
  const all = items.every((item) => typeof item === "string" || item instanceof Uint8Array || isContents(item));
  return all ? items.map((item) => (typeof item === "string" ? { text: item } : encoded(item))) : items;
}

function isContents(item: unknown): boolean {
  return typeof item === "object" && item !== null && ("text" in item || "blob" in item);
}

/** Bytes, alone or in contents, as base64. */
function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return { blob: base64(value) };
  const blob = (value as { readonly blob?: unknown } | null | undefined)?.blob;
  return blob instanceof Uint8Array ? { ...(value as object), blob: base64(blob) } : value;
}

const RESULT_KEYS = new Set(["contents", "_meta", "resultType", "ttlMs", "cacheScope"]);

/** A `ReadResourceResult` and nothing else: `{contents: [{text | blob}]}`. */
function isWhole(value: unknown): value is { readonly contents: readonly unknown[] } {
  const { contents } = (value ?? {}) as { readonly contents?: unknown };
  return (
    Array.isArray(contents) &&
    contents.every(isContents) &&
    Object.keys(value as object).every((key) => RESULT_KEYS.has(key))
  );
}

/** True if a URI is a template. */
export function isTemplate(uri: string): boolean {
  return uri.includes("{");
}

/** A resource or a template in messages. */
export function resourceSubject(uri: string): string {
  return `resource ${isTemplate(uri) ? "template " : ""}"${uri}"`;
}

/** The `Resource` or `ResourceTemplate` object of the schema as JSON text. */
export function defineResource(uri: string, options: AnyResourceOptions, body: unknown): string {
  const of = resourceSubject(uri);
  checkNames(of, options, OPTIONS);
  const { title, description, mimeType, size, annotations, icons, meta: _meta } = options;
  const template = isTemplate(uri);
  const strange = template ? (["size"] as const) : (["input", "inputSchema", "complete"] as const);
  const wrong = strange.find((option) => options[option] !== undefined);
  if (wrong) {
    throw new MisuseError(`${of}: the option "${wrong}" is for ${template ? "resources" : "templates"}`);
  }
  checkFinite(`${of}: `, { size, annotations });
  const name = options.name ?? ((typeof body === "function" && body.name) || uri);
  const key = template ? { uriTemplate: uri } : { uri };
  return stringify({ ...key, name, title, description, mimeType, size, annotations, icons, _meta });
}
