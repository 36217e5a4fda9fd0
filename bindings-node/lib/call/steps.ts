/** Rounds of a handler: answers to its questions, and what it does once in all of them. */

import { native } from "../bridge/errors.js";
import { bridge } from "../bridge/host.js";
import { MisuseError } from "../errors/errors.js";
import { toJson } from "../json/encoding.js";
import { InputRequired } from "../model/input-required.js";

/** Answers to a round of questions that a handler asked by hand. */
export interface Given {
  readonly inputResponses: { readonly [key: string]: unknown };
  readonly state?: unknown;
}

/** Returns the answers and the state that call `key` was given with its last round. */
export function given(key: number): Given {
  const text = native(() => bridge.input(key));
  if (text === null) throw new Error("the call has finished: read ctx.inputResponses while it runs");
  return JSON.parse(text) as Given;
}

/** The result of a step of call `key` that an earlier round has done; undefined when none has. */
export function stepped<T>(key: number, name: string): { readonly result: T } | undefined {
  const before = native(() => bridge.step(key, name));
  return before === null ? undefined : { result: JSON.parse(before) as T };
}

/** Does a step of call `key`, and keeps its result for the rounds to come. */
export async function workOnce<T>(key: number, name: string, work: () => T | PromiseLike<T>): Promise<T> {
  const result = await work();
  let text: string;
  try {
    // As it is in every language: the next round may be another server's. JSON has no undefined.
    text = toJson(result === undefined ? null : result);
  } catch (error) {
    throw new MisuseError(`step "${name}": its result: ${(error as Error).message}`, { cause: error });
  }
  native(() => bridge.stepped(key, name, text));
  return JSON.parse(text) as T;
}

/**
 * `answer`, for a handler that may have no time to wait for it: a run that ends at a question leaves others behind, and
 * a rejection that nobody hears of would end the program.
 */
export function heardOf<T>(answer: Promise<T>): Promise<T> {
  const same: Promise<T> = new Promise((resolve, reject) => {
    answer.then(resolve, (error: unknown) => {
      if (error instanceof InputRequired) same.catch(() => {});
      reject(error);
    });
  });
  return same;
}
