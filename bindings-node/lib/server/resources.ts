/** Resources and resource templates: what users say about them, and what happens when one is read. */

import { addon, handle } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import type { AnyState, ResourceOptions } from "../call/context.js";
import { invalidParams, Runner, validated } from "../call/handler.js";
import type { AnyFunction } from "../call/signature.js";
import { MisuseError } from "../errors/errors.js";
import { checkFinite, checkNames } from "../json/checks.js";
import { stringify, toJson } from "../json/encoding.js";
import type { Schema } from "../json/schema.js";
import { base64, checkedContents, contentsOf } from "../model/content.js";
import { ReadResourceResult } from "../model/results.js";

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
    const contents = given.contents.map((one, index) => contentsOf(one) ?? checkedContents(`contents[${index}]`, one));
    addon.answerResult(handle, key, toJson({ ...given, contents }));
  } else {
    if (given === undefined || given === null) {
      throw new TypeError("nothing was returned: expected text, bytes, contents, or anything that is JSON");
    }
    addon.answerValue(handle, key, toJson(Array.isArray(given) ? several(given) : encoded(given)));
  }
}

/** A list: several contents when all of it is, else JSON. */
function several(items: readonly unknown[]): readonly unknown[] {
  const isOne = (item: unknown): boolean => item instanceof Uint8Array || isContents(item);
  const all = items.every((item) => typeof item === "string" || isOne(item));
  return all ? items.map((item) => (typeof item === "string" ? { text: item } : encoded(item))) : items;
}

function isContents(item: unknown): item is object {
  if (typeof item !== "object" || item === null) return false;
  return "text" in item || "blob" in item || contentsOf(item) !== undefined;
}

/** Bytes, alone or in contents, as base64; a block as the contents that it holds. */
function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return { blob: base64(value) };
  const held = contentsOf(value);
  if (held) return held;
  if (isTaken(value)) return checkedContents("contents", value);
  const blob = (value as { readonly blob?: unknown } | null | undefined)?.blob;
  return blob instanceof Uint8Array ? { ...(value as object), blob: base64(blob) } : value;
}

const CONTENTS_KEYS = new Set(["uri", "mimeType", "text", "blob", "_meta"]);

/** True for what the engine takes for contents, as opposed to a value of the user's own. */
function isTaken(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const { text, blob } = value as { readonly text?: unknown; readonly blob?: unknown };
  const isFull = typeof text === "string" || typeof blob === "string" || blob instanceof Uint8Array;
  return isFull && Object.keys(value).every((key) => CONTENTS_KEYS.has(key));
}

const RESULT_KEYS = new Set(["contents", "_meta", "resultType", "ttlMs", "cacheScope"]);

/** A `ReadResourceResult` and nothing else: `{contents: [{text | blob}]}`. */
function isWhole(value: unknown): value is { readonly contents: readonly object[] } {
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
