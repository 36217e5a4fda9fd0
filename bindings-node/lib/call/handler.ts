/** The common base of all functions of the user: how they are run, how they fail. */

import { ofAnswer, refusalOf, typeName } from "../bridge/errors.js";
import { addon, bridge, calls, type Handler, handle, type Origin } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import {
  CancelledError,
  MisuseError,
  PeerMisbehavedError,
  RpcError,
  TimeoutError,
  ToolError,
  TricornError,
  UnsupportedError,
} from "../errors/errors.js";
import { isForeign } from "../errors/origin.js";
import { stringify, toJson } from "../json/encoding.js";
import { describe, isStandard, judge, type Schema, type StandardResult } from "../json/schema.js";
import { InputRequired } from "../model/input-required.js";
import { Context } from "./context.js";
import { passingThrough } from "./middleware-scope.js";
import type { RequestContext } from "./request-context.js";
import type { AnyFunction } from "./signature.js";

/** A value that only this program hears of: it may be anything. */
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

  run(args: unknown, key: number, origin: Origin | undefined): void {
    const ctx = this.context(key, origin?.host);
    const passing = this.#home.around ? passingThrough(key) : undefined;
    ctx.around = passing?.context;
    const scope = passing?.scope ?? origin?.scope ?? this.#home.scope;
    // All of it, so that what hears of errors is inside, too.
    if (scope) scope.runInAsyncScope(this.#run, this, args, key, ctx);
    else this.#run(args, key, ctx);
  }

  #run(args: unknown, key: number, ctx: RequestContext): void {
    try {
      const value = this.#call(args, ctx);
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

  /** Makes the function's second argument. */
  protected context(key: number, host: unknown): RequestContext {
    return new Context(key, this.#home, host);
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
    const error = isByHand ? couldNotAsk(key, thrown) : meantIn(thrown);
    if (isByHand && error === undefined) return undefined;
    // What another peer said is no more for this one than any other error.
    const hidden = error instanceof TricornError && !this.#proxy && isForeign(error, key);
    const answered = ofAnswer(error);
    if (!hidden && error instanceof UnsupportedError) {
      addon.answerUnsupported(handle, key, error.message, refusalOf(error));
    } else if (!hidden && (error instanceof ToolError || isAboutQuestion(error))) {
      addon.answerFailed(handle, key, error.message);
    } else if (!hidden && !this.#proxy && answered !== undefined) {
      addon.answerFailed(handle, key, answered);
    } else if (!hidden && error instanceof RpcError) {
      const data = error.data === undefined ? undefined : toJson(error.data);
      addon.answerError(handle, key, error.code, error.message, data);
    } else {
      const why = error instanceof WrongResult ? WRONG_RESULT : typeName(error);
      const isWanted = addon.answerFailed(handle, key, `${this.#subject} failed: ${why}`);
      // Giving up after a cancel, which may not have come here yet, is what a handler should do, and at a question.
      const isOver = ctx.cancelled || (!isWanted && error instanceof CancelledError);
      if (!isOver && !ctx.stopped) return { error: isByHand ? error : thrown };
      return undefined;
    }
    return !isByHand && error !== thrown && hasOthers(thrown) ? { error: thrown } : undefined;
  }
}

/** Number of errors examined to find the one that is meant for the peer. */
const EXAMINED = 64;

/**
 * The error that is the answer: of several at once, as `Promise.any` throws them, the one that is meant for the peer,
 * which is the first {@link ToolError}, else the only {@link RpcError}.
 */
export function meantIn(thrown: unknown): unknown {
  if (!(thrown instanceof AggregateError)) return thrown;
  const all = alone(thrown);
  const meant = all.filter((one) => one instanceof RpcError);
  return all.find((one) => one instanceof ToolError) ?? (meant.length === 1 ? meant[0] : thrown);
}

/** True if there are failures that are meant for nobody but the server. */
function hasOthers(thrown: unknown): boolean {
  return alone(thrown).some((one) => !(one instanceof ToolError || one instanceof RpcError));
}

/** The errors of several at once, and of those in them. */
function alone(thrown: unknown): unknown[] {
  const waiting: unknown[] = [thrown];
  const found: unknown[] = [];
  for (let n = 0; n < EXAMINED && waiting.length > 0; n++) {
    const one = waiting.shift();
    if (one instanceof AggregateError && Array.isArray(one.errors))
      waiting.unshift(...(one.errors as unknown[]).slice(0, EXAMINED));
    else found.push(one);
  }
  return found;
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

/** A result that does not fit what its tool declares: the client is told no more than that. */
export class WrongResult extends MisuseError {
  constructor(message: string) {
    super(`${WRONG_RESULT}: ${message}`);
  }

  override get name(): string {
    return "MisuseError";
  }
}

const WRONG_RESULT = "the result does not fit the outputSchema";

/**
 * `handler` behind its schema library, which judges alone: types, defaults, transforms, refinements. Plain JSON Schema is
 * the engine's to check.
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
  const checked = (outcome: StandardResult<unknown>, ctx: RequestContext): unknown => {
    if (outcome.issues) throw wrong(describe(outcome.issues, part, `${part}s`));
    return handler(outcome.value, ctx);
  };
  return (args, ctx) => {
    const outcome = judge(schema, args);
    return isThenable(outcome) ? outcome.then((later) => checked(later, ctx)) : checked(outcome, ctx);
  };
}

/** Makes the error for wrong arguments of anything but a tool. */
export function invalidParams(message: string): RpcError {
  return new RpcError(-32602, message);
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === "function";
}

/**
 * True for the outcome of a question to the peer, which is no secret: nobody there, no answer, or one that does not
 * fit.
 */
function isAboutQuestion(error: unknown): error is Error {
  return error instanceof TimeoutError || error instanceof PeerMisbehavedError;
}
