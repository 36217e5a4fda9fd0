/** Requests on their way through middleware, and what is around the functions inside of it. */

import { AsyncResource } from "node:async_hooks";
import { bridge } from "../bridge/host.js";
import type { RequestContext } from "./request-context.js";

/** A request in a function of middleware. */
export interface Passing {
  readonly context: RequestContext;
  /** The scope in which it went on: what `AsyncLocalStorage` held there, it holds inside. */
  scope?: AsyncResource;
}

/** By the call of the middleware that a request is in. */
const passing = new Map<number, Passing>();

/** A request has come to middleware. */
export function enter(key: number, context: RequestContext): void {
  passing.set(key, { context });
}

/** It goes on from here. */
export function goOn(key: number): void {
  const found = passing.get(key);
  if (found) found.scope = new AsyncResource("tricorn.next");
}

/** Middleware is done with it. What goes on as a task may still be running. */
export function leave(key: number): void {
  passing.delete(key);
}

/** The innermost middleware around call `key`, which begins. */
export function passingThrough(key: number): Passing | undefined {
  if (passing.size === 0) return undefined;
  const text = bridge.context(key);
  const through = text === null ? undefined : (JSON.parse(text) as { readonly through?: number | undefined }).through;
  return through === undefined ? undefined : passing.get(through);
}
