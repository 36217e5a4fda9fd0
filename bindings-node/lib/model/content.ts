/** Answers of handlers besides plain values. */

import { MisuseError } from "../errors/errors.js";
import { shown, typeOf } from "../json/checks.js";
import { toJson } from "../json/encoding.js";
import type {
  Annotations,
  AudioContent,
  CallToolResult,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  MetaObject,
  ResourceLink,
  TextContent,
} from "../types.js";

/** Options of every content block. */
export interface ContentOptions {
  /** The audience, the importance, and the time of the last change. */
  readonly annotations?: Annotations | undefined;
  /** The block's `_meta`. */
  readonly meta?: MetaObject | undefined;
}

const BLOCK: unique symbol = Symbol("tricorn.content");
const RESULT: unique symbol = Symbol("tricorn.result");

/** A block made here, as opposed to a plain value of the user that happens to look like one. */
function block<T extends ContentBlock>(value: T, options: ContentOptions | undefined): T {
  const made = {
    ...value,
    ...(options?.annotations && { annotations: options.annotations }),
    ...(options?.meta && { _meta: options.meta }),
  };
  // Not enumerable: JSON does not show it.
  return Object.defineProperty(made, BLOCK, { value: true });
}

/** Anything that base64 has not: its letters, those of its form for URLs, and padding at the end. */
const NOT_BASE64 = /[^A-Za-z0-9+/=_\s-]|=[^=\s]/;

/** True for base64 with or without padding: one letter alone beside fours holds no byte. */
function isBase64(text: string): boolean {
  return !NOT_BASE64.test(text) && text.replace(/[\s=]+/g, "").length % 4 !== 1;
}

/**
 * Bytes as base64; text is that already.
 *
 * @param what names it, for the error
 * @throws {MisuseError} for anything else
 */
export function base64(data: string | Uint8Array, what = "data"): string {
  if (typeof data === "string") {
    if (isBase64(data)) return data;
    const fix = data.startsWith("data:") ? 'give what is after "base64,"' : "read the file, and give its bytes";
    throw new MisuseError(`${what}: expected bytes, or base64 text, got ${shown(data)}: ${fix}`);
  }
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  if ((data as unknown) instanceof ArrayBuffer) return Buffer.from(data as ArrayBuffer).toString("base64");
  throw new MisuseError(`${what}: expected bytes, or base64 text, got ${typeOf(data)}`);
}

/**
 * A text block.
 *
 * @throws {MisuseError} for anything but text
 */
export function text(value: string, options?: ContentOptions): TextContent {
  if (typeof value !== "string") {
    throw new MisuseError(`text: expected text, got ${typeOf(value)}: give String(…) of it, or its JSON`);
  }
  return block({ type: "text", text: value }, options);
}

/**
 * An image block. `data`: bytes, or base64 text.
 *
 * @throws {MisuseError} for text that is no base64, such as the path of a file
 */
export function image(data: string | Uint8Array, mimeType: string, options?: ContentOptions): ImageContent {
  const encoded = base64(data, "image: data");
  checkMimeType("image", mimeType, "image/png");
  return block({ type: "image", data: encoded, mimeType }, options);
}

/**
 * An audio block. `data`: bytes, or base64 text.
 *
 * @throws {MisuseError} for text that is no base64, such as the path of a file
 */
export function audio(data: string | Uint8Array, mimeType: string, options?: ContentOptions): AudioContent {
  const encoded = base64(data, "audio: data");
  checkMimeType("audio", mimeType, "audio/wav");
  return block({ type: "audio", data: encoded, mimeType }, options);
}

function checkMimeType(what: string, mimeType: unknown, example: string): void {
  if (typeof mimeType === "string") return;
  throw new MisuseError(`${what}: mimeType: expected text, such as "${example}", got ${typeOf(mimeType)}`);
}

/**
 * A resource with its contents. `contents`: text, or bytes.
 *
 * @throws {MisuseError} for anything else
 */
export function resource(
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string,
  options?: ContentOptions,
): EmbeddedResource {
  const body = typeof contents === "string" ? { text: contents } : { blob: bytes(contents) };
  if (mimeType !== undefined) checkMimeType("resource", mimeType, "text/plain");
  const inner = { uri: uriOf("resource", uri), ...(mimeType !== undefined && { mimeType }), ...body };
  return block({ type: "resource", resource: inner }, options);
}

