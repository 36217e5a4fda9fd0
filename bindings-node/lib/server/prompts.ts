/** Prompts: what users say about them, and what happens when one is asked for. */

import { addon, handle } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import type { AnyPromptOptions } from "../call/context.js";
import { invalidParams, Runner, validated } from "../call/handler.js";
import type { AnyFunction } from "../call/signature.js";
import { checkNames } from "../json/checks.js";
import { stringify, toJson } from "../json/encoding.js";
import { messages } from "../model/messages.js";
import type { GetPromptResult } from "../types.js";

const OPTIONS: Readonly<Record<keyof AnyPromptOptions, true>> = {
  description: true,
  title: true,
  input: true,
  inputSchema: true,
  arguments: true,
  complete: true,
  icons: true,
  meta: true,
  enabled: true,
  replace: true,
  scopes: true,
};

/** A registered prompt. */
export class Prompt extends Runner {
  constructor(name: string, options: AnyPromptOptions, handler: AnyFunction, home: Home) {
    super(name, `prompt "${name}"`, validated(options.input, handler, invalidParams), home);
  }

  protected override answer(key: number, value: unknown): void {
    if (typeof value === "string") addon.answerText(handle, key, value);
    else if (isWhole(value)) addon.answerResult(handle, key, toJson(checked(value)));
    else addon.answerValue(handle, key, toJson(isSaid(value) ? messages(value) : value));
  }
}

/** A prompt that is not registered: nothing is known of it that could be added to the answer. */
export class UnlistedPrompt extends Runner {
  protected override answer(key: number, value: unknown): void {
    const whole = isWhole(value) ? checked(value) : { messages: messages(value) };
    addon.answerResult(handle, key, toJson(whole));
  }
}

function isWhole(value: unknown): value is GetPromptResult {
  return Array.isArray((value as { readonly messages?: unknown } | null | undefined)?.messages);
}

/** True for messages, and what stands for them. The engine says of anything else what it should be. */
function isSaid(value: unknown): boolean {
  if (typeof value !== "object" || value === null || "resultType" in value) return false;
  return Array.isArray(value) || "role" in value || "type" in value;
}

/**
 * A whole result with the messages of the schema.
 *
 * @throws {MisuseError} naming what a message has to have
 */
function checked(whole: GetPromptResult): object {
  return { ...whole, messages: messages(whole.messages) };
}

/** The `Prompt` object of the schema as JSON text. */
export function definePrompt(name: string, options: AnyPromptOptions): string {
  checkNames(`prompt "${name}"`, options, OPTIONS);
  const { title, description, arguments: args, icons, meta: _meta } = options;
  return stringify({ name, title, description, arguments: args, icons, _meta });
}
