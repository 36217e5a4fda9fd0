/** What all functions of the user have in common: how they are run, how they fail. */

import type { AsyncResource } from "node:async_hooks";
import { Context, type RequestContext } from "./context.js";
import { PeerMisbehavedError, RpcError, TimeoutError, ToolError, TricornError, UnsupportedError } from "./errors.js";
import { addon, calls, type Handler, handle } from "./host.js";
import { scopeWithin } from "./passing.js";
import { isForeign } from "./received.js";
import { describe, isStandard, type Schema } from "./schema.js";

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
  /** Hears of what handlers throw that is not for the peer. */
  readonly onError: (error: unknown, name: string, subject: string) => void;
}

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
      const { around, scope: outer } = this.#home;
      const scope = (around && scopeWithin(key)) || outer;
      const value = scope ? scope.runInAsyncScope(this.#call, undefined, args, ctx) : this.#call(args, ctx);
      if (!isThenable(value)) {
        this.answer(key, value);
        return;
      }
      calls.set(key, ctx);
      this.#home.running++;
      value.then(
        (settled) => {
          this.#settled(key);
          try {
            this.answer(key, settled);
          } catch (error) {
            this.fail(key, ctx, error);
          }
        },
        (error: unknown) => {
          this.#settled(key);
          this.fail(key, ctx, error);
        },
      );
    } catch (error) {
      this.fail(key, ctx, error);
    }
  }

  /** What the function gets as its second argument. */
  protected context(key: number): RequestContext {
    return new Context(key, this.#home);
  }

  /** Answers with what the function returned. */
  protected abstract answer(key: number, value: unknown): void;

  #settled(key: number): void {
    calls.delete(key);
    this.#home.running--;
  }

  /** Answers with what the function threw. */
  protected fail(key: number, ctx: RequestContext, error: unknown): void {
    // What another peer said is no more for this one than any other error.
    const hidden = error instanceof TricornError && !this.#proxy && isForeign(error, key);
    if (!hidden && (error instanceof ToolError || isAboutQuestion(error))) {
      addon.answerFailed(handle, key, error.message);
    } else if (!hidden && error instanceof RpcError) {
      const data = error.data === undefined ? undefined : JSON.stringify(error.data);
      addon.answerError(handle, key, error.code, error.message, data);
    } else {
      addon.answerFailed(handle, key, `${this.#subject} failed: ${typeName(error)}`);
      // Giving up after a cancel is what a handler should do: nothing to report.
      if (!ctx.cancelled) this.#home.onError(error, this.#name, this.#subject);
    }
  }
}

/** A function whose value the engine can make an answer of as it is. */
export class Values extends Runner {
  protected override answer(key: number, value: unknown): void {
    addon.answerValue(handle, key, value === undefined ? "null" : toJson(value));
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
 */
export function validated(
  schema: Schema | undefined,
  handler: AnyFunction,
  wrong: (message: string) => Error,
): AnyFunction {
  if (schema === undefined || !isStandard(schema)) return handler;
  const standard = schema["~standard"];
  type Outcome = Awaited<ReturnType<typeof standard.validate>>;
  const checked = (outcome: Outcome, ctx: RequestContext): unknown => {
    if (outcome.issues) throw wrong(describe(outcome.issues, "argument", "arguments"));
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

/** `value` as JSON text. */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return text;
}

/** What became of a question to the peer is no secret: nobody there, no answer, or one that does not fit. */
function isAboutQuestion(error: unknown): error is Error {
  return error instanceof UnsupportedError || error instanceof TimeoutError || error instanceof PeerMisbehavedError;
}

/** What the peer learns of an error that is none of its business. */
export function typeName(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return error.name === "Error" ? error.constructor.name : error.name;
}

/** The numbers of `completions`, and more, as the engine wants them beside a definition. */
export function addOptions(parts: {
  readonly parameters?: string | undefined;
  readonly completions?: Readonly<Record<string, number>> | undefined;
  readonly enabled?: boolean | undefined;
  readonly replace?: boolean | undefined;
}): string {
  const members: string[] = [];
  if (parts.parameters !== undefined) members.push(`"parameters":${parts.parameters}`);
  if (parts.completions !== undefined) members.push(`"completions":${JSON.stringify(parts.completions)}`);
  if (parts.enabled !== undefined) members.push(`"enabled":${parts.enabled}`);
  if (parts.replace !== undefined) members.push(`"replace":${parts.replace}`);
  return members.length > 0 ? `{${members.join()}}` : "";
}
