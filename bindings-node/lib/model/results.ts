/** Results that a client gets: of a tool, of a resource, of a completion, and pages of lists. */

import { PeerMisbehavedError, ToolError } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import { describe, type Infer, type StandardSchema } from "../json/schema.js";
import type {
  BlobResourceContents,
  CompleteResult,
  ContentBlock,
  MetaObject,
  Prompt,
  Resource,
  ResourceTemplate,
  Task,
  TextResourceContents,
  Tool,
} from "../types.js";

/**
 * The answer of a tool. A tool that failed answers too: look at {@link isError}.
 *
 * The bare object of the schema, which is {@link raw}, has the same name in `tricorn/types`.
 */
export class CallToolResult<T = unknown> {
  /** The blocks for the model; empty when there are none. */
  readonly content: readonly ContentBlock[];
  /** The answer for programs (`structuredContent`), unchecked; undefined when there is none. See {@link to}. */
  readonly structured: T | undefined;
  /** True when the tool failed: {@link text} says why. */
  readonly isError: boolean;
  /** The result's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** The result as it came. */
  readonly raw: Readonly<Record<string, unknown>>;

  /** @internal */
  constructor(raw: Readonly<Record<string, unknown>>) {
    this.raw = raw;
    this.content = (raw["content"] as readonly ContentBlock[] | undefined) ?? [];
    this.structured = raw["structuredContent"] as T | undefined;
    this.isError = raw["isError"] === true;
    this.meta = (raw["_meta"] as MetaObject | undefined) ?? {};
  }

  /** All text blocks, one per line. */
  get text(): string {
    const first = this.content[0];
    if (this.content.length === 1 && first?.type === "text") return first.text;
    return this.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  }

  /**
   * The structured content, or else the text read as JSON or as it is, checked by `schema`, after its defaults and
   * transforms.
   *
   * Legacy revisions have structured objects only: there a server wraps any other value as
   * `{"result": value}`, and this unwraps it.
   *
   * @throws {ToolError} when the tool failed
   * @throws {PeerMisbehavedError} when it does not fit
   */
  async to<S extends StandardSchema>(schema: S): Promise<Infer<S>> {
    if (this.isError) throw new ToolError(this.text);
    const value: unknown = this.structured;
    const { validate } = schema["~standard"];
    if (value === undefined) return fromText(validate as Validate<Infer<S>>, this.text);
    const whole = await validate(value);
    if (!whole.issues) return whole.value as Infer<S>;
    if (isWrapper(value)) {
      const inner = await validate(value.result);
      if (!inner.issues) return inner.value as Infer<S>;
    }
    throw received(new PeerMisbehavedError(`structuredContent: ${describe(whole.issues, "member", "value")}`));
  }
}

type Validate<T> = StandardSchema<unknown, T>["~standard"]["validate"];

/** The value whose JSON a text is, or which is a text in JSON, such as a date: that stands there as it is. */
async function fromText<T>(validate: Validate<T>, text: string): Promise<T> {
  let json: unknown = text;
  try {
    json = JSON.parse(text);
  } catch {
    // It is a text.
  }
  const read = await validate(json);
  if (!read.issues) return read.value;
  const plain = await validate(text);
  if (!plain.issues) return plain.value;
  const why = describe(read.issues, "member", "value");
  throw received(new PeerMisbehavedError(`the result has no structuredContent, and its text: ${why}`));
}

