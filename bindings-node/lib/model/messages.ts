/** Messages of a user and a model. */

import { MisuseError } from "../errors/errors.js";
import { shown, typeOf } from "../json/checks.js";
import type { ContentBlock, SamplingMessageContentBlock, TextContent } from "../types.js";
import { checkedBlock } from "./content.js";

/** A message, or what stands for one: text and blocks are the user's. */
export type Message =
  | string
  | ContentBlock
  | { readonly role: "user" | "assistant"; readonly content: string | ContentBlock };

/**
 * Makes a message of the user, text or a block: in a prompt, or in a conversation with a model.
 *
 * @throws {MisuseError} for anything else
 */
export function user(text: string): { role: "user"; content: TextContent };
export function user<Block extends ContentBlock | SamplingMessageContentBlock>(
  content: Block,
): { role: "user"; content: Block };
export function user(content: string | object): object {
  return { role: "user", content: said("user", content) };
}

/**
 * Makes a message of the model, text or a block: in a prompt, or in a conversation with a model.
 *
 * @throws {MisuseError} for anything else
 */
export function assistant(text: string): { role: "assistant"; content: TextContent };
export function assistant<Block extends ContentBlock | SamplingMessageContentBlock>(
  content: Block,
): { role: "assistant"; content: Block };
export function assistant(content: string | object): object {
  return { role: "assistant", content: said("assistant", content) };
}

/** The block that something in a message stands for, or several in a list. `place` names it, for the error. */
function said(place: string, content: unknown): unknown {
  if (typeof content === "string") return { type: "text", text: content };
  if (Array.isArray(content)) return content.map((item, index) => said(`${place}[${index}]`, item));
  if (typeof content === "object" && content !== null) return checkedBlock(place, content);
  throw new MisuseError(`${place}: expected text, or a content block, got ${typeOf(content)}`);
}

/**
 * The message of the schema that something stands for.
 *
 * @param place names it, for the error
 * @throws {MisuseError} for what is no message, naming what it has to have
 */
export function message(value: unknown, place: string): unknown {
  if (typeof value !== "object" || value === null || !("role" in value)) {
    return { role: "user", content: said(place, value) };
  }
  const { role, content } = value as { readonly role: unknown; readonly content?: unknown };
  if (role !== "user" && role !== "assistant") {
    throw new MisuseError(
      `${place}.role: expected "user" or "assistant", got ${shown(role)}: give user(…) or assistant(…)`,
    );
  }
  return { ...value, content: said(`${place}.content`, content) };
}

/** The messages that a value stands for, or several in a list. */
export function messages(value: unknown): unknown[] {
  if (!Array.isArray(value)) return [message(value, "message")];
  return value.map((one, index) => message(one, `messages[${index}]`));
}
