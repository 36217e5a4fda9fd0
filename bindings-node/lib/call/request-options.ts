/** A request on its way to the peer, whichever side sends it. */

import { checkSignal } from "../bridge/abort.js";
import { wait } from "../bridge/host.js";
import { TricornError } from "../errors/errors.js";
import { checkNames } from "../json/checks.js";
import { checkObject, paramsJson } from "../json/encoding.js";
import { toEngine } from "../json/options.js";
import { type Progress, REQUEST_OPTIONS, type RequestOptions } from "./options.js";

/** The methods whose options have a `_meta`. */
const CALLS = new Set(["tools/call", "resources/read", "prompts/get"]);

/**
 * Refuses options that a request does not have.
 *
 * @throws {MisuseError} naming the option, and the one that was probably meant
 */
export function checkRequest(method: string, options: object): void {
  checkObject(`${method}: options`, options);
  checkSignal(`${method}: `, (options as RequestOptions).signal);
  checkNames(method, options, CALLS.has(method) ? { ...REQUEST_OPTIONS, meta: true } : REQUEST_OPTIONS);
}

/** The moment at which a look at a task is answered, if not at once. */
export interface Looks {
  /** Waits until the task is finished; for its result, however often the way there breaks off. */
  readonly wait?: true | undefined;
  /** At its next change, of those that have this number, beginning with how it is; its questions are answered until the end. */
  readonly follow?: number | undefined;
}

/**
 * Sends a request and waits for its result object.
 *
 * @param what its method
 * @param send gets the operation, the parameters and the options as the engine wants them
 * @param looks of `tasks/get` and `tasks/result`: answered when
 */
export async function requested(
  what: string,
  options: RequestOptions,
  params: Readonly<Record<string, unknown>> | undefined,
  send: (op: number, params: string | undefined, options: string) => void,
  looks: Looks = {},
): Promise<Record<string, unknown>> {
  const { signal, onProgress } = options;
  const engine = engineRequest(options, looks);
  const text = paramsJson(what, params);
  const listener = onProgress && ((_name: string, progress: Progress) => onProgress(progress));
  try {
    return await wait((op) => send(op, text, engine), signal, listener);
  } catch (error) {
    // The error was made where the answer arrived; show where the question was asked.
    if (error instanceof TricornError) Error.captureStackTrace(error);
    throw error;
  }
}

/** The options of one request as the engine takes them; empty are the defaults. */
export function engineRequest(
  { onProgress, timeout, maxTimeout, idempotent, task, cache, anyResult, traceContext }: RequestOptions,
  { wait, follow }: Looks = {},
): string {
  const timed = timeout !== undefined || maxTimeout !== undefined;
  const plain = !timed && !onProgress && !idempotent && !task && !wait && !follow && !anyResult && !traceContext;
  if (plain && cache === undefined) return "";
  return toEngine({
    idempotent,
    cache,
    anyResult: anyResult || undefined,
    traceContext,
    wait,
    follow,
    task: task === true ? {} : task || undefined,
    timeout: timeout === undefined ? undefined : limit(timeout),
    maxTimeout: limit(maxTimeout) ?? undefined,
    progress: onProgress && true,
  });
}

/** A time limit as the engine takes it: null for none, however that was said. */
export function limit(milliseconds: number | null | undefined): number | null {
  return milliseconds === 0 || milliseconds === Number.POSITIVE_INFINITY ? null : (milliseconds ?? null);
}
