/** What a program that is a server has to see to: its command line, its signals, its stdout. */

import { isMainThread } from "node:worker_threads";
import { MisuseError } from "./errors.js";
import { warn } from "./host.js";
import type { HttpOptions } from "./http.js";

/** What the command line says about HTTP: an address, true for the default one, or false. */
export function askedFor(args: readonly string[]): boolean | string {
  const place = args.findIndex((arg) => arg === "--http" || arg.startsWith("--http="));
  const arg = args[place];
  if (arg === undefined) return false;
  if (arg !== "--http") return arg.slice("--http=".length);
  const next = args[place + 1];
  return next === undefined || next.startsWith("-") ? true : next;
}

export function address(http: true | number | string | HttpOptions): HttpOptions {
  if (http === true || http === "") return {};
  if (typeof http === "object") return http;
  const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(String(http)) ?? [];
  if (port === undefined) throw new MisuseError(`run: expected a port or host:port, got "${http}"`);
  return { ...(host && { host: host.replace(/^\[|\]$/g, "") }), port: Number(port) };
}

/** Milliseconds a handler may go on after a signal has cancelled it. */
const STUBBORN = 500;

/** The first SIGINT or SIGTERM closes the server in order, the next one does what it always does. */
export function closeOnSignal(
  server: { close(): Promise<void> },
  home: { readonly running: number; readonly ending?: Promise<void> },
): { done(): void } {
  // Signals exist on the main thread only.
  if (!isMainThread) return { done() {} };
  const signals = ["SIGINT", "SIGTERM"] as const;
  const done = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    done();
    if (signal === "SIGINT") process.exitCode ??= 130;
    void server.close();
    setTimeout(() => {
      // What the lifespan stops is not a handler that does not want to end.
      void Promise.resolve(home.ending).then(() => {
        if (home.running > 0) process.exit();
      });
    }, STUBBORN).unref();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return { done };
}

let guards = 0;
let unguard: (() => void) | undefined;

/**
 * While stdout carries the protocol, what the program prints there goes to stderr, with one warning.
 *
 * The engine sees to the first for everything that writes to the descriptor; this is for the warning.
 * The stream is not touched before somebody asks for it: making it takes time and memory.
 */
export function guardStdout(): () => void {
  if (guards++ === 0 && isMainThread) {
    const original = Object.getOwnPropertyDescriptor(process, "stdout") as PropertyDescriptor;
    const restore = (): void => {
      Object.defineProperty(process, "stdout", original);
    };
    unguard = restore;
    const get = (): NodeJS.WriteStream => {
      restore();
      const { stdout } = process;
      unguard = redirect(stdout);
      return stdout;
    };
    Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get });
  }
  return () => {
    if (--guards === 0) unguard?.();
  };
}

function redirect(stdout: NodeJS.WriteStream): () => void {
  const { write } = stdout;
  let warned = false;
  stdout.write = ((...args: Parameters<typeof process.stderr.write>) => {
    if (!warned) warn("stdout belongs to the protocol: what the program prints there goes to stderr");
    warned = true;
    return process.stderr.write(...args);
  }) as typeof write;
  return () => {
    stdout.write = write;
  };
}
