/** What all functions of the user have in common: how they are run, how they fail. */

import type { AsyncResource } from "node:async_hooks";
import type { CacheHints } from "./cache.js";
import { Context } from "./context.js";
import {
  CancelledError,
  InputRequired,
  MisuseError,
  PeerMisbehavedError,
  RpcError,
  TimeoutError,
  ToolError,
  TricornError,
  UnsupportedError,
} from "./errors.js";
import { addon, bridge, calls, type Handler, handle } from "./host.js";
import { toJson } from "./json.js";
import { toEngine } from "./options.js";
import { passingThrough } from "./passing.js";
import { isForeign } from "./received.js";
import type { RequestContext } from "./request-context.js";
import { describe, isStandard, type Schema } from "./schema.js";
import { stringify } from "./unicode.js";

// biome-ignore lint/suspicious/noExplicitAny: the signatures of the registering methods give functions their types.
export type AnyFunction = (args: any, ctx: any) => unknown;

/** What the handlers of a server or a client share. */
export interface Home {
  /** Where serving or connecting began: what `AsyncLocalStorage` held there, it holds in handlers. */
  scope: AsyncResource | undefined;
  /** Handlers that have not settled yet. */
  running: number;
  /** What the functions share: {@link Context.state}. */
  state?: unknown;
  /** Makes {@link Context.session}. */
  session?: (key: number) => unknown;
  /** Whether an endpoint is mounted somewhere: there nobody here hears why it cannot answer. */
  mounted?: boolean;
  /** What starts or stops that. */
  ending?: Promise<void>;
  /** Whether a function of the user stands around requests. */
  around?: boolean;
  /** The extensions of the protocol that the server offers, by their identifiers. */
  extensions?: Set<string>;
  /** Hears of what handlers throw that is not for the peer. */
  readonly onError: (error: unknown, name: string, subject: string) => void;
}

/** What is for nobody but this program to hear: it may be anything. */
export interface Untold {
  readonly error: unknown;
}

const INTERNAL_ERROR = -32603;

/** A registered function: runs it, and answers with what it returns or throws. */
export abstract class Runner implements Handler {
  readonly #name: string;
  readonly #subject: string;
  readonly #home: Home;
  readonly #call: AnyFunction;
  #proxy = false;

  /** @param subject what fails, for messages: `tool "add"` */
  constructor(name: string, subject: string, call: AnyFunction, home: Home) {
    this.#name = name;
    this.#subject = subject;
    this.#home = home;
    this.#call = call;
  }

  /** Passes on what other peers said, as a proxy does. */
  asProxy(): this {
    this.#proxy = true;
    return this;
  }

  run(args: unknown, key: number): void {
    const ctx = this.context(key);
    try {
      const passing = this.#home.around ? passingThrough(key) : undefined;
      ctx.around = passing?.context;
      const scope = passing?.scope ?? this.#home.scope;
      const value = scope ? scope.runInAsyncScope(this.#call, undefined, args, ctx) : this.#call(args, ctx);
      if (!isThenable(value)) {
        this.#done(key, value);
        return;
      }
      calls.set(key, ctx);
      this.#home.running++;
      value.then(
        (settled) => this.#settled(key, ctx, false, settled),
        (error: unknown) => this.#settled(key, ctx, true, error),
      );
    } catch (error) {
      this.#failed(key, ctx, error);
    }
  }

  /** What the function gets as its second argument. */
  protected context(key: number): RequestContext {
    return new Context(key, this.#home);
  }

  /** Answers with what the function returned. */
  protected abstract answer(key: number, value: unknown): void;

  #done(key: number, value: unknown): void {
    if (value instanceof InputRequired) askFirst(key, value);
    else this.answer(key, value);
  }

  #settled(key: number, ctx: RequestContext, failed: boolean, outcome: unknown): void {
    // The function runs again: what it does once has to be done before.
    if (ctx.atWork?.size && (ctx.stopped || outcome instanceof InputRequired)) {
      void Promise.allSettled(ctx.atWork).then(() => this.#settled(key, ctx, failed, outcome));
      return;
    }
    calls.delete(key);
    this.#home.running--;
    if (failed) {
      this.#failed(key, ctx, outcome);
      return;
    }
    try {
      this.#done(key, outcome);
    } catch (error) {
      this.#failed(key, ctx, error);
    }
  }

  #failed(key: number, ctx: RequestContext, thrown: unknown): void {
    let untold: Untold | undefined;
    try {
      untold = this.fail(key, ctx, thrown);
    } catch (cause) {
      // Anything may be thrown: data that is no JSON, a proxy that lets nobody look at it.
      const message = `${this.#subject} failed: its ${typeName(thrown)} cannot be sent`;
      addon.answerError(handle, key, INTERNAL_ERROR, message);
      untold = { error: new MisuseError(`${message}: ${cause instanceof Error ? cause.message : cause}`, { cause }) };
    }
    if (untold) this.#home.onError(untold.error, this.#name, this.#subject);
  }

