/** What a server asks its client for: a form, a page, a message of its model. */

import { user } from "./content.js";
import { PeerMisbehavedError } from "./errors.js";
import { describe, isStandard, type JsonSchema, type Schema, toJsonSchema } from "./schema.js";
import type { Arguments } from "./tool.js";
import type {
  CreateMessageRequestParams,
  ElicitResult,
  MetaObject,
  SamplingMessage,
  SamplingMessageContentBlock,
} from "./types.js";

/** What the user did with a question: only who accepted has answered. */
export type Elicited<T> =
  | { readonly action: "accept"; readonly content: T }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** What a message for {@link Context.sample} may be: text is the user's. */
export type SampleMessage =
  | string
  | SamplingMessage
  | { readonly role: "user" | "assistant"; readonly content: string };

/** How the client's model is to answer. */
export type SampleOptions = Omit<CreateMessageRequestParams, "messages" | "task" | "_meta"> & {
  /** The request's `_meta`. */
  readonly meta?: MetaObject;
};

/** What the client's model wrote. The bare object of the schema, which is {@link raw}, has the same name in `tricorn/types`. */
export class CreateMessageResult {
  /** Who says it, `assistant` as a rule. */
  readonly role: "user" | "assistant";
  /** The blocks, one as a rule. */
  readonly content: readonly SamplingMessageContentBlock[];
  /** The model that wrote it. */
  readonly model: string;
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or the provider's own. */
  readonly stopReason: string | undefined;
  /** The result as it came. */
  readonly raw: Readonly<Record<string, unknown>>;

  /** @internal */
  constructor(raw: Readonly<Record<string, unknown>>) {
    const { role, content, model, stopReason } = raw as {
      readonly [Member in "role" | "content" | "model" | "stopReason"]?: unknown;
    };
    if (typeof content !== "object" || content === null || (role !== "user" && role !== "assistant")) {
      throw new PeerMisbehavedError("sampling/createMessage: the result is no message");
    }
    this.raw = raw;
    this.role = role;
    this.content = (Array.isArray(content) ? content : [content]) as SamplingMessageContentBlock[];
    this.model = String(model ?? "");
    this.stopReason = stopReason as string | undefined;
  }

  /** All text blocks, one per line. */
  get text(): string {
    return this.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
  }
}

/** The params of `sampling/createMessage`. */
export function sampling(
  messages: SampleMessage | readonly SampleMessage[],
  { meta, ...options }: SampleOptions,
): Record<string, unknown> {
  const all = Array.isArray(messages) ? (messages as readonly SampleMessage[]) : [messages as SampleMessage];
  const whole = all.map((message) => {
    if (typeof message === "string") return user(message);
    const { content } = message;
    return typeof content === "string" ? { ...message, content: { type: "text", text: content } } : message;
  });
  return { messages: whole, ...options, ...(meta && { _meta: meta }) };
}

/** The form that a schema describes: an object of text, numbers, booleans and choices. The engine checks that it is. */
export function form(schema: Schema): JsonSchema {
  const json = JSON.parse(toJsonSchema(schema, "input", "elicit")) as JsonSchema;
  const { type, properties, required } = json;
  if (!isStandard(schema) || !isObject(properties)) return json;
  // Libraries say more than a form may: that is checked when the answer is here.
  const plain = Object.entries(properties).map(([name, property]) => [name, bare(property)]);
  return { type, properties: Object.fromEntries(plain), ...(required !== undefined && { required }) };
}

/** Without what libraries add to a format or to the type of a number. */
function bare(property: unknown): unknown {
  if (!isObject(property)) return property;
  const entries = Object.entries(property).filter(
    ([keyword, value]) => keyword !== "pattern" && Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER,
  );
  return Object.fromEntries(entries);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** What the client answered, checked by the schema, after its defaults and transforms. */
export async function elicited<S extends Schema>(schema: S, result: ElicitResult): Promise<Elicited<Arguments<S>>> {
  const { action, content = {} } = result;
  if (action !== "accept") return { action };
  if (!isStandard(schema)) return { action, content: content as Arguments<S> };
  const outcome = await schema["~standard"].validate(content);
  if (!outcome.issues) return { action, content: outcome.value as Arguments<S> };
  throw new PeerMisbehavedError(`elicitation/create: ${describe(outcome.issues, "field", "content")}`);
}
