/** Errors that Tricorn throws: one class per kind. */

import type { AuthStep } from "./auth-step.js";

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

/**
 * The code of a resource that is not there.
 *
 * @internal
 */
export const NOT_FOUND = -32002;

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

let enginesCheck: (pages: readonly object[]) => void = () => {};

/**
 * The engine's check of pages, which throws. It is loaded by what needs the classes here.
 *
 * @internal
 */
export function checkPagesWith(check: typeof enginesCheck): void {
  enginesCheck = check;
}

/** The pages as the protocol has them. */
function checkedPages(elicitations: readonly UrlElicitation[]): object {
  const pages = elicitations.map((one) => ({ mode: "url", ...one }));
  enginesCheck(pages);
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
 * A tool failed, and the model is to know why: the message becomes the text of an `isError` result.
 *
 * Any other error thrown by a handler goes to the log of this program; the model learns its type only.
 */
export class ToolError extends Error {
  override get name(): string {
    return "ToolError";
  }
}

/** A value for a message, without what may be secret or long in it. */
function plain(value: unknown): string {
  if (typeof value === "string" || typeof value === "function") return `a ${typeof value}`;
  if (value === null || typeof value !== "object") return String(value);
  return "an object";
}

/** The most characters of a text that are shown. */
const SHOWN = 8192;

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about them
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** A text that may be a peer's as a terminal or a log can show it: no control characters, and not for ever. */
function printable(text: string): string {
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}… (${text.length} characters)` : text;
  return shown.replace(CONTROL, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
