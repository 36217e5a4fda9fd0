/** This side of the bridge: what the integers mean that the engine deals in. */

import { AsyncResource } from "node:async_hooks";
import { format } from "node:util";
import { checkPagesWith } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import { refuseNamesWith } from "../json/checks.js";
import { stringify } from "../json/encoding.js";
import { snake } from "../json/options.js";
import { checkFormsWith } from "../model/forms.js";
import { onAbort } from "./abort.js";
import type * as Addon from "./addon.js";
import { type ErrorRecord, errorFrom, native } from "./errors.js";
import { loaded } from "./native.js";

/** The compiled module. Loaded once per JavaScript environment. */
export const addon: typeof Addon = loaded();
checkPagesWith((pages) => native(() => addon.checkPages(stringify(pages))));
checkFormsWith((form) => native(() => addon.checkForm(stringify(form))));
refuseNamesWith((what, name, known) => native(() => addon.unknownOption(what, name, known.map(snake))));

/** Something that runs when the engine delivers a call. */
export interface Handler {
  run(params: unknown, key: number, origin: Origin | undefined): void;
}

/** Facts of an operation: what the engine calls for it runs inside of that. */
export interface Origin {
  /** The scope in which it was started: what `AsyncLocalStorage` held there, it holds in what it causes. */
  readonly scope: AsyncResource;
  /** Data of the web framework for a request. */
  readonly host: unknown;
}

/** A call that has not answered yet and can be told that it need not. */
export interface Cancellable {
  cancel(reason: string | null): void;
}

/** A listener of an operation before it settles, for progress or the events that name it. */
export type OpListener = (name: string, params: never) => void;

interface Op {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly listener: OpListener | undefined;
  /** Takes back that its signal ends it. */
  readonly off: (() => void) | undefined;
}

type Delivery =
  | readonly [kind: 0, handler: number, key: number, params: unknown, origin?: number]
  | readonly [kind: 1, key: number, reason: string | null]
  | readonly [kind: 2, op: number, result: never]
  | readonly [kind: 3, op: number, error: ErrorRecord]
  | readonly [kind: 4, source: number, name: string, params: never, origin?: number]
  | readonly [kind: 5, op: number, params: never];

/** The source of events that are about the bridge itself. */
const OWN = 0;

/** After this many batches in a row the rest of the program gets a turn. */
const BATCHES_PER_TURN = 16;

const bridge = new addon.Bridge(wake);
const handle = bridge.handle();
const handlers = new Map<number, WeakRef<Handler>>();
const forgotten = new FinalizationRegistry<number>((id) => {
  handlers.delete(id);
  replaced.delete(id);
});
const calls = new Map<number, Cancellable>();
const ops = new Map<number, Op>();
const sources = new Map<number, Source>();

/** A listener of something, and the scope in which it was added. */
interface Source {
  readonly hear: (name: string, params: never) => void;
  readonly scope: AsyncResource;
}

/** Scopes in which operations were started, until they are over and nothing runs for them any more. */
const origins = new Map<number, Origin>();
/** Operations that are over, or about to be, for which something still runs. */
const lasting = new Set<number>();

let lastHandler = 0;
let lastOp = 0;
let lastSource = 0;
let lastListener = 0;
let holds = 0;
let turns = 0;
// Made here: a timer keeps what is current where it is made, which is not for all times that of the first request.
const keepAlive = setInterval(() => {}, 0x7fffffff).unref();

/** The engine's view of this environment, to be given to the addon's constructors and answers. */
export { bridge, calls, handle };

/** A number by which the engine knows something that a client listens to or follows. */
export function nextNumber(): number {
  return ++lastListener;
}

/** A number under which events will arrive; see {@link listen}. */
export function newSource(): number {
  return ++lastSource;
}

/** Sends the events of `source` to `listener` until called again with undefined. */
export function listen(source: number, listener: ((name: string, params: never) => void) | undefined): void {
  if (listener) sources.set(source, { hear: listener, scope: new AsyncResource("tricorn.source") });
  else sources.delete(source);
}

/**
 * The number under which the engine calls `handler`.
 *
 * The table is weak: whoever registered the handler keeps it, and a server nobody refers to any
 * more goes away with everything its handlers refer to.
 */
export function register(handler: Handler): number {
  const id = ++lastHandler;
  handlers.set(id, new WeakRef(handler));
  forgotten.register(handler, id);
  return id;
}

