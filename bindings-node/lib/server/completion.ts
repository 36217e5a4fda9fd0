/** Suggestions for the arguments of prompts and the variables of resource templates. */

import type { AnyState, Context } from "../call/context.js";
import { type Home, type Runner, Values } from "../call/handler.js";
import { MisuseError } from "../errors/errors.js";
import { shown } from "../json/checks.js";
import type { Whole } from "../model/results.js";
import type { CompleteRequestParams, CompleteResult } from "../types.js";

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

/**
 * Suggests values for one argument.
 *
 * @param value what has been typed so far
 * @param args the other arguments, as far as they are known
 */
export type Completer<State = unknown> = (
  value: string,
  args: Readonly<Record<string, string>>,
  ctx: Context<State>,
) => Completion | Promise<Completion>;

/** A source of suggestions for one argument: a function, or all values that there are. */
export type Completes<State = unknown> = Completer<State> | readonly string[];

/** Suggests values for every argument that has no function of its own. */
export type Fallback<State = unknown> = (
  asked: CompleteRequestParams,
  ctx: Context<State>,
) => Completion | Promise<Completion>;

/** Suggestions that a client gets: at most a hundred values, best first. */
export type Suggestions = CompleteResult["completion"] & Whole;

/**
 * The completion functions by argument, ready to be registered.
 *
 * @param of whose arguments they are: `prompt "greet"`
 */
export function completersOf(
  of: string,
  completers: Readonly<Record<string, Completes<AnyState> | undefined>> | undefined,
  home: Home,
): readonly (readonly [argument: string, completer: Runner])[] {
  const given = Object.entries(completers ?? {});
  return given.flatMap(([argument, complete]) => {
    if (complete === undefined) return [];
    const what = `the completion of "${argument}"`;
    const suggest = suggesting(`${of}: ${what}`, complete);
    const call = ({ argument: asked, context }: CompleteRequestParams, ctx: Context): unknown =>
      suggest(asked.value, context?.arguments ?? {}, ctx);
    return [[argument, new Values(argument, what, call, home)] as const];
  });
}

function suggesting(what: string, complete: Completes<AnyState>): Completer {
  if (typeof complete === "function") return complete;
  if (!Array.isArray(complete) || !complete.every((value) => typeof value === "string")) {
    throw new MisuseError(`${what}: expected a function or a list of strings, got ${shown(complete)}`);
  }
  const values: readonly string[] = complete;
  return (value) => values.filter((one) => one.toLowerCase().startsWith(value.toLowerCase()));
}
