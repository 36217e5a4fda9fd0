/** What handlers can answer besides plain values. */

import type {
  Annotations,
  AudioContent,
  CallToolResult,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  MetaObject,
  ResourceLink,
  SamplingMessageContentBlock,
  TextContent,
} from "./types.js";

/** Options of every content block. */
export interface ContentOptions {
  /** Whom it is for, how much it matters, when it changed. */
  readonly annotations?: Annotations;
  /** The block's `_meta`. */
  readonly meta?: MetaObject;
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

/** Bytes as base64; text is that already. */
export function base64(data: string | Uint8Array): string {
  return typeof data === "string"
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
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

/** What the user says, text or a block: in a prompt, or in a conversation with a model. */
export function user(text: string): { role: "user"; content: TextContent };
export function user<Block extends ContentBlock | SamplingMessageContentBlock>(
  content: Block,
): { role: "user"; content: Block };
export function user(content: string | object): object {
  return said("user", content);
}

/** What the model says, text or a block: in a prompt, or in a conversation with a model. */
export function assistant(text: string): { role: "assistant"; content: TextContent };
export function assistant<Block extends ContentBlock | SamplingMessageContentBlock>(
  content: Block,
): { role: "assistant"; content: Block };
export function assistant(content: string | object): object {
  return said("assistant", content);
}

/** @internal */
export function said(role: string, content: string | object): object {
  return { role, content: typeof content === "string" ? { type: "text", text: content } : content };
}

/** A whole result made by {@link result}: the only kind a tool with a declared output may return. */
export interface CompleteResult extends CallToolResult {
  readonly [RESULT]: true;
}

/** Makes a whole tool result: what the model reads, and besides it what programs read. */
export function result(parts: {
  /** The blocks for the model. Default: none. */
  readonly content?: ContentBlock[];
  /** The value for programs (`structuredContent`), anything that is JSON. Default: none. */
  readonly structured?: unknown;
  /** True for a failure that the content explains. Default false. */
  readonly isError?: boolean;
  /** The result's `_meta`. */
  readonly meta?: MetaObject;
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
  return !typed && looksComplete(value) ? (value as CallToolResult) : undefined;
}

function isBlock(value: unknown): value is ContentBlock {
  return typeof value === "object" && value !== null && BLOCK in value;
}

function isResult(value: object): value is CompleteResult {
  return RESULT in value;
}

/** `{content: [{type, …}]}` and nothing beside it but what results have. */
function looksComplete(value: object): boolean {
  const { content } = value as { content?: unknown };
  return (
    Array.isArray(content) &&
    content.every((item: unknown) => typeof item === "object" && item !== null && "type" in item) &&
    Object.keys(value).every((key) => RESULT_KEYS.has(key))
  );
}
