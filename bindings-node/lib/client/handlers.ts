/** Handlers of a client for its server: answers for the model, for the user and for the files. */

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import type * as Addon from "../bridge/addon.js";
import { native } from "../bridge/errors.js";
import { addon, handle, register } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { Runner } from "../call/handler.js";
import { RequestContext } from "../call/request-context.js";
import type { AnyFunction } from "../call/signature.js";
import { MisuseError } from "../errors/errors.js";
import { shown } from "../json/checks.js";
import { warnOptions } from "../json/deprecation.js";
import { stringify, toJson } from "../json/encoding.js";
import { CreateMessageResult } from "../model/sampling.js";
import type { ListRootsResult, LoggingMessageNotificationParams, Root } from "../types.js";
import type { RootLike } from "./answers.js";
import type { Answers, Listeners } from "./options.js";

/** The options that have to be functions. */
export const LISTENERS = ["onLog", "onResourceUpdated", "onListChanged", "onNotification"] as const;

/** Tells the listeners of a notification. */
export function heard(listeners: Listeners, method: string, params: unknown): void {
  try {
    if (method === "notifications/message") listeners.onLog?.(params as LoggingMessageNotificationParams);
    else if (method === "notifications/resources/updated") {
      listeners.onResourceUpdated?.((params as { readonly uri: string }).uri);
    } else {
      const [, list] = /^notifications\/(tool|resource|prompt)s\/list_changed$/.exec(method) ?? [];
      if (list) listeners.onListChanged?.(list as "tool" | "resource" | "prompt");
    }
  } finally {
    listeners.onNotification?.(method, params);
  }
}

/** A function that answers a server's request. */
class Answer extends Runner {
  constructor(method: string, call: AnyFunction, home: Home) {
    super(method, `the answer to "${method}"`, call, home);
  }

  protected override context(key: number): RequestContext {
    return new RequestContext(key);
  }

  protected override answer(key: number, value: unknown): void {
    addon.answerValue(handle, key, toJson((value instanceof CreateMessageResult ? value.raw : value) ?? null));
  }
}

/** Registers what a client does for its server, and returns what keeps that alive. Methods stay methods. */
export function answerWith(client: Addon.Client, answers: Answers, home: Home): object[] {
  warnOptions(answers);
  const { sampling, elicitation, roots } = answers;
  const kept: object[] = [];
  const set = (method: string, capability: object, call: AnyFunction): void => {
    const runner = new Answer(method, call, home);
    native(() => client.setHandler(method, stringify(capability), register(runner)));
    kept.push(runner);
  };
  if (sampling) {
    const whole = typeof sampling === "function" ? { answer: sampling.bind(answers) } : sampling;
    const { tools, context } = whole as {
      readonly tools?: boolean | undefined;
      readonly context?: boolean | undefined;
    };
    if (typeof whole.answer !== "function")
      throw new MisuseError("sampling: expected a function, or an object with answer");
    set("sampling/createMessage", { ...(tools && { tools: {} }), ...(context && { context: {} }) }, (params, ctx) => {
      return whole.answer(params, ctx);
    });
  }
  if (elicitation) {
    const modes = typeof elicitation === "function" ? { form: elicitation.bind(answers) } : elicitation;
    const { form, url } = modes as { readonly [mode: string]: AnyFunction | undefined };
    if (!form && !url) throw new MisuseError("elicitation: expected a function, or an object with form or url");
    // What is not declared does not get here.
    const call: AnyFunction = (params: { readonly mode?: string | undefined }, ctx) =>
      (params.mode === "url" ? url : form)?.call(modes, params, ctx);
    set("elicitation/create", { ...(form && { form: {} }), ...(url && { url: {} }) }, call);
  }
  if (typeof roots === "function") {
    const call = async (_: unknown, ctx: RequestContext): Promise<unknown> => {
      const given: unknown = await roots.call(answers, ctx);
      if (Array.isArray(given)) return given.map(root);
      const { roots: list } = (given ?? {}) as { readonly roots?: unknown };
      if (Array.isArray(list)) return { ...(given as ListRootsResult), roots: list.map(root) };
      const expected = "a list of paths, URLs or roots, or an object with roots";
      throw new MisuseError(`roots: expected the function to return ${expected}, got ${inspect(given, { depth: 0 })}`);
    };
    set("roots/list", { listChanged: true }, call);
  } else if (roots !== undefined) setRoots(client, roots);
  return kept;
}

/** The client has these roots from now on. */
export function setRoots(client: Addon.Client, roots: readonly RootLike[]): void {
  if (!Array.isArray(roots))
    throw new MisuseError(`roots: expected a list of paths, URLs or roots, or a function, got ${shown(roots)}`);
  native(() => client.setRoots(stringify(roots.map(root))));
}

/** A root as the schema has it. */
function root(given: RootLike): Root {
  if (given instanceof URL) return { uri: given.href };
  if (typeof given === "object" && given !== null) return given;
  if (typeof given !== "string") throw new MisuseError(`root ${shown(given)}: expected a path, a URL or a root`);
  return { uri: given.includes("://") ? given : pathToFileURL(resolve(given)).href };
}
