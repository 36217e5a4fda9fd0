/** Errors of the engine as they cross the bridge: typed errors made of them, and what the engine learns of those here. */

import {
  AuthError,
  CancelledError,
  ClosedError,
  type ErrorKind,
  MisuseError,
  NOT_FOUND,
  PeerMisbehavedError,
  ResourceNotFoundError,
  RpcError,
  TimeoutError,
  TransportError,
  TricornError,
  UnsupportedError,
  type UrlElicitation,
  UrlElicitationRequiredError,
} from "../errors/errors.js";
import { InputRequired } from "../model/input-required.js";

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
  readonly unknown?: UnknownOption | undefined;
}

/** An option that the engine does not know, and those that it does, in snake_case. */
export interface UnknownOption {
  /** The place of the option. */
  readonly what: string;
  readonly name: string;
  readonly known: readonly string[];
}

/** Numbers of questions that were not sent, by their errors. */
const refusals = new WeakMap<object, number>();

/** Options that the engine does not know, by their errors. */
const unknowns = new WeakMap<object, UnknownOption>();

/**
 * The option that an error is about, if that is one which the engine does not know.
 *
 * @internal
 */
export function unknownOf(error: unknown): UnknownOption | undefined {
  return error instanceof MisuseError ? unknowns.get(error) : undefined;
}

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
  const Class = classes[record.kind] as typeof MisuseError | undefined;
  // A kind this version does not know yet is still an error with a message.
  const error = Class ? new Class(record.message) : new TricornError(record.kind, record.message);
  if (record.unknown) unknowns.set(error, record.unknown);
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

/** Returns the part of an error that the peer learns when the rest is none of its business. */
export function typeName(error: unknown): string {
  try {
    if (!(error instanceof Error)) return typeof error;
    const name: unknown = error.name === "Error" ? error.constructor.name : error.name;
    return typeof name === "string" ? name : "error";
  } catch {
    return "error"; // A proxy, or a property that throws.
  }
}