function bytes(contents: unknown): string {
  if (contents instanceof Uint8Array || contents instanceof ArrayBuffer) return base64(contents as Uint8Array);
  throw new MisuseError(`resource: contents: expected text, or bytes, got ${typeOf(contents)}`);
}

/** The URI as text, of a `URL` as well. */
function uriOf(what: string, uri: unknown): string {
  if (typeof uri === "string") return uri;
  if (uri instanceof URL) return uri.href;
  throw new MisuseError(`${what}: uri: expected text, got ${typeOf(uri)}`);
}

/**
 * A pointer to a resource the client may read.
 *
 * @throws {MisuseError} without a URI or a name
 */
export function resourceLink(link: Omit<ResourceLink, "type" | "_meta">, options?: ContentOptions): ResourceLink {
  const uri = uriOf("resourceLink", (link as Partial<ResourceLink> | null | undefined)?.uri);
  if (typeof link.name !== "string") {
    throw new MisuseError(`resourceLink: name: expected text, got ${typeOf(link.name)}`);
  }
  return block({ type: "resource_link", ...link, uri }, options);
}

/** A whole result made by {@link result}: the only kind a tool with a declared output may return. */
export interface CompleteResult extends CallToolResult {
  readonly [RESULT]: true;
}

/**
 * Makes a whole tool result: what the model reads, and besides it what programs read.
 *
 * @throws {MisuseError} for content that is no list of blocks
 */
export function result(parts: {
  /** The blocks for the model. Default: none. */
  readonly content?: ContentBlock[] | undefined;
  /** The value for programs (`structuredContent`), anything that is JSON. Default: none. */
  readonly structured?: unknown;
  /** True for a failure that the content explains. Default false. */
  readonly isError?: boolean | undefined;
  /** The result's `_meta`. */
  readonly meta?: MetaObject | undefined;
}): CompleteResult {
  const made: CallToolResult = {
    content: listed(parts.content ?? []),
    ...(parts.structured !== undefined && { structuredContent: parts.structured }),
    ...(parts.isError !== undefined && { isError: parts.isError }),
    ...(parts.meta && { _meta: parts.meta }),
  };
  return Object.defineProperty(made, RESULT, { value: true }) as CompleteResult;
}

/** The blocks of a result: text stands for a block of text. */
function listed(content: unknown): ContentBlock[] {
  if (!Array.isArray(content)) {
    throw new MisuseError(`result: content: expected a list of blocks, got ${typeOf(content)}: give [text(…)]`);
  }
  const items = content as unknown[];
  return same(
    items,
    items.map((item, index) => {
      return typeof item === "string" ? text(item) : checkedBlock(`result: content[${index}]`, item);
    }),
  );
}

/** The list that was given, if it is what has been made of it. */
function same(given: unknown[], made: unknown[]): ContentBlock[] {
  return (made.every((one, index) => one === given[index]) ? given : made) as ContentBlock[];
}

const RESULT_KEYS = new Set(["content", "structuredContent", "isError", "_meta"]);

/**
 * The complete result `value` stands for: blocks, lists with a block in them, results. Undefined for a plain value.
 *
 * @param typed whether the tool declared what it returns; then only what this module made counts,
 *   because a plain value of that type may look like anything
 * @throws {MisuseError} naming what a block that was made by hand has to have
 * @internal
 */
export function completeResult(value: object, typed: boolean): CallToolResult | undefined {
  if (isBlock(value)) return { content: [value] };
  if (isResult(value)) return value;
  if (Array.isArray(value)) return value.some(isBlock) ? { content: blocks(value, "") } : undefined;
  if (typed || !looksComplete(value)) return undefined;
  const content = blocks(value.content, "content");
  return content === value.content ? value : { ...value, content };
}

function isBlock(value: unknown): value is ContentBlock {
  return typeof value === "object" && value !== null && BLOCK in value;
}

function isResult(value: object): value is CompleteResult {
  return RESULT in value;
}

