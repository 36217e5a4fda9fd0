/** Sources of what is not registered: lists and answers that only the program knows. */

import type { Home } from "../bridge/scope.js";
import type { Context } from "../call/context.js";
import { Runner, Values } from "../call/handler.js";
import type { AnyFunction, PromptValue } from "../call/signature.js";
import type { Kind } from "../model/definitions.js";
import type { PromptPage, ResourcePage, ResourceTemplatePage, ToolPage } from "../model/results.js";
import type {
  CallToolRequestParams,
  GetPromptRequestParams,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool as ToolDefinition,
} from "../types.js";
import { UnlistedPrompt } from "./prompts.js";
import { answerContents } from "./resources.js";
import { Tool } from "./tools.js";

/** Per kind: its definitions, a page of them, what is asked for and what answers that. */
interface Kinds {
  readonly tool: [ToolDefinition, ToolPage, CallToolRequestParams, unknown];
  readonly resource: [Resource, ResourcePage, { readonly uri: string }, unknown];
  readonly resource_template: [ResourceTemplate, ResourceTemplatePage, never, never];
  readonly prompt: [Prompt, PromptPage, GetPromptRequestParams, PromptValue];
}

/** Lists and answers for what is not registered. Each is optional. */
export interface Source<K extends Kind, State = unknown> {
  /** Lists: all, or the page at `cursor` with its `nextCursor`. The pages follow those of what is registered. */
  readonly list?:
    | ((cursor: string | undefined, ctx: Context<State>) => Now<readonly Kinds[K][0][] | Kinds[K][1]>)
    | undefined;
  /**
   * Answers for a tool, a resource or a prompt, as its function would: gets the parameters of `tools/call`,
   * `resources/read` or `prompts/get`. What a `Client` returned may be passed on. Templates are read as resources.
   */
  readonly get?:
    | ([Kinds[K][2]] extends [never] ? undefined : (params: Kinds[K][2], ctx: Context<State>) => Now<Kinds[K][3]>)
    | undefined;
}

type Now<T> = T | Promise<T>;

/** Reads resources that are not registered. */
class Reader extends Runner {
  protected override answer(key: number, value: unknown): void {
    answerContents(key, value);
  }
}

/** The two functions of a source, ready to be registered. */
export function sourceOf(
  kind: Kind,
  { list, get }: Source<Kind>,
  home: Home,
): { readonly list: Runner | undefined; readonly get: Runner | undefined } {
  const listed: AnyFunction = ({ cursor }: { readonly cursor?: string | undefined }, ctx: Context) =>
    list?.(cursor, ctx);
  return {
    list: list && new Values(kind, `the list of ${kind}s`, listed, home).asProxy(),
    get: get && getter(kind, get as AnyFunction, home).asProxy(),
  };
}

function getter(kind: Kind, get: AnyFunction, home: Home): Runner {
  if (kind === "tool") return new Tool("source", {}, get, home);
  return kind === "prompt"
    ? new UnlistedPrompt("source", "the prompt", get, home)
    : new Reader("source", "the resource", get, home);
}
