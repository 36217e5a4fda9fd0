/** Middleware around every request: a server's on their way to a handler, a client's on their way out. */

import { ofAnswer, typeName } from "../bridge/errors.js";
import { addon, bridge, handle, register, say, thrownHere, wait } from "../bridge/host.js";
import { withOptions } from "../bridge/options.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError, ToolError } from "../errors/errors.js";
import { own } from "../errors/origin.js";
import { toJson } from "../json/encoding.js";
import { toEngine } from "../json/options.js";
import type { CompleteRequestParams, LoggingLevel, Request, Result } from "../types.js";
import type { AnyState, Context } from "./context.js";
import { meantIn, Runner, type Untold } from "./handler.js";
import { enter, goOn, leave } from "./middleware-scope.js";
import { keyOf, RequestContext } from "./request-context.js";

/** Parameters: what is known of them, and whatever else there is. */
type Params<Known = unknown> = Known & { _meta?: { [key: string]: unknown }; [key: string]: unknown };

/** A request as it comes to middleware: its `method` says what is known of its `params`. */
export type MiddlewareRequest =
  | { method: "tools/call"; params: Params<{ name: string; arguments?: { [key: string]: unknown } }> }
  | { method: "prompts/get"; params: Params<{ name: string; arguments?: { [key: string]: string } }> }
  | { method: "resources/read" | "resources/subscribe" | "resources/unsubscribe"; params: Params<{ uri: string }> }
  | { method: "completion/complete"; params: Params<Pick<CompleteRequestParams, "ref" | "argument" | "context">> }
  | { method: "logging/setLevel"; params: Params<{ level: LoggingLevel }> }
  | { method: "tasks/get" | "tasks/result" | "tasks/cancel"; params: Params<{ taskId: string }> }
  | { method: "tasks/update"; params: Params<{ taskId: string; inputResponses: { [key: string]: unknown } }> }
  | {
      method: "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" | "tasks/list";
      params?: Params<{ cursor?: string }>;
    }
  | { method: "ping" | "server/discover" | "subscriptions/listen"; params?: Params };

/**
 * Lets a request go on, with the parameters that it has now, and returns the result object. It may be called again, to
 * try once more, or not at all. What still runs when the middleware has returned is cancelled.
 *
 * @param options.signal aborting it rejects with its reason and cancels what runs inside
 * @throws what the request is answered with
 */
export type Next<C extends RequestContext = Context> = (
  request: Request,
  context: C,
  options?: { readonly signal?: AbortSignal | undefined },
) => Promise<Result>;

/**
 * Stands around every request: sees it, may change its parameters, decides whether it goes on, and sees the result.
 *
 * ```ts
 * app.middleware(async (request, context, next) => {
 *   context.values.set("began", performance.now());
 *   return next(request, context);
 * });
 * ```
 *
 * It returns the result of `next` or another result object of that method. What it throws is the answer: an error to
 * a server's client, as from a handler; the very same error to who sent a client's request.
 */
export type Middleware<C extends RequestContext = Context> = (
  request: MiddlewareRequest,
  context: C,
  next: Next<C>,
) => Result | Promise<Result>;

let inside: (middleware: BuiltinMiddleware) => Builtin;

interface Builtin {
  readonly options: string;
  readonly log: ((record: RequestRecord) => void) | undefined;
}

/** Middleware that the engine has: {@link logging}, {@link timing}, {@link rateLimit}, {@link concurrencyLimit}. */
export class BuiltinMiddleware {
  readonly #inside: Builtin;

  static {
    inside = (middleware) => middleware.#inside;
  }

  /** @internal */
  constructor(options: object, log?: (record: RequestRecord) => void) {
    this.#inside = { options: toEngine(options), log };
  }
}

/** A record of one finished request. */
export interface RequestRecord {
  /** Its method, such as `tools/call`. */
  readonly method: string;
  /** The subject of the request: the tool's or prompt's name, or the resource's URI. */
  readonly name?: string | undefined;
  /** Seconds until its answer. */
  readonly seconds: number;
  /** The error that it was answered with; a tool's own failure is none. */
  readonly error?: string | undefined;
  /** It was cancelled, and not answered. */
  readonly cancelled: boolean;
}

/** A receiver of records: pino and its like, or `console`. */
export interface RecordLogger {
  /** Hears of requests that were answered, or cancelled. */
  info(record: RequestRecord, text: string): void;
  /** Hears of requests that were answered with an error. */
  warn(record: RequestRecord, text: string): void;
}

/**
 * Writes down every request with its time and outcome, when it is finished.
 *
 * @param to a function, or a logger in the shape of pino. Default: a line on stderr
 */
export function logging(to: ((record: RequestRecord) => void) | RecordLogger = toStderr): BuiltinMiddleware {
  if (typeof to === "function") return new BuiltinMiddleware({ kind: "logging" }, to);
  if (typeof (to as RecordLogger | null)?.info !== "function" || typeof to.warn !== "function") {
    throw new MisuseError("logging: expected a function, or a logger with info and warn");
  }
  return new BuiltinMiddleware({ kind: "logging" }, (record) => {
    if (record.error === undefined) to.info(record, line(record));
    else to.warn(record, line(record));
  });
}

function toStderr(record: RequestRecord): void {
  say(`tricorn: ${line(record)}`);
}

function line({ method, name, seconds, error, cancelled }: RequestRecord): string {
  const about = name === undefined ? method : `${method} ${JSON.stringify(name)}`;
  const outcome = error !== undefined ? `failed: ${error}` : cancelled ? "cancelled" : "ok";
  return `${about} ${(seconds * 1000).toFixed(1)} ms ${outcome}`;
}

