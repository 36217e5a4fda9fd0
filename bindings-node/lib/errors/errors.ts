/** Everything Tricorn throws: one class per kind, one place that makes them. */

import type { AuthStep } from "../client/auth.js";
import { printable, stringify } from "../json/unicode.js";
import type { Question } from "../model/questions.js";

/** Kinds of error, by the side at fault; the same names in every language. */
export type ErrorKind =
  | "rpc"
  | "peer_misbehaved"
  | "unsupported"
  | "timeout"
  | "cancelled"
  | "closed"
  | "transport"
  | "auth"
  | "misuse"
  | "input_required";

/**
 * A client could not connect: what its logins did goes with the error.
 *
 * @internal
 */
export let traceOf: (error: unknown, trace: () => readonly AuthStep[]) => void;

/** The base of all errors of the engine. Catch a subclass, or look at {@link kind}. */
export class TricornError extends Error {
  /** The kind, which tells the side at fault. */
  readonly kind: ErrorKind;
  #authTrace: readonly AuthStep[] = [];

  static {
    traceOf = (error, trace) => {
      if (error instanceof TricornError) error.#authTrace = trace();
    };
  }

  constructor(kind: ErrorKind, message: string, options?: ErrorOptions) {
    // The stack begins with the message, and is what a terminal or a log shows.
    super(typeof message === "string" ? printable(message) : message, options);
    this.kind = kind;
    if (typeof message === "string" && this.message !== message) {
      // Made when it is first asked for.
      void this.stack;
      Object.defineProperty(this, "message", { value: message, writable: true, configurable: true });
    }
  }

  /** Name and message, as a terminal or a log can show it: without a peer's control characters, and not for ever. */
  override toString(): string {
    return `${this.name}: ${printable(this.message)}`;
  }

  override get name(): string {
    return this.constructor.name;
  }

  /**
   * Steps of the logins that kept a client with `auth` from connecting, on the error that says so: what was asked,
   * answered and decided, without secrets. Empty otherwise.
   */
  get authTrace(): readonly AuthStep[] {
    return this.#authTrace;
  }
}

/**
 * A JSON-RPC error. A client throws it when the peer sent one; a handler throws it to send one.
 *
 * A tool that merely fails should throw {@link ToolError} instead: the model reads that text.
 */
export class RpcError extends TricornError {
  /** The JSON-RPC code, such as -32602. */
  readonly code: number;
  /** The error's `data` member, when there is one. */
  readonly data: unknown;

  /**
   * @param code an integer of at most 53 bits
   * @param data anything that is JSON. With other data the request is answered with -32603, and `onError` hears why
   * @throws {MisuseError} naming what is no code, or no message
   */
  constructor(code: number, message: string, data?: unknown) {
    if (!Number.isSafeInteger(code)) {
      const got = typeof code === "string" ? JSON.stringify(code).slice(0, 60) : plain(code);
      throw new MisuseError(`RpcError: code: expected an integer of at most 53 bits, such as -32602, got ${got}`);
    }
    if (typeof message !== "string") {
      throw new MisuseError(`RpcError: message: expected a string, got ${plain(message)}`);
    }
    super("rpc", message);
    this.code = code;
    this.data = data;
  }
}

const NOT_FOUND = -32002;

/**
 * There is no resource at this URI. Thrown by the function of a template or a source, and to who reads it, in every
 * revision. Its code is -32002, in 2026-07-28 -32602.
 */
export class ResourceNotFoundError extends RpcError {
  /** @param data default: the URI */
  constructor(uri: string | URL, message = `there is no resource "${uri}"`, data: unknown = { uri: String(uri) }) {
    // Newer revisions have another code: the engine sees to that.
    super(NOT_FOUND, message, data);
  }
}

/**
 * The error with which a resource was not read, as a {@link ResourceNotFoundError} if it is one: since 2026-07-28 it has
 * the code of wrong parameters, and only its data tell. They may spell the URI otherwise than who asked for it.
 *
 * @internal
 */
export function knownAsNotFound(error: unknown): unknown {
  if (!(error instanceof RpcError) || error.constructor !== RpcError || error.code !== -32602) return error;
  const data = error.data as { readonly uri?: unknown } | null | undefined;
  if (typeof data?.uri !== "string") return error;
  // The very error: who asked for it is known of it.
  return Object.setPrototypeOf(error, ResourceNotFoundError.prototype);
}

/** A page that the user has to visit. */
export interface UrlElicitation {
  /** Names it, for the notification that says it is done. */
  readonly elicitationId: string;
  /** The page. */
  readonly url: string;
  /** The reason, for the user. */
  readonly message: string;
}

