/** A request on its way to the peer, whichever side sends it. */

import { checkSignal } from "../bridge/abort.js";
import { wait } from "../bridge/host.js";
import { TricornError } from "../errors/errors.js";
import { checkNames } from "../json/checks.js";
import { checkObject, paramsJson } from "../json/encoding.js";
import { toEngine } from "../json/options.js";
import type { TraceContext } from "../model/trace.js";
import type { MetaObject } from "../types.js";

/** The progress of a call. */
export interface Progress {
  /** Grows with every report. */
  readonly progress: number;
  /** The value at which progress ends, when the peer knows. */
  readonly total?: number | undefined;
  /** A message of the peer about what it is doing, for people. */
  readonly message?: string | undefined;
}

/** Options of one request. All optional. */
export interface RequestOptions {
  /**
   * Milliseconds without an answer or progress; null or 0: no limit. Default: the client's; of a server that asks its
   * client: no limit, as people take their time.
   */
  readonly timeout?: number | null | undefined;
  /** Milliseconds in all, progress or not; null or 0: no limit. Default: no limit. */
  readonly maxTimeout?: number | null | undefined;
  /**
   * It may be sent again although nobody knows whether it was carried out: after a lost HTTP session, and in revision
   * 2026-07-28 once when the connection breaks off before the answer. Lists, reads and the like always may.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Runs as a task of the peer, whose result is waited for: a tool's call, or what a server asks for by `sample` or
   * `elicit`. `ttl`: for so many milliseconds task and result are wanted; true leaves that to the peer. Experimental.
   */
  readonly task?: true | { readonly ttl?: number | undefined } | undefined;
  /**
   * Use of the answers that a client keeps: `refresh` asks the server and keeps its answer, `bypass` asks
   * and leaves what is kept as it is. Default: `default`.
   */
  readonly cache?: "default" | "refresh" | "bypass" | undefined;
  /**
   * Takes a result of a type (`resultType`) that this library does not know, such as an extension's, as it is. Default
   * false: it is a `PeerMisbehavedError`.
   */
  readonly anyResult?: boolean | undefined;
  /**
   * The trace that it belongs to. Default: what the client's `traceContext` says, and of what a handler asks that of its
   * call. What `_meta` says comes first.
   */
  readonly traceContext?: TraceContext | undefined;
  /** Aborting it rejects with its reason and cancels the request at the peer. */
  readonly signal?: AbortSignal | undefined;
  /** Hears of progress until the answer comes. What it throws is an uncaught exception. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** @internal */
export const REQUEST_OPTIONS: Readonly<Record<keyof RequestOptions, true>> = {
  timeout: true,
  maxTimeout: true,
  idempotent: true,
  task: true,
  cache: true,
  anyResult: true,
  traceContext: true,
  signal: true,
  onProgress: true,
};

/** Options of one request with a `_meta` of the caller's. All optional. */
export interface CallOptions extends RequestOptions {
  /** The request's `_meta`. */
  readonly meta?: MetaObject | undefined;
}

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
