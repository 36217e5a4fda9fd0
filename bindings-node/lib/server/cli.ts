/** Duties of a program that is a server: its command line, its signals, its end. */

import { addon, isMainThread } from "../bridge/host.js";
import { MisuseError } from "../errors/errors.js";
import type { HttpOptions } from "./options.js";
import { isHeard, POLITE } from "./shutdown.js";

/** Returns what the command line says about HTTP: an address, true for the default one, or false. */
export function askedFor(args: readonly string[]): boolean | string {
  const place = args.findIndex((arg) => arg === "--http" || arg.startsWith("--http="));
  const arg = args[place];
  if (arg === undefined) return false;
  if (arg !== "--http") return arg.slice("--http=".length);
  const next = args[place + 1];
  return next === undefined || next.startsWith("-") ? true : next;
}

/**
 * The address of HTTP in one argument.
 *
 * @param what who is told
 */
export function address(what: string, http: true | number | string | HttpOptions): HttpOptions {
  if (http === true || http === "") return {};
  if (typeof http === "object" && http !== null) return http;
  if (typeof http === "string" && /^unix:.*\//i.test(http)) return { host: http };
  const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(String(http)) ?? [];
  if (port === undefined)
    throw new MisuseError(`${what}: expected a port, "host:port", "unix:PATH" or options, got ${String(http)}`);
  return { ...(host && { host: host.replace(/^\[|\]$/g, "") }), port: Number(port) };
}

/** Milliseconds a handler may go on after a signal has cancelled it. */
const STUBBORN = 500;

/** Milliseconds that the rest of the program has when its server has ended: timers, sockets, what comes after `run`. */
const REST = 1000;

/** The same for a program that hears the signal itself. */
const REST_OF_ITS_OWN = 10_000;

/** Milliseconds in which the event loop hears of a signal, unless something blocks it for good. */
const BLOCKED = 5000;

/** Ends the program, whatever else of it is alive by then. */
function endAfter(patience: number): void {
  setTimeout(() => process.exit(), patience).unref();
}

/** Number of servers that drain: the last one ends the program. */
let draining = 0;

/** Milliseconds in which requests are answered after SIGTERM, unless `drainTimeout` says otherwise. */
export const DRAIN = 5000;

/**
 * The first SIGINT closes the server in order, the first SIGTERM or SIGBREAK drains it before; the next one does what it
 * always does. The program ends with its server then, and with the end of its input.
 */
export function closeOnSignal(
  server: { close(): Promise<void>; drained(): Promise<void> },
  home: { readonly running: number; readonly ending?: Promise<void> | undefined },
  drainTimeout: number,
  streams: boolean,
): { done(ended?: boolean): void } {
  // Signals exist on the main thread only.
  if (!isMainThread()) return { done() {} };
  const signals = ["SIGINT", ...POLITE] as const;
  const polite = Math.min(BLOCKED + drainTimeout, 2 ** 31);
  const done = (ended = false): void => {
    for (const signal of signals) process.off(signal, onSignal);
    if (draining === 0) addon.heardSignal();
    if (ended) endAfter(REST);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    done();
    const rest = isHeard(signal) ? REST_OF_ITS_OWN : REST;
    const close = (): void => {
      void server.close().finally(() => {
        if (draining === 0) endAfter(rest);
      });
      setTimeout(() => {
        // A lifespan that stops is no handler that does not want to end.
        void Promise.resolve(home.ending).then(() => {
          if (home.running > 0 && draining === 0) process.exit();
        });
      }, STUBBORN).unref();
    };
    if (signal === "SIGINT") {
      process.exitCode ??= 130;
      close();
    } else {
      // A request that comes in meanwhile may block the event loop, too. Told anew as long as none does.
      draining++;
      addon.expectEnd(polite);
      const beat = setInterval(() => addon.expectEnd(polite), Math.max(1000, polite / 10)).unref();
      const drained = (): void => {
        clearInterval(beat);
        draining--;
        if (draining === 0) addon.heardSignal();
        close();
      };
      void server.drained().then(drained, drained);
    }
  };
  for (const signal of signals) process.on(signal, onSignal);
  addon.watchSignals(BLOCKED, polite, streams);
  return { done };
}