/** The result that something is a part of. Neither is enumerable: copies and comparisons do not see them. */
export interface Whole {
  /** The result's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** The result as it came. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** A part of a result, copied, which knows the whole: there are its own members of these names, if it has any. */
export function whole<Part extends object>(part: Part, raw: Readonly<Record<string, unknown>>): Part & Whole {
  const copy: object = Array.isArray(part) ? [...part] : { ...part };
  const hidden = { enumerable: false, writable: false };
  Object.defineProperty(copy, "meta", { ...hidden, value: raw["_meta"] ?? {} });
  return Object.defineProperty(copy, "raw", { ...hidden, value: raw }) as Part & Whole;
}

function isWrapper(value: unknown): value is { readonly result: unknown } {
  return typeof value === "object" && value !== null && "result" in value && Object.keys(value).length === 1;
}

/**
 * The contents of a resource.
 *
 * The bare object of the schema, which is {@link raw}, has the same name in `tricorn/types`.
 */
export class ReadResourceResult {
  /** The contents, one as a rule: each with its URI, and text or base64. */
  readonly contents: readonly (TextResourceContents | BlobResourceContents)[];
  /** The result's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** The result as it came. */
  readonly raw: Readonly<Record<string, unknown>>;

  /** @internal */
  constructor(raw: Readonly<Record<string, unknown>>) {
    this.raw = raw;
    this.contents = raw["contents"] as readonly (TextResourceContents | BlobResourceContents)[];
    this.meta = (raw["_meta"] as MetaObject | undefined) ?? {};
  }

  /** All contents that are text, one per line; empty when there are none. */
  get text(): string {
    return this.contents.flatMap((one) => ("text" in one ? [one.text] : [])).join("\n");
  }

  /** The bytes of the first contents that are bytes; undefined when there are none. */
  get blob(): Uint8Array | undefined {
    const found = this.contents.find((one) => "blob" in one);
    return found && Buffer.from(found.blob, "base64");
  }

  /** The MIME type of the first contents, when the server says so. */
  get mimeType(): string | undefined {
    return this.contents[0]?.mimeType;
  }
}

/** Suggestions, best first; at most a hundred are sent. The longer forms say how many there are in all. */
export type Completion =
  | readonly string[]
  | CompleteResult
  | {
      readonly values: readonly string[];
      /** The number of all values. Default: as many as `values` has. */
      readonly total?: number | undefined;
      /** True if there are more. Default: when `total` says so. */
      readonly hasMore?: boolean | undefined;
    };

/** Suggestions that a client gets: at most a hundred values, best first. */
export type Suggestions = CompleteResult["completion"] & Whole;

/** One page of `tools/list`. */
export interface ToolPage {
  /** In the server's order. */
  readonly tools: readonly Tool[];
  /** The cursor of the next page; undefined on the last. */
  readonly nextCursor?: string | undefined;
  /** The result's own. Members that are not named here are kept, too. */
  readonly _meta?: MetaObject | undefined;
}

/** One page of `resources/list`. */
export interface ResourcePage {
  /** In the server's order. */
  readonly resources: readonly Resource[];
  /** The cursor of the next page; undefined on the last. */
  readonly nextCursor?: string | undefined;
  /** The result's own. Members that are not named here are kept, too. */
  readonly _meta?: MetaObject | undefined;
}

/** One page of `resources/templates/list`. */
export interface ResourceTemplatePage {
  /** In the server's order. */
  readonly resourceTemplates: readonly ResourceTemplate[];
  /** The cursor of the next page; undefined on the last. */
  readonly nextCursor?: string | undefined;
  /** The result's own. Members that are not named here are kept, too. */
  readonly _meta?: MetaObject | undefined;
}

/** One page of `prompts/list`. */
export interface PromptPage {
  /** In the server's order. */
  readonly prompts: readonly Prompt[];
  /** The cursor of the next page; undefined on the last. */
  readonly nextCursor?: string | undefined;
  /** The result's own. Members that are not named here are kept, too. */
  readonly _meta?: MetaObject | undefined;
}

/** One page of `tasks/list`. */
export interface TaskPage {
  /** In the server's order. */
  readonly tasks: readonly Task[];
  /** The cursor of the next page; undefined on the last. */
  readonly nextCursor?: string | undefined;
  /** The result's own. Members that are not named here are kept, too. */
  readonly _meta?: MetaObject | undefined;
}
