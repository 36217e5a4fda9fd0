/** Requests on their way through middleware, and what it shares with the functions inside of it. */

import { AsyncResource } from "node:async_hooks";
import { bridge } from "./host.js";

interface Passing {
  values?: Map<unknown, unknown>;
  /** Where it went on: what `AsyncLocalStorage` held there, it holds inside. */
  scope?: AsyncResource;
}

/** By the call of the middleware that a request is in. */
const passing = new Map<number, Passing>();

/** A request has come to middleware. */
export function enter(key: number): void {
  passing.set(key, {});
}

/** It goes on from here. */
export function goOn(key: number): void {
  const found = passing.get(key);
  if (found) found.scope = new AsyncResource("tricorn.next");
}

/** Middleware is done with it. */
export function leave(key: number): void {
  passing.delete(key);
}

/** What is shared by all functions that a request goes through. */
export function valuesOf(key: number): Map<unknown, unknown> {
  const own = passing.get(key);
  if (own?.values) return own.values;
  const through = throughOf(key);
  const values = through === undefined ? new Map<unknown, unknown>() : valuesOf(through);
  if (own) own.values = values;
  return values;
}

/** Where the request went on that call `key` is a part of. */
export function scopeWithin(key: number): AsyncResource | undefined {
  const through = passing.size === 0 ? undefined : throughOf(key);
  return through === undefined ? undefined : passing.get(through)?.scope;
}

/** The call of the innermost middleware around call `key`. */
function throughOf(key: number): number | undefined {
  const text = bridge.context(key);
  return text === null ? undefined : (JSON.parse(text) as { readonly through?: number }).through;
}
