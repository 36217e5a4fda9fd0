/** Prompts: what users say about them, and what happens when one is asked for. */

import { addon, handle } from "../bridge/host.js";
import type { AnyState, Context } from "../call/context.js";
import { type AnyFunction, type Home, invalidParams, Runner, validated } from "../call/handler.js";
import type { InputRequired } from "../errors/errors.js";
import { checkNames } from "../json/checks.js";
import { toJson } from "../json/encoding.js";
import type { JsonSchema, Schema } from "../json/schema.js";
import { stringify } from "../json/unicode.js";
import { said, user } from "../model/content.js";
import type { ContentBlock, GetPromptResult, Icon, MetaObject, PromptArgument } from "../types.js";
import type { Completes } from "./completion.js";
import type { Arguments } from "./tools.js";

/** Options of a prompt, beside its name and its function. All optional. */
export interface PromptOptions<Input extends Schema | undefined = undefined, State = unknown> {
  /** A description of its purpose. */
  readonly description?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** The arguments: they come as text, and what the schema wants otherwise is converted. */
  readonly input?: Input | undefined;
  /** The JSON Schema of the arguments, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** The arguments as clients see them. Default: made of the schema. */
  readonly arguments?: readonly PromptArgument[] | undefined;
  /** Suggestions for the arguments: functions, or all values that there are. */
  readonly complete?: { readonly [Name in keyof Arguments<Input> & string]?: Completes<State> | undefined } | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /** The prompt's `_meta`. */
  readonly meta?: MetaObject | undefined;
  /**
   * Scopes that the caller's access token needs, all of them: a caller without them neither sees it in a list nor may
   * use it. Over HTTP nobody may where the server has no `auth`; in one process and over standard streams nobody is
   * asked. Default: nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[] | undefined;
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean | undefined;
  /** True puts it in the place of the prompt of this name, if there is one; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean | undefined;
}

/** A message, or what stands for one: text and blocks are the user's. */
export type Message =
  | string
  | ContentBlock
  | { readonly role: "user" | "assistant"; readonly content: string | ContentBlock };

/** A prompt's return value: text, one or more messages, a whole result, or what has to be asked first. */
export type PromptValue = Message | readonly Message[] | GetPromptResult | InputRequired;

/** The function's first argument: without a schema, text. */
export type PromptArguments<Input> = [Input] extends [Schema] ? Arguments<Input> : Record<string, string>;

/** A plain function: typed arguments in, text or messages out, now or later. */
export type PromptHandler<Input, State = unknown> = (
  args: PromptArguments<Input>,
  ctx: Context<State>,
) => PromptValue | Promise<PromptValue>;

export type AnyPromptOptions = PromptOptions<Schema | undefined, AnyState>;

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
    else if (isWhole(value)) addon.answerResult(handle, key, toJson(value));
    else addon.answerValue(handle, key, toJson(value));
  }
}

/** A prompt that is not registered: nothing is known of it that could be added to the answer. */
export class UnlistedPrompt extends Runner {
  protected override answer(key: number, value: unknown): void {
    const whole = isWhole(value) ? value : { messages: (Array.isArray(value) ? value : [value]).map(message) };
    addon.answerResult(handle, key, toJson(whole));
  }
}

function isWhole(value: unknown): value is GetPromptResult {
  return Array.isArray((value as { readonly messages?: unknown } | null | undefined)?.messages);
}

function message(value: Message): unknown {
  if (typeof value === "string") return user(value);
  if (!("role" in value)) return { role: "user", content: value };
  return said(value.role, value.content);
}

/** The `Prompt` object of the schema as JSON text. */
export function definePrompt(name: string, options: AnyPromptOptions): string {
  checkNames(`prompt "${name}"`, options, OPTIONS);
  const { title, description, arguments: args, icons, meta: _meta } = options;
  return stringify({ name, title, description, arguments: args, icons, _meta });
}