  /** Answers with what the function threw. Returns what is not for the peer. */
  protected fail(key: number, ctx: RequestContext, thrown: unknown): Untold | undefined {
    const isByHand = thrown instanceof InputRequired && !ctx.stopped;
    const error = isByHand ? couldNotAsk(key, thrown) : thrown;
    if (isByHand && error === undefined) return undefined;
    // What another peer said is no more for this one than any other error.
    const hidden = error instanceof TricornError && !this.#proxy && isForeign(error, key);
    if (!hidden && (error instanceof ToolError || isAboutQuestion(error))) {
      addon.answerFailed(handle, key, error.message);
    } else if (!hidden && error instanceof RpcError) {
      const data = error.data === undefined ? undefined : toJson(error.data);
      addon.answerError(handle, key, error.code, error.message, data);
    } else {
      const isWanted = addon.answerFailed(handle, key, `${this.#subject} failed: ${typeName(error)}`);
      // Giving up after a cancel, which may not have come here yet, is what a handler should do, and at a question.
      const isOver = ctx.cancelled || (!isWanted && error instanceof CancelledError);
      if (!isOver && !ctx.stopped) return { error };
    }
    return undefined;
  }
}

/** Answers with what the client has to answer first. */
function askFirst(key: number, { questions, state }: InputRequired): void {
  const asked = Object.entries(questions).map(([name, { method, params }]) => [name, { method, params }]);
  bridge.inputRequired(key, toJson({ inputRequests: Object.fromEntries(asked), state }));
}

/** The same. Returns why it could not. */
function couldNotAsk(key: number, input: InputRequired): unknown {
  try {
    return askFirst(key, input);
  } catch (error) {
    return error;
  }
}

/** A function whose value the engine can make an answer of as it is. */
export class Values extends Runner {
  protected override answer(key: number, value: unknown): void {
    addon.answerValue(handle, key, value === undefined ? "null" : toJson(value));
  }
}

/** A function that says whose a request is. */
export class Whose extends Runner {
  protected override answer(key: number, value: unknown): void {
    const principal = value ?? null;
    if (principal !== null && typeof principal !== "string") {
      throw new MisuseError(`principal: expected text, null or undefined, got ${typeof principal}`);
    }
    addon.answerResult(handle, key, stringify({ principal }));
  }
}

/** What the console shows when nobody asked to hear of errors. */
export function logError(error: unknown, _name: string, subject: string): void {
  console.error(`${subject} failed:`, error);
}

/**
 * `handler` behind the checks that only the schema library knows: defaults, transforms, refinements.
 * The engine has checked the JSON Schema.
 *
 * @param wrong makes the error of what does not fit
 * @param part what a member of it is called
 */
export function validated(
  schema: Schema | undefined,
  handler: AnyFunction,
  wrong: (message: string) => Error,
  part = "argument",
): AnyFunction {
  if (schema === undefined || !isStandard(schema)) return handler;
  const standard = schema["~standard"];
  type Outcome = Awaited<ReturnType<typeof standard.validate>>;
  const checked = (outcome: Outcome, ctx: RequestContext): unknown => {
    if (outcome.issues) throw wrong(describe(outcome.issues, part, `${part}s`));
    return handler(outcome.value, ctx);
  };
  return (args, ctx) => {
    const outcome = standard.validate(args);
    return isThenable(outcome) ? outcome.then((later) => checked(later, ctx)) : checked(outcome, ctx);
  };
}

/** What is wrong with the arguments of anything but a tool. */
export function invalidParams(message: string): RpcError {
  return new RpcError(-32602, message);
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === "function";
}

/** What became of a question to the peer is no secret: nobody there, no answer, or one that does not fit. */
function isAboutQuestion(error: unknown): error is Error {
  return error instanceof UnsupportedError || error instanceof TimeoutError || error instanceof PeerMisbehavedError;
}

/** What the peer learns of an error that is none of its business. */
export function typeName(error: unknown): string {
  try {
    if (!(error instanceof Error)) return typeof error;
    const name: unknown = error.name === "Error" ? error.constructor.name : error.name;
    return typeof name === "string" ? name : "error";
  } catch {
    return "error"; // A proxy, or a property that throws.
  }
}

/** The numbers of `completions`, and more, as the engine wants them beside a definition. */
export function addOptions(parts: {
  readonly parameters?: string | undefined;
  readonly completions?: Readonly<Record<string, number>> | undefined;
  readonly enabled?: boolean | undefined;
  readonly replace?: boolean | undefined;
  readonly cache?: CacheHints | undefined;
  readonly scopes?: readonly string[] | undefined;
}): string {
  const members: string[] = [];
  if (parts.parameters !== undefined) members.push(`"parameters":${parts.parameters}`);
  if (parts.completions !== undefined) members.push(`"completions":${stringify(parts.completions)}`);
  if (parts.enabled !== undefined) members.push(`"enabled":${parts.enabled}`);
  if (parts.replace !== undefined) members.push(`"replace":${parts.replace}`);
  if (parts.cache !== undefined) members.push(toEngine({ cache: parts.cache }).slice(1, -1));
  if (parts.scopes !== undefined) members.push(`"scopes":${stringify(parts.scopes)}`);
  return members.length > 0 ? `{${members.join()}}` : "";
}
