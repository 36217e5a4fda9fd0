/** Signals that end waiting. */

import { MisuseError } from "../errors/errors.js";

/** All that wait with a signal share one listener, as more than ten are taken for a leak. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `heard` once when `signal` is aborted. Returns what takes that back. */
export function onAbort(signal: AbortSignal, heard: () => void): () => void {
  let all = waiting.get(signal);
  if (!all) {
    all = new Set();
    waiting.set(signal, all);
  }
  if (all.size === 0) signal.addEventListener("abort", tell, { once: true });
  all.add(heard);
  return () => {
    if (all.delete(heard) && all.size === 0) signal.removeEventListener("abort", tell);
  };
}

function tell(this: AbortSignal): void {
  const all = waiting.get(this);
  for (const heard of [...(all ?? [])]) {
    all?.delete(heard);
    heard();
  }
}

/**
 * Refuses what is no signal.
 *
 * @param what whose it is, and what is before its name
 * @throws {MisuseError} saying what to give instead
 */
export function checkSignal(what: string, signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return;
  const given = signal as Partial<AbortSignal> | null;
  if (typeof given?.aborted === "boolean" && typeof given.addEventListener === "function") return;
  const hint = signal instanceof AbortController ? ", got an AbortController: give its signal" : "";
  throw new MisuseError(`${what}signal: expected an AbortSignal${hint}`);
}
