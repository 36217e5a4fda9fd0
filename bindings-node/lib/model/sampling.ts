/** Messages that a server has the model of its client write. */

import { PeerMisbehavedError } from "../errors/errors.js";
import type { CreateMessageRequestParams, MetaObject, SamplingMessage, SamplingMessageContentBlock } from "../types.js";
import { user } from "./messages.js";

/** A message for {@link Context.sample}: text is the user's, and what a model wrote goes on as it is. */
export type SampleMessage =
  | string
  | CreateMessageResult
  | SamplingMessage
  | { readonly role: "user" | "assistant"; readonly content: string };

/** Options of the client's model for its answer. */
export type SampleOptions = Omit<CreateMessageRequestParams, "messages" | "task" | "_meta"> & {
  /** The request's `_meta`. */
  readonly meta?: MetaObject | undefined;
};

/**
 * A message that the client's model wrote. The bare object of the schema, which is {@link raw}, has the same name in
 * `tricorn/types`.
 */
export class CreateMessageResult {
  /** The role of its author, `assistant` as a rule. */
  readonly role: "user" | "assistant";
  /** The blocks, one as a rule. */
  readonly content: readonly SamplingMessageContentBlock[];
  /** The model that wrote it. */
  readonly model: string;
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or the provider's own. */
  readonly stopReason: string | undefined;
  /** The result's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
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
    this.meta = (raw["_meta"] as MetaObject | undefined) ?? {};
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
    if (message instanceof CreateMessageResult) return { role: message.role, content: message.raw["content"] };
    const { content } = message;
    return typeof content === "string" ? { ...message, content: { type: "text", text: content } } : message;
  });
  return { messages: whole, ...options, ...(meta && { _meta: meta }) };
}
