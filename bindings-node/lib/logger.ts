/** A logger as programs know it, whose messages go to the client of a call. */

import { format } from "node:util";
import type { LoggingLevel } from "./types.js";

/**
 * What is logged: any JSON value, an error, or text with what its `%s`, `%d`, `%j` stand for, as `console` has it.
 * An object before the text, as pino has it, comes along with the text as its member `msg`.
 */
export type Log = (...what: readonly unknown[]) => void;

/** Logs to the client of a call, as far as it wants to hear. The shape of `console` and of pino. */
export interface Logger {
  readonly trace: Log;
  readonly debug: Log;
  readonly info: Log;
  /** As {@link info}. */
  readonly log: Log;
  readonly notice: Log;
  readonly warn: Log;
  readonly error: Log;
  /** As {@link critical}. */
  readonly fatal: Log;
  readonly critical: Log;
  readonly alert: Log;
  readonly emergency: Log;
  /** The same for a part of the program: `name` is the message's `logger`. */
  child(name: string): Logger;
}

const LEVELS: { readonly [Method in Exclude<keyof Logger, "child">]: LoggingLevel } = {
  trace: "debug",
  debug: "debug",
  info: "info",
  log: "info",
  notice: "notice",
  warn: "warning",
  error: "error",
  fatal: "critical",
  critical: "critical",
  alert: "alert",
  emergency: "emergency",
};

/** Makes a logger of a function that sends. */
export function logger(send: (level: LoggingLevel, data: unknown, name?: string) => void, name?: string): Logger {
  const methods = Object.entries(LEVELS).map(([method, level]) => [
    method,
    (...what: readonly unknown[]) => send(level, message(what), name),
  ]);
  return { ...(Object.fromEntries(methods) as Omit<Logger, "child">), child: (child) => logger(send, child) };
}

function message(what: readonly unknown[]): unknown {
  const [first, ...rest] = what;
  if (rest.length === 0) return first instanceof Error ? told(first) : first;
  if (typeof first !== "object" || first === null) return format(...what);
  if (first instanceof Error) return { error: told(first), msg: format(...rest) };
  return Array.isArray(first) ? format(...what) : { ...first, msg: format(...rest) };
}

/** An error without its stack, which is nobody else's business. */
function told(error: Error): string {
  return `${error.name}: ${error.message}`;
}
