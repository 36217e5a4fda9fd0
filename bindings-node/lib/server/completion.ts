/** Suggestions for the arguments of prompts and the variables of resource templates. */

import type { Home } from "../bridge/scope.js";
import type { AnyState, Completer, Completes, Context } from "../call/context.js";
import { type Runner, Values } from "../call/handler.js";
import { MisuseError } from "../errors/errors.js";
import { shown } from "../json/checks.js";
import type { Completion } from "../model/results.js";
import type { CompleteRequestParams } from "../types.js";

/** Suggests values for every argument that has no function of its own. */
export type Fallback<State = unknown> = (
  asked: CompleteRequestParams,
  ctx: Context<State>,
) => Completion | Promise<Completion>;

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