/** `{content: [{type, …}]}` and nothing beside it but what results have. */
function looksComplete(value: object): value is CallToolResult {
  const { content } = value as { content?: unknown };
  if (!Array.isArray(content) || !Object.keys(value).every((key) => RESULT_KEYS.has(key))) return false;
  // Text alone is a plain value.
  const isAll = content.every((item) => typeof item === "string" || isKnown(item));
  return content.some(isBlock) || (isAll && (content.length === 0 || content.some(isKnown)));
}

/** The members that each kind of block has to have, all of them text. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["uri", "name"],
  resource: [],
};

/** True for what says that it is a block. */
function isKnown(item: unknown): boolean {
  const { type } = (item ?? {}) as { readonly type?: unknown };
  return typeof type === "string" && Object.hasOwn(MEMBERS, type);
}

/** The blocks that the items of a list stand for: text is a block of text, what is no block a text with its JSON. */
function blocks(items: unknown[], place: string): ContentBlock[] {
  return same(
    items,
    items.map((item, index) => {
      if (typeof item === "string") return text(item);
      if (isKnown(item)) return checkedBlock(`${place}[${index}]`, item);
      return text(toJson(item ?? null));
    }),
  );
}

/**
 * A block that may have been made by hand, with bytes as base64.
 *
 * @param place names it, for the error
 * @throws {MisuseError} naming what a block has to have
 * @internal
 */
export function checkedBlock(place: string, item: unknown): object {
  if (isBlock(item)) return item;
  if (typeof item !== "object" || item === null || typeof (item as { readonly type?: unknown }).type !== "string") {
    throw new MisuseError(`${place}: expected a content block, such as text(…), got ${typeOf(item)}`);
  }
  const block = item as Readonly<Record<string, unknown>>;
  const wrong = (name: string, expected: string, got: unknown): MisuseError =>
    new MisuseError(`${place}.${name}: expected ${expected}, got ${typeOf(got)}`);
  for (const name of MEMBERS[String(block["type"])] ?? []) {
    if (name !== "data" && typeof block[name] !== "string") throw wrong(name, "text", block[name]);
  }
  if (block["type"] === "image" || block["type"] === "audio") {
    const data = base64(block["data"] as Uint8Array, `${place}.data`);
    return data === block["data"] ? block : { ...block, data };
  }
  if (block["type"] !== "resource") return block;
  const inner = block["resource"];
  if (typeof inner !== "object" || inner === null) throw wrong("resource", "an object", inner);
  const { uri } = inner as { readonly uri?: unknown };
  if (typeof uri !== "string") throw wrong("resource.uri", "text", uri);
  const checked = checkedContents(`${place}.resource`, inner);
  return checked === inner ? block : { ...block, resource: checked };
}

/**
 * Contents of a resource, with bytes as base64.
 *
 * @throws {MisuseError} naming what contents have to have
 * @internal
 */
export function checkedContents(place: string, contents: object): object {
  // Some peers write null for what there is not.
  const given = (name: string): unknown => (contents as Readonly<Record<string, unknown>>)[name] ?? undefined;
  const [uri, mimeType, text, blob] = ["uri", "mimeType", "text", "blob"].map(given);
  const wrong = (name: string, expected: string, got: unknown): MisuseError =>
    new MisuseError(`${place}.${name}: expected ${expected}, got ${typeOf(got)}`);
  if (uri !== undefined && typeof uri !== "string" && !(uri instanceof URL)) throw wrong("uri", "text", uri);
  if (mimeType !== undefined && typeof mimeType !== "string") throw wrong("mimeType", "text", mimeType);
  if (text !== undefined && typeof text !== "string") {
    throw new MisuseError(`${place}.text: expected text, got ${typeOf(text)}: give String(…) of it, or its JSON`);
  }
  if (blob === undefined) {
    if (text !== undefined) return contents;
    throw wrong("text", "text, or a blob", text);
  }
  const data = base64(blob as Uint8Array, `${place}.blob`);
  return data === blob ? contents : { ...contents, blob: data };
}

/**
 * The contents of a resource that a block made here holds; undefined for everything else.
 *
 * @internal
 */
export function contentsOf(value: unknown): object | undefined {
  if (!isBlock(value) || value.type === "resource_link") return undefined;
  if (value.type === "resource") return value.resource;
  const body = value.type === "text" ? { text: value.text } : { mimeType: value.mimeType, blob: value.data };
  return { ...body, ...(value._meta && { _meta: value._meta }) };
}