let enginesCheck: (pages: string) => void = () => {};

/**
 * The engine's check of pages, which throws. It is loaded by what needs the classes here.
 *
 * @internal
 */
export function checkPagesWith(check: (pages: string) => void): void {
  enginesCheck = check;
}

/** The pages as the protocol has them. */
function checkedPages(elicitations: readonly UrlElicitation[]): object {
  const pages = elicitations.map((one) => ({ mode: "url", ...one }));
  native(() => enginesCheck(stringify(pages)));
  return { elicitations: pages };
}

/**
 * The user has to visit these pages, then the client sends its request again. In revision 2025-11-25 the client gets
 * this error; in 2026-07-28 each page is a question of the call, and the handler runs again, more and more seldom, until
 * it no longer throws. A user who declines ends it (-32603). In other revisions it is -32603 with the message.
 */
export class UrlElicitationRequiredError extends RpcError {
  /** The pages. */
  readonly elicitations: readonly UrlElicitation[];

  /**
   * @param data default: the pages
   * @throws {MisuseError} without `data`: when there is no page, or the URL of one is neither http nor https
   */
  constructor(
    elicitations: readonly UrlElicitation[],
    message = "the user has to visit a page first",
    data: unknown = checkedPages(elicitations),
  ) {
    super(-32042, message, data);
    this.elicitations = elicitations;
  }
}

/** The peer broke the protocol. */
export class PeerMisbehavedError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("peer_misbehaved", message, options);
  }
}

/** The peer, or the negotiated revision, does not offer what was asked for. */
export class UnsupportedError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("unsupported", message, options);
  }
}

/** No answer in time. The peer has been told that nobody waits any more. */
export class TimeoutError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("timeout", message, options);
  }
}

/** Cancelled by the caller or by the peer. */
export class CancelledError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("cancelled", message, options);
  }
}

/** The connection is closed. */
export class ClosedError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("closed", message, options);
  }
}

/** Bytes could not be moved: a process, a socket, an HTTP status. */
export class TransportError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("transport", message, options);
  }
}

/** Authorization is missing or was refused. */
export class AuthError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("auth", message, options);
  }
}

/** This library was called wrongly; the message says which argument and what to do instead. */
export class MisuseError extends TricornError {
  constructor(message: string, options?: ErrorOptions) {
    super("misuse", message, options);
  }
}

/**
 * The run of a handler ends here, because the client has to answer first (specification 2026-07-28, "Multi Round-Trip
 * Requests"): the handler runs again, from its beginning, with the answers. It is no failure, and nobody is told of one.
 *
 * {@link Context.elicit} and its like throw it where revision 2026-07-28 has no answer yet. Let it pass; the client is
 * asked whatever a handler makes of it.
 *
 * The handler of a tool, a prompt or a resource that keeps its rounds itself throws or returns one of its own, in every
 * revision, and finds the answers in {@link Context.inputResponses}:
 *
 * ```ts
 * app.tool("greet", (_, ctx) => {
 *   const { who } = ctx.inputResponses as { who?: ElicitResult };
 *   if (who?.action !== "accept") throw new InputRequired({ who: Question.elicit("Your name?", form) });
 *   return `Hello, ${who.content?.name}!`;
 * });
 * ```
 */
export class InputRequired extends TricornError {
  /** Questions for the client, by the handler's own keys. */
  readonly questions: Readonly<Record<string, Question>>;
  /** State that the handler keeps for its next run; undefined: nothing. */
  readonly state: unknown;

  /**
   * @param questions by keys of the handler's own. Default: none, so that the client comes back with the state alone
   * @param options.state {@link Context.requestState} of the next run: anything that is JSON. In revision 2026-07-28
   *   the client carries it, sealed. Default: nothing. One of both has to be there
   * @throws {MisuseError} for what is no {@link Question}
   */
  constructor(questions: Readonly<Record<string, Question>> = {}, options: { readonly state?: unknown } = {}) {
    super("input_required", "the client has to answer first: the handler runs again");
    const wrong = Object.entries(questions).find(([, question]) => typeof question?.method !== "string");
    if (wrong) throw new MisuseError(`InputRequired: "${wrong[0]}": expected a Question`);
    this.questions = questions;
    this.state = options.state;
  }
}

/**
 * A tool failed, and the model is to know why: the message becomes the text of an `isError` result.
 *
 * Any other error thrown by a handler goes to the log of this program; the model learns its type only.
 */
export class ToolError extends Error {
  override get name(): string {
    return "ToolError";
  }
}

