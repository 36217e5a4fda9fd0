/** The standard streams of Node while a server speaks on those of the process. */

import { Readable } from "node:stream";
import { say } from "./host.js";

/** Everything that a `write` is called with. */
type Write = typeof process.stdout.write;

/** How many servers have asked for it: one speaks, and whoever comes meanwhile is refused. */
let users = 0;
let back: (() => void) | undefined;

/**
 * From now on what is written to `process.stdout` goes to stderr, and `process.stdin` has ended, where the engine cannot
 * see to that. Returns what takes it back, once.
 *
 * On Windows Node keeps handles of its own, of which the system does not know, for descriptors 0 and 1. To look at that of
 * stdin would also wait for whoever reads it: for the engine.
 */
export function ownStreams(isWindows = process.platform === "win32"): () => void {
  if (!isWindows) return () => {};
  if (users++ === 0) back = replace();
  let done = false;
  return () => {
    if (done) return;
    done = true;
    if (--users === 0) back?.();
  };
}

function replace(): () => void {
  const { stdout } = process;
  const own = Object.getOwnPropertyDescriptor(stdout, "write");
  let warned = false;
  const write = ((...args: Parameters<Write>): boolean => {
    if (!warned) {
      warned = true;
      say("tricorn: stdout belongs to the protocol; what this program prints there goes to stderr");
    }
    return process.stderr.write(...args);
  }) as Write;
  stdout.write = write;
  const stdin = Object.getOwnPropertyDescriptor(process, "stdin");
  const nothing = Readable.from([]);
  const getter = (): Readable => nothing;
  if (stdin?.configurable) Object.defineProperty(process, "stdin", { ...stdin, get: getter });
  return () => {
    // What the program has put there meanwhile stays.
    if (stdout.write === write) {
      if (own) Object.defineProperty(stdout, "write", own);
      else Reflect.deleteProperty(stdout, "write");
    }
    if (stdin?.configurable && Object.getOwnPropertyDescriptor(process, "stdin")?.get === getter) {
      Object.defineProperty(process, "stdin", stdin);
    }
  };
}