/** Handlers that nobody else keeps: those of sessions, and of what has to be brought to its end. */
const held = new Map<number, Handler>();

/** As {@link register}, if it was not registered yet, and keeps it until the engine releases it, or {@link letGo}. */
export function keep(handler: Handler, id: number = register(handler)): number {
  held.set(id, handler);
  return id;
}

/** Keeps what was registered as `id` until {@link letGo}. */
export function keepNumbered(id: number): void {
  const handler = handlers.get(id)?.deref();
  if (handler) held.set(id, handler);
}

/** Keeps what was registered as `id`, and the program running, until {@link letEnd}. */
export function keepUp(id: number): void {
  const handler = handlers.get(id)?.deref();
  if (!handler || held.has(id)) return;
  held.set(id, handler);
  hold();
}

/** Takes a {@link keepUp} back. */
export function letEnd(id: number): void {
  if (held.delete(id)) release();
}

/** Handlers that were replaced, which calls may still be on their way to: who keeps them. */
const replaced = new Map<number, WeakRef<Map<number, Handler>>>();

/** Has `keeper` keep a handler that was replaced, until the engine releases it. */
export function keepReplaced(id: number, handler: Handler, keeper: Map<number, Handler>): void {
  keeper.set(id, handler);
  replaced.set(id, new WeakRef(keeper));
}

/** Keeps it no more. */
export function letGo(id: number): void {
  held.delete(id);
  replaced.get(id)?.deref()?.delete(id);
  replaced.delete(id);
}

/**
 * Starts an operation of the engine and waits for its outcome.
 *
 * While it is pending the event loop stays alive. Aborting `signal` gives it up here at once and
 * cancels it at the peer. What it causes runs in the asynchronous context that is current here, and is told of `host`.
 */
export function wait<T>(
  start: (op: number) => void,
  signal?: AbortSignal | undefined,
  listener?: OpListener | undefined,
  host?: unknown,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    signal?.throwIfAborted();
    const op = ++lastOp;
    const off = signal && onAbort(signal, () => abandon(op, signal.reason));
    ops.set(op, { resolve, reject, listener, off });
    origins.set(op, { scope: new AsyncResource("tricorn.call"), host });
    hold();
    try {
      start(op);
    } catch (error) {
      abandon(op, error);
    }
  });
}

/** Gives up operation `op`: rejects it with `error` and cancels it at the peer. */
export function abandon(op: number, error: unknown): void {
  const goesOn = lasting.has(op);
  lasting.add(op);
  const entry = finish(op);
  if (entry) {
    // Something may still run for it, whose end is told.
    if (!bridge.settle(op) && !goesOn) free(op);
    entry.reject(error);
  } else if (!goesOn) {
    lasting.delete(op);
  }
}

function finish(op: number): Op | undefined {
  const entry = ops.get(op);
  if (!entry) return undefined;
  ops.delete(op);
  if (!lasting.has(op)) origins.delete(op);
  release();
  entry.off?.();
  return entry;
}

/** Nothing runs for operation `op` any more. */
function free(op: number): void {
  lasting.delete(op);
  if (!ops.has(op)) origins.delete(op);
}

// The wake-up is weak, so that an idle bridge never keeps a program running. What does is one
// timer that is referenced while an operation is pending, or a client has somebody to tell what it hears.

/** Keeps the event loop alive until {@link release} has been called as often. */
export function hold(): void {
  if (holds++ > 0) return;
  keepAlive.ref();
}

/** Takes a {@link hold} back. */
export function release(): void {
  if (--holds === 0) keepAlive.unref();
}

function wake(): void {
  try {
    takeAll();
  } catch (error) {
    // The engine has not been asked to the end and will not call again.
    setImmediate(wake);
    uncaught(error);
  }
}

function takeAll(): void {
  for (;;) {
    const batch = addon.take(handle);
    if (batch === null) {
      turns = 0;
      return;
    }
    const deliveries = JSON.parse(batch) as Delivery[];
    for (const delivery of deliveries) {
      try {
        deliver(delivery);
      } catch (error) {
        uncaught(error);
      }
    }
    if (++turns >= BATCHES_PER_TURN) {
      turns = 0;
      addon.flush(handle);
      // Not yet asked to the end, so the engine counts on this side coming back by itself.
      setImmediate(wake);
      return;
    }
    if (deliveries.length > 1) {
      // Asking again sends the answers held back: when the handlers that are done already have given theirs.
      queueMicrotask(wake);
      return;
    }
  }
}