const classes = {
  peer_misbehaved: PeerMisbehavedError,
  unsupported: UnsupportedError,
  timeout: TimeoutError,
  cancelled: CancelledError,
  closed: ClosedError,
  transport: TransportError,
  auth: AuthError,
  misuse: MisuseError,
} as const;

/** An engine error as it crosses: the kind, and for JSON-RPC errors the code and the data. */
export interface ErrorRecord {
  readonly kind: ErrorKind;
  readonly message: string;
  readonly code?: number | undefined;
  readonly data?: unknown;
  /** The number of a question that was not sent. */
  readonly refusal?: number | undefined;
  readonly answer?: boolean | undefined;
}

/** Numbers of questions that were not sent, by their errors. */
const refusals = new WeakMap<object, number>();

/** Errors with which a peer answered a question of a handler. */
const answers = new WeakSet<object>();

/**
 * The text of a call that failed because a peer answered its question with an error, which says nothing of the call
 * itself; undefined for all other errors.
 *
 * @internal
 */
export function ofAnswer(error: unknown): string | undefined {
  if (!(error instanceof RpcError) || !answers.has(error)) return undefined;
  return `the question was answered with error ${error.code}: ${error.message}`;
}

/** Number of causes that are followed. */
const MAX_CAUSES = 16;

/**
 * The number of the refused question that an error is about, or the one that it was made of (`cause`).
 *
 * @internal
 */
export function refusalOf(error: unknown): number | undefined {
  let found: unknown = error;
  for (let n = 0; n < MAX_CAUSES && typeof found === "object" && found !== null; n++) {
    const number = refusals.get(found);
    if (number !== undefined) return number;
    found = (found as { readonly cause?: unknown }).cause;
  }
  return undefined;
}

/** The options of `auth` that the engine calls otherwise. */
const OPTIONS =
  /\b(?:client_(?:id|secret|metadata_url|name|uri)|private_key|signing_algorithm|key_id|application_type|login_timeout|no_browser|redirect_(?:port|uri))\b/g;

/** Renames options in a text of the engine to their names here; what others have said, which is quoted, stays. */
function namedHere(message: string): string {
  return outsideQuotes(message, (part) => part.replace(OPTIONS, camel));
}

/** Limits that the engine names at the end of what it says. */
const LIMIT = /\([a-z]+_[a-z_]+(?:, [a-z_]+)*\)/g;

/** The same of what has run over a limit. */
function limitedHere(message: string): string {
  return outsideQuotes(message, (part) => part.replace(LIMIT, camel));
}

function outsideQuotes(message: string, change: (part: string) => string): string {
  const parts = message.split(/("(?:[^"\\]|\\.)*")/);
  return parts.map((part, at) => (at % 2 ? part : change(part))).join("");
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_underscore, letter: string) => letter.toUpperCase());
}

function rpcErrorFrom({ code = -32603, message, data }: ErrorRecord): RpcError {
  const { elicitations, uri } = (data ?? {}) as {
    readonly elicitations?: readonly UrlElicitation[] | undefined;
    readonly uri?: unknown;
  };
  if (code === NOT_FOUND) return new ResourceNotFoundError(typeof uri === "string" ? uri : "", message, data ?? null);
  return code === -32042 && Array.isArray(elicitations)
    ? new UrlElicitationRequiredError(elicitations, message, data)
    : Object.assign(new RpcError(0, message, data), { code }); // A peer's code may be any number.
}

/** @internal */
export function errorFrom(record: ErrorRecord): TricornError {
  if (record.kind === "rpc") {
    const error = rpcErrorFrom(record);
    if (record.answer === true) answers.add(error);
    return error;
  }
  if (record.kind === "input_required") return new InputRequired();
  if (record.kind === "auth") return new AuthError(namedHere(record.message));
  const Class = classes[record.kind] as typeof MisuseError | undefined;
  // A kind this version does not know yet is still an error with a message.
  const error = Class ? new Class(limitedHere(record.message)) : new TricornError(record.kind, record.message);
  if (record.refusal !== undefined) refusals.set(error, record.refusal);
  return error;
}

/**
 * Runs a call into the addon and makes typed errors of what it throws.
 *
 * @internal
 */
export function native<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && (error as NodeJS.ErrnoException).code === "TRICORN") {
      throw errorFrom(JSON.parse(error.message) as ErrorRecord);
    }
    throw error;
  }
}

/** A value for a message, without what may be secret or long in it. */
function plain(value: unknown): string {
  if (typeof value === "string" || typeof value === "function") return `a ${typeof value}`;
  if (value === null || typeof value !== "object") return String(value);
  return "an object";
}