/** Times of the requests of one method. */
export interface MethodTiming {
  /** Finished requests. */
  readonly count: number;
  /** Requests among them that were answered with an error or cancelled. */
  readonly failed: number;
  /** The time of all of them together, in seconds. */
  readonly seconds: number;
  /** The longest one, in seconds. */
  readonly longest: number;
}

/** Adds up how long the requests of each method take: the member `timing` of `metrics()`. */
export function timing(): BuiltinMiddleware {
  return new BuiltinMiddleware({ kind: "timing" });
}

/**
 * Answers with an error (-32603, before 2026-07-28 -32000; `data.retryAfter` in seconds) what comes too fast.
 *
 * @param perSecond requests each second, such as 0.5
 * @param options.burst as many at once. Default: those of one second, at least 1
 * @param options.perSession counts each client apart: each legacy HTTP session, else each principal, and over standard
 *   streams and in memory each connection. Requests over HTTP that have neither session nor principal are counted
 *   together. Default false
 */
export function rateLimit(
  perSecond: number,
  options: { readonly burst?: number | undefined; readonly perSession?: boolean | undefined } = {},
): BuiltinMiddleware {
  return new BuiltinMiddleware({ ...options, kind: "rate_limit", perSecond });
}

/**
 * Lets so many requests run at once; others wait their turn.
 *
 * @param options.maxWaiting beyond so many an error (-32603, before 2026-07-28 -32000) answers them. Default 256
 */
export function concurrencyLimit(
  max: number,
  options: { readonly maxWaiting?: number | undefined } = {},
): BuiltinMiddleware {
  return new BuiltinMiddleware({ ...options, kind: "concurrency_limit", max });
}

/** A function of the user around requests. */
class Around<C extends RequestContext> extends Runner {
  constructor(middleware: Middleware<C>, home: Home) {
    const name = middleware.name || "middleware";
    super(name, middleware.name ? `middleware "${name}"` : name, (given, ctx) => around(middleware, given, ctx), home);
  }

  protected override answer(key: number, value: unknown): void {
    const { raw = value } = (value ?? {}) as { readonly raw?: unknown };
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
      throw new TypeError("middleware must return a result object: that of next, or another one");
    }
    addon.answerResult(handle, key, toJson(raw));
  }

  protected override fail(key: number, ctx: RequestContext, thrown: unknown): Untold | undefined {
    const error = meantIn(thrown);
    const text = error instanceof ToolError ? `${error.message}` : ofAnswer(error);
    if (text !== undefined && !ctx.cancelled && ctx.request.method === "tools/call") {
      // For the model, as from the tool itself.
      addon.answerResult(handle, key, toJson({ content: [{ type: "text", text }], isError: true }));
      return undefined;
    }
    return super.fail(key, ctx, thrown);
  }
}

/** The same on the way out: whose request it is gets what it throws. */
class Outward extends Around<RequestContext> {
  protected override context(key: number): RequestContext {
    return new RequestContext(key);
  }

  protected override fail(key: number, _ctx: RequestContext, error: unknown): undefined {
    addon.answerError(handle, key, ...codeAndMessage(error), thrownHere(error));
    return undefined;
  }
}

/** For the engine: who waits gets the very thing that was thrown, which may be anything. */
function codeAndMessage(error: unknown): [code: number, message: string] {
  try {
    const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
    return [Number.isSafeInteger(code) ? (code as number) : -32603, String(message ?? error)];
  } catch {
    return [-32603, typeName(error)];
  }
}

async function around<C extends RequestContext>(
  middleware: Middleware<C>,
  given: { readonly method: string; readonly params?: Request["params"] | null | undefined },
  ctx: C,
): Promise<Result> {
  const key = keyOf(ctx);
  const returned = new AbortController();
  const next: Next<C> = (request, _context, options) => {
    const signals = [returned.signal, ctx.signal];
    if (options?.signal) signals.push(options.signal);
    const start = (op: number): void => {
      if (typeof request !== "object") throw new MisuseError("next: expected the request, and the context");
      const params = request.params && toJson(request.params);
      goOn(key);
      bridge.next(key, op, params, ctx.trace && toJson(ctx.trace));
    };
    const result = wait<Result>(start, AbortSignal.any(signals));
    // Who does not wait for it any more need not hear of it.
    result.then(
      // There is no answer yet: the request comes again.
      (answer) => {
        if (answer.resultType === "input_required") ctx.stopped = true;
      },
      (error: unknown) => own(error, key),
    );
    return result;
  };
  enter(key, ctx);
  try {
    const { method, params } = given;
    return await middleware((params ? { method, params } : { method }) as MiddlewareRequest, ctx, next);
  } finally {
    leave(key);
    returned.abort();
  }
}

/** The methods that a server and a client of the engine have in common here. */
interface Wrapped {
  addMiddleware(handler: number): void;
  addBuiltin(options: string): void;
}

/**
 * Puts middleware around the requests of `engine`.
 *
 * @param outward whether they are sent, and not received
 * @returns what keeps it alive
 */
export function wrap(
  engine: Wrapped,
  middleware: Middleware<AnyState> | BuiltinMiddleware,
  home: Home,
  logs: ((record: RequestRecord) => void)[],
  outward: boolean,
): object[] {
  if (middleware instanceof BuiltinMiddleware) {
    const { options, log } = inside(middleware);
    // Once is enough: everybody who logs hears of each event.
    if (!log || logs.length === 0) withOptions(() => engine.addBuiltin(options));
    if (log) logs.push(log);
    return [];
  }
  if (typeof middleware !== "function") {
    throw new MisuseError("middleware: expected a function, or built-in middleware such as rateLimit(5)");
  }
  const plain = middleware as Middleware<RequestContext>;
  const runner = outward ? new Outward(plain, home) : new Around(plain, home);
  home.around = true;
  engine.addMiddleware(register(runner));
  return [runner];
}
