/** A logger as programs know it, whose messages go to the client of a call. */

import { format, inspect } from "node:util";
import { stringify } from "../json/encoding.js";
import type { LoggingLevel } from "../types.js";

/**
 * Logs any JSON value, an error, or text with what its `%s`, `%d`, `%j` stand for, as `console` has it.
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
  /** The same for a part of the program: a name is the message's `logger`, members come along with every message. */
  child(part: string | Readonly<Record<string, unknown>>): Logger;
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

/** Parts of every message that a logger adds. */
interface Part {
  readonly name?: string | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
}

/** Makes a logger of a function that sends. */
export function logger(send: (level: LoggingLevel, data: unknown, name?: string) => void, part: Part = {}): Logger {
  const { name, members } = part;
  const methods = Object.entries(LEVELS).map(([method, level]) => [
    method,
    (...what: readonly unknown[]) => send(level, within(members, message(what)), name),
  ]);
  const child = (more: string | Readonly<Record<string, unknown>>): Logger =>
    logger(send, typeof more === "string" ? { ...part, name: more } : { ...part, members: { ...members, ...more } });
  return { ...(Object.fromEntries(methods) as Omit<Logger, "child">), child };
}

function message(what: readonly unknown[]): unknown {
  const [first, ...rest] = what;
  if (rest.length === 0) return first;
  if (typeof first !== "object" || first === null || Array.isArray(first)) return format(...what);
  return first instanceof Error ? { error: first, msg: format(...rest) } : { ...first, msg: format(...rest) };
}

/** A message with the members that its logger adds. */
function within(members: Part["members"], data: unknown): unknown {
  if (!members) return data;
  if (typeof data !== "object" || data === null || Array.isArray(data)) return { ...members, msg: data };
  return data instanceof Error ? { ...members, error: data } : { ...members, ...data };
}

/** Returns a logged value as JSON text: errors without their stack, and what is no JSON as Node shows it. */
export function loggable(data: unknown): string {
  try {
    return stringify(data, (_key, value: unknown) => (value instanceof Error ? told(value) : value)) ?? "null";
  } catch {
    return stringify(inspect(data));
  }
}

/** An error without its stack, which is nobody else's business. */
function told(error: Error): string {
  return `${error.name}: ${error.message}`;
}
