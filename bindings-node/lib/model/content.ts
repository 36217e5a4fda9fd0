/** Answers of handlers besides plain values. */

import { MisuseError } from "../errors/errors.js";
import { typeOf } from "../json/checks.js";
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

/**
 * Bytes as base64; text is that already.
 *
 * @throws {MisuseError} for anything else
 */
export function base64(data: string | Uint8Array): string {
  if (typeof data === "string") return data;
  if (data instanceof Uint8Array) return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  if ((data as unknown) instanceof ArrayBuffer) return Buffer.from(data as ArrayBuffer).toString("base64");
  throw new MisuseError(`data: expected bytes, or base64 text, got ${typeOf(data)}`);
}

/** A text block. */
export function text(value: string, options?: ContentOptions): TextContent {
  return block({ type: "text", text: value }, options);
}

/** An image block. `data`: bytes, or base64 text. */
export function image(data: string | Uint8Array, mimeType: string, options?: ContentOptions): ImageContent {
  return block({ type: "image", data: base64(data), mimeType }, options);
}

/** An audio block. `data`: bytes, or base64 text. */
export function audio(data: string | Uint8Array, mimeType: string, options?: ContentOptions): AudioContent {
  return block({ type: "audio", data: base64(data), mimeType }, options);
}

/** A resource with its contents. `contents`: text, or bytes. */
export function resource(
  uri: string,
  contents: string | Uint8Array,
  mimeType?: string,
  options?: ContentOptions,
): EmbeddedResource {
  const body = typeof contents === "string" ? { text: contents } : { blob: base64(contents) };
  return block({ type: "resource", resource: { uri, ...(mimeType !== undefined && { mimeType }), ...body } }, options);
}

/** A pointer to a resource the client may read. */
export function resourceLink(link: Omit<ResourceLink, "type" | "_meta">, options?: ContentOptions): ResourceLink {
  return block({ type: "resource_link", ...link }, options);
}

/** A whole result made by {@link result}: the only kind a tool with a declared output may return. */
export interface CompleteResult extends CallToolResult {
  readonly [RESULT]: true;
}

/** Makes a whole tool result: what the model reads, and besides it what programs read. */
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
    content: parts.content ?? [],
    ...(parts.structured !== undefined && { structuredContent: parts.structured }),
    ...(parts.isError !== undefined && { isError: parts.isError }),
    ...(parts.meta && { _meta: parts.meta }),
  };
  return Object.defineProperty(made, RESULT, { value: true }) as CompleteResult;
}

const RESULT_KEYS = new Set(["content", "structuredContent", "isError", "_meta"]);

/**
 * The complete result `value` stands for: blocks, lists of blocks, results. Undefined for a plain value.
 *
 * @param typed whether the tool declared what it returns; then only what this module made counts,
 *   because a plain value of that type may look like anything
 * @internal
 */
export function completeResult(value: object, typed: boolean): CallToolResult | undefined {
  if (isBlock(value)) return { content: [value] };
  if (isResult(value)) return value;
  if (Array.isArray(value)) {
    return value.length > 0 && value.every(isBlock) ? { content: value } : undefined;
  }
  return !typed && looksComplete(value) ? wholeBlocks(value) : undefined;
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
  return (
    Array.isArray(content) &&
    content.every(
      (item: unknown) => typeof item === "object" && item !== null && "type" in item && isKnown(item.type),
    ) &&
    Object.keys(value).every((key) => RESULT_KEYS.has(key))
  );
}

/** The members that each kind of block has to have, all of them text. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["uri", "name"],
  resource: [],
};

function isKnown(type: unknown): boolean {
  return typeof type === "string" && Object.hasOwn(MEMBERS, type);
}

/**
 * A result whose blocks were made by hand, with bytes as base64.
 *
 * @throws {MisuseError} naming what a block has to have
 */
function wholeBlocks(result: CallToolResult): CallToolResult {
  const { content } = result as unknown as { readonly content: readonly Readonly<Record<string, unknown>>[] };
  let blocks: object[] | undefined;
  for (const [index, block] of content.entries()) {
    let checked = block;
    if (block["data"] instanceof Uint8Array) checked = { ...block, data: base64(block["data"]) };
    const wrong = (name: string, expected: string, got: unknown): MisuseError =>
      new MisuseError(`content[${index}].${name}: expected ${expected}, got ${typeOf(got)}`);
    for (const name of MEMBERS[String(block["type"])] ?? []) {
      const value = checked[name];
      if (typeof value !== "string") throw wrong(name, name === "data" ? "bytes, or base64 text" : "text", value);
    }
    if (block["type"] === "resource") {
      const inner = block["resource"] as Readonly<Record<string, unknown>> | null | undefined;
      if (typeof inner !== "object" || inner === null) throw wrong("resource", "an object", inner);
      if (typeof inner["uri"] !== "string") throw wrong("resource.uri", "text", inner["uri"]);
      const { blob, text } = inner;
      if (blob instanceof Uint8Array) checked = { ...block, resource: { ...inner, blob: base64(blob) } };
      else if (typeof blob !== "string" && typeof text !== "string")
        throw wrong("resource.text", "text, or a blob", text);
    }
    if (checked !== block) {
      blocks ??= [...content];
      blocks[index] = checked;
    }
  }
  return blocks ? ({ ...result, content: blocks } as unknown as CallToolResult) : result;
}
