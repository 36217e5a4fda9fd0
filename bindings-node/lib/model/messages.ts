/** Messages of a user and a model. */

import type { ContentBlock, SamplingMessageContentBlock, TextContent } from "../types.js";

/** A message, or what stands for one: text and blocks are the user's. */
export type Message =
  | string
  | ContentBlock
  | { readonly role: "user" | "assistant"; readonly content: string | ContentBlock };

/** Makes a message of the user, text or a block: in a prompt, or in a conversation with a model. */
export function user(text: string): { role: "user"; content: TextContent };
export function user<Block extends ContentBlock | SamplingMessageContentBlock>(
  content: Block,
): { role: "user"; content: Block };
export function user(content: string | object): object {
  return said("user", content);
}

/** Makes a message of the model, text or a block: in a prompt, or in a conversation with a model. */
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

/** The message of the schema that something stands for. */
export function message(value: Message): unknown {
  if (typeof value === "string") return user(value);
  if (!("role" in value)) return { role: "user", content: value };
  return said(value.role, value.content);
}
