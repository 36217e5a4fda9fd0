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
import type { Kind } from "../model/definitions.js";
import { CreateMessageResult } from "../model/sampling.js";
import type {
  CreateMessageRequestParams,
  ElicitRequestFormParams,
  ElicitRequestURLParams,
  ElicitResult,
  ListRootsResult,
  LoggingMessageNotificationParams,
  Root,
  CreateMessageResult as WireMessage,
} from "../types.js";

/** A folder or file: a path, a `file://` URL, or one with a name for people. */
export type RootLike = string | URL | Root;

/** Lets a model answer. Text is what the assistant says. */
export type SamplingHandler = (params: CreateMessageRequestParams, ctx: RequestContext) => Sampled | Promise<Sampled>;

/** An answer of a model: text, or a message with more to say of itself. */
export type Sampled =
  | string
  | CreateMessageResult
  | (Partial<Omit<WireMessage, "content">> & { readonly content: WireMessage["content"] | string });

/** Lets the user answer: the values of the form, or what else the user did. Nothing means `decline`. */
export type ElicitationHandler<Params = ElicitRequestFormParams> = (
  params: Params,
  ctx: RequestContext,
) => Answered | Promise<Answered>;

/** An answer of the user: the values of the form accept it; null, undefined and false decline. */
export type Answered =
  | ElicitResult
  | NonNullable<ElicitResult["content"]>
  | ElicitResult["action"]
  | boolean
  | null
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing declines.
  | void;

/** Roots from a function: the roots, or a result that says more. */
export type Rooted = readonly RootLike[] | ListRootsResult;

/** Handlers of a client for its server. What is there is declared; a request for what is not there is refused. */
export interface Answers {
  /**
   * Lets a model answer. With `tools` or `context` the server may send those as well.
   *
   * @deprecated MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider
   */
  readonly sampling?:
    | SamplingHandler
    | { readonly answer: SamplingHandler; readonly tools?: boolean | undefined; readonly context?: boolean | undefined }
    | undefined;
  /** Lets the user fill in forms and, with `url`, visit pages: only after consent, and not fetched in advance. */
  readonly elicitation?:
    | ElicitationHandler
    | {
        readonly form?: ElicitationHandler | undefined;
        readonly url?: ElicitationHandler<ElicitRequestURLParams> | undefined;
      }
    | undefined;
  /**
   * The folders and files that the server may look at. {@link Client.setRoots} changes a list.
   *
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  readonly roots?: readonly RootLike[] | ((ctx: RequestContext) => Rooted | Promise<Rooted>) | undefined;
}

/**
 * Listeners of a client for its server's messages besides answers, in every revision. With any of these the program
 * goes on until the client is closed: {@link Client.unref} says otherwise. {@link Client.listen} is for one place that
 * waits for changes.
 *
 * Servers of 2026-07-28 tell only those who listen: with `onListChanged` or `onNotification` the client does, to all lists. A
 * server that refuses that is warned of (`TricornWarning`).
 */
export interface Listeners {
  /**
   * Hears the server's log, as far as {@link Client.setLogLevel} or a request asked for it.
   *
   * @deprecated MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry
   */
  readonly onLog?: ((message: LoggingMessageNotificationParams) => void) | undefined;
  /** Hears that a resource has changed that was subscribed to, or a part of one. */
  readonly onResourceUpdated?: ((uri: string) => void) | undefined;
  /** Hears that a list has changed; that of templates changes with that of resources. */
  readonly onListChanged?: ((kind: Exclude<Kind, "resource_template">) => void) | undefined;
  /** Hears every notification of the server, those with a listener of their own as well. */
  readonly onNotification?: ((method: string, params: unknown) => void) | undefined;
}

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