// Whatever ends the program, what has been answered is sent.
process.on("exit", () => addon.flush(handle));

function deliver(delivery: Delivery): void {
  switch (delivery[0]) {
    case 0: {
      const handler = handlers.get(delivery[1])?.deref();
      if (handler) handler.run(delivery[3], delivery[2], originOf(delivery[4]));
      // Its server was collected, or it was removed just now.
      else addon.answerGone(handle, delivery[2]);
      return;
    }
    case 1:
      calls.get(delivery[1])?.cancel(delivery[2]);
      return;
    case 2:
      finish(delivery[1])?.resolve(delivery[2]);
      return;
    case 3:
      finish(delivery[1])?.reject(outcome(delivery[2]));
      return;
    case 4: {
      const params = delivery[3] as { readonly op?: number | undefined };
      if (delivery[1] === OWN) {
        if (delivery[2] === "released") letGo((params as { readonly handler: number }).handler);
        else if (delivery[2] === "held") lasting.add(params.op as number);
        else if (delivery[2] === "freed") free(params.op as number);
        return;
      }
      const source = params.op === undefined ? sources.get(delivery[1]) : undefined;
      const listener = params.op === undefined ? source?.hear : ops.get(params.op)?.listener;
      const scope = originOf(params.op ?? delivery[4])?.scope ?? source?.scope;
      if (listener && scope) scope.runInAsyncScope(tell, undefined, listener, delivery[2], delivery[3]);
      else if (listener) listener(delivery[2], delivery[3]);
      else if (delivery[2] === "warning") warn((params as { message?: string }).message ?? "");
      return;
    }
    case 5:
      progress(delivery[1], delivery[2]);
      return;
  }
}

function progress(op: number, params: never): void {
  const listener = ops.get(op)?.listener;
  if (listener) originOf(op)?.scope.runInAsyncScope(tell, undefined, listener, "progress", params);
}

function tell(listener: OpListener, name: string, params: unknown): void {
  listener(name, params as never);
}

/** Returns the origin of the operation that caused something. */
function originOf(op: number | undefined): Origin | undefined {
  return op === undefined ? undefined : origins.get(op);
}

/**
 * Values that middleware of this program threw, until they get to who waits for them: by a name that nobody else can
 * know.
 */
const thrown = new Map<string, unknown>();

/** The most of them; whoever gave up waiting leaves one behind. */
const MAX_THROWN = 256;

/** Keeps what was thrown here. Returns the `data` of the error that stands for it in the engine. */
export function thrownHere(error: unknown): string {
  const name = crypto.randomUUID();
  thrown.set(name, error);
  if (thrown.size > MAX_THROWN) thrown.delete(thrown.keys().next().value as string);
  return JSON.stringify({ thrown: name });
}

/** Returns the error of an operation that failed. */
function outcome(record: ErrorRecord): unknown {
  const { thrown: name } = (record.data ?? {}) as { readonly thrown?: unknown };
  if (typeof name !== "string" || !thrown.has(name)) return received(errorFrom(record));
  const error = thrown.get(name);
  thrown.delete(name);
  return error;
}

/** Makes an error that a function of the user throws an uncaught exception, but never the end of the batch. */
function uncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Shows a warning of the engine the way Node shows its own. */
export function warn(message: string): void {
  process.emitWarning(message, "TricornWarning");
}

/** Says something on stderr, which may be closed, full or unread: that ends nothing, and holds nothing up. */
export function say(...parts: unknown[]): void {
  addon.writeStderr(`${format(...parts)}\n`);
}

/** True outside of workers. Asked when it matters: to load what knows it takes longer than the rest of this file. */
export function isMainThread(): boolean {
  return process.getBuiltinModule("node:worker_threads").isMainThread;
}

/** Gauges of what is between the engine and JavaScript at present. */
export interface BridgeMetrics {
  /** Deliveries that JavaScript has not taken yet. */
  readonly queued: number;
  /** Calls that have not answered. */
  readonly calls: number;
  /** Operations that have not settled. */
  readonly ops: number;
  /** Events dropped, ever, because nobody took them in time. */
  readonly dropped: number;
}

/** Returns gauges of what is between the engine and JavaScript: all zero once everything has settled. */
export function bridgeMetrics(): BridgeMetrics {
  return JSON.parse(bridge.metrics()) as BridgeMetrics;
}
