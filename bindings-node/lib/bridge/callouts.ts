/** Functions of the program that the engine asks for itself: for tokens, for logins, for what a cache has kept. */

import {
  AuthError,
  CancelledError,
  ClosedError,
  MisuseError,
  TimeoutError,
  TransportError,
  TricornError,
} from "../errors/errors.js";
import { toJson } from "../json/encoding.js";
import { typeName } from "./errors.js";
import { addon, type Cancellable, calls, type Handler, handle, type Origin, register } from "./host.js";
import type { Home } from "./scope.js";

/** The second argument of every function of authorization. */
export interface AskedOptions {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** One of them: gets what the engine says, and answers with an object. */
type Asked = (params: never, options: AskedOptions) => object | PromiseLike<object>;

/**
 * Errors of these functions that `onError` hears: all, or neither those that say by themselves why the request fails,
 * nor those that come when nobody waits any more, which the functions were told of.
 */
type Heard = "all" | "unmeant";

/** Runs one of them. */
class Answering implements Handler {
  readonly #call: Asked;
  readonly #name: string;
  readonly #home: Home;
  readonly #heard: Heard;

  constructor(call: Asked, name: string, home: Home, heard: Heard) {
    this.#call = call;
    this.#name = name;
    this.#home = home;
    this.#heard = heard;
  }

  run(params: unknown, key: number, origin: Origin | undefined): void {
    const away = new AbortController();
    const waiting: Cancellable = {
      cancel: (reason) => away.abort(new DOMException(reason ?? "nobody waits for the answer any more", "AbortError")),
    };
    calls.set(key, waiting);
    void this.#answer(params as never, key, away.signal, origin?.scope ?? this.#home.scope).finally(() =>
      calls.delete(key),
    );
  }

  async #answer(params: never, key: number, signal: AbortSignal, scope: Home["scope"]): Promise<void> {
    try {
      const asked = (): object | PromiseLike<object> => this.#call(params, { signal });
      const answer = await (scope ? scope.runInAsyncScope(asked) : asked());
      addon.answerResult(handle, key, toJson(answer));
    } catch (error) {
      // What others say in their errors may be secret, as the command line of a program that was to give a token.
      addon.answerKind(handle, key, ...kindAndMessage(error));
      // Nobody else hears all of it.
      if (this.#heard === "all" || (!(error instanceof AuthError) && !signal.aborted)) {
        this.#home.onError(error, this.#name, `the ${this.#name}`);
      }
    }
  }
}

/** Gives functions of the program numbers. `kept` keeps them: the engine refers to them weakly. */
export class Numbered {
  readonly kept: object[] = [];
  readonly #home: Home;
  readonly #heard: Heard;

  constructor(home: Home, heard: Heard = "unmeant") {
    this.#home = home;
    this.#heard = heard;
  }

  number(name: string, call: Asked): number {
    const handler = new Answering(call, name, this.#home, this.#heard);
    this.kept.push(handler);
    return register(handler);
  }
}

/** Returns what the engine hears of a thrown value, which may be anything. */
function kindAndMessage(error: unknown): [kind: string, message: string] {
  try {
    return [kindOf(error), error instanceof TricornError ? String(error.message) : typeName(error)];
  } catch {
    return ["auth", typeName(error)]; // A proxy, or a property that throws.
  }
}

/** Returns the kind of an error, which tells the engine whether somebody refuses, or nobody can tell. */
function kindOf(error: unknown): string {
  if (error instanceof AuthError) return "auth";
  if (error instanceof MisuseError) return "misuse";
  if (error instanceof CancelledError) return "cancelled";
  // Libraries have errors of their own for a host that is not reached: they say by what they were caused.
  const reasons: unknown[] = [error];
  for (let looked = 0; looked < CAUSES && reasons.length > 0; looked++) {
    const reason = reasons.shift();
    if (reason instanceof TimeoutError || isNamed(reason, "TimeoutError")) return "timeout";
    if (reason instanceof TransportError || reason instanceof ClosedError || isOfSystem(reason)) return "transport";
    if (reason instanceof AggregateError) reasons.push(...reason.errors);
    if (reason instanceof Error) reasons.push(reason.cause);
  }
  return "auth";
}

/** Number of errors examined to find the cause of one. */
const CAUSES = 64;

function isNamed(error: unknown, name: string): boolean {
  return (error as { readonly name?: unknown } | null | undefined)?.name === name;
}

/** True if a socket or a name failed. */
function isOfSystem(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Whatever is below it, there was no answer.
  if (error instanceof TypeError && error.message === "fetch failed") return true;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" && /^(E[A-Z]+$|EAI_|UND_ERR_)/.test(code);
}

/**
 * The text that a function gave.
 *
 * @throws {MisuseError} for anything else. What it is is not said: it may be secret
 */
export function textOf(what: string, given: unknown): string {
  if (typeof given === "string") return given;
  throw new MisuseError(`expected ${what}, got ${given === null ? "null" : typeof given}`);
}

/** Options as the engine takes them, and what keeps the functions alive that are in them. */
export interface WireAuth {
  readonly wire: object | undefined;
  readonly kept: readonly object[];
}
