/** The standard streams of Node while a server speaks on those of the process. */

import type { Readable } from "node:stream";
import { addon, say } from "../bridge/host.js";

/** Everything that a `write` is called with. */
type Write = typeof process.stdout.write;

/** Servers that have asked for it: one speaks, and whoever comes meanwhile is refused, which gives nothing back. */
let users = 0;
let back: (() => void) | undefined;

/** The standard streams are a server's from now on. */
export function takeStreams(): void {
  if (users++ === 0 && process.platform === "win32") back = replace();
}

/** They are the program's again, as far as this server had them. */
export function giveBackStreams(): void {
  if (--users > 0) return;
  addon.giveBackStreams();
  back?.();
  back = undefined;
}

/**
 * Sends to stderr what is written to `process.stdout`, and puts the end of input at `process.stdin`, which elsewhere the
 * engine sees to. Returns what takes it back.
 *
 * On Windows Node keeps handles of its own, of which the system does not know, for descriptors 0 and 1. To look at that
 * of stdin would also wait for whoever reads it: for the engine.
 */
function replace(): () => void {
  const { stdout } = process;
  const own = Object.getOwnPropertyDescriptor(stdout, "write");
  let warned = false;
  let waits = false;
  const write = ((...args: Parameters<Write>): boolean => {
    if (!warned) {
      warned = true;
      say("tricorn: stdout belongs to the protocol; what this program prints there goes to stderr");
    }
    const isBelow = process.stderr.write(...args);
    // A pipe to stdout waits for its word, and not for that of stderr.
    if (!isBelow && !waits) {
      waits = true;
      process.stderr.once("drain", () => {
        waits = false;
        stdout.emit("drain");
      });
    }
    return isBelow;
  }) as Write;
  stdout.write = write;
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin");
  // Not loaded by programs that are never here.
  const nothing = process.getBuiltinModule("node:stream").Readable.from([]);
  const getter = (): Readable => nothing;
  if (stdin?.configurable) Object.defineProperty(process, "stdin", { ...stdin, get: getter });
  return () => {
    // Anything that the program has put there meanwhile stays.
    if (stdout.write === write) {
      if (own) Object.defineProperty(stdout, "write", own);
      else Reflect.deleteProperty(stdout, "write");
    }
    if (stdin?.configurable && Object.getOwnPropertyDescriptor(process, "stdin")?.get === getter) {
      Object.defineProperty(process, "stdin", stdin);
    }
  };
}
