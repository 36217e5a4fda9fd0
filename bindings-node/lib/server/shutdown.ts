/** The lifespans that have begun: the program ends them when it has nothing else to do, or is told to end. */

import { constants } from "node:os";
import { type Handler, hold, isMainThread, keep, letGo, release } from "../bridge/host.js";

/** Stops everything that a server is used for. */
interface Closes {
  close(): void;
}

/** One lifespan that has begun, and has not been stopped. */
export class Life {
  /** Settles when it has been stopped. */
  readonly stopped: Promise<void>;
  readonly #engine: Closes;
  readonly #stop: Handler & { readonly id: number };
  #done: () => void = () => {};
  #held = false;

  /** @param stop is called once more, and kept until then: the server may be gone before */
  constructor(engine: Closes, stop: Handler & { readonly id: number }) {
    this.#engine = engine;
    this.#stop = stop;
    this.stopped = new Promise((resolve) => {
      this.#done = resolve;
    });
    keep(stop, stop.id);
    if (lives.size === 0) watch();
    lives.add(this);
  }

  /** Ends all uses of the server. The program goes on until the function of the user has been called. */
  end(): void {
    if (!this.#held) {
      this.#held = true;
      hold();
      setTimeout(() => this.called(), PATIENCE).unref();
    }
    this.#engine.close();
  }

  /** The function of the user has been called: what it waits for keeps the program, or not, as anything else does. */
  called(): void {
    if (!this.#held) return;
    this.#held = false;
    release();
  }

  /** That is over. */
  over(): void {
    this.called();
    letGo(this.#stop.id);
    if (lives.delete(this) && lives.size === 0) unwatch();
    this.#done();
  }
}

/** Milliseconds in which a lifespan is stopped, when the program is to end. */
const PATIENCE = 10_000;

/**
 * Signals by which one program asks another to end. On Windows no program is sent SIGTERM, and Ctrl-Break is what comes
 * nearest; elsewhere Node does not know SIGBREAK.
 */
export const POLITE: readonly ("SIGTERM" | "SIGBREAK")[] =
  process.platform === "win32" ? ["SIGTERM", "SIGBREAK"] : ["SIGTERM"];

/** SIGHUP also says that a console window of Windows is closed, which leaves some seconds. */
const SIGNALS = ["SIGINT", ...POLITE, "SIGHUP"] as const;

const lives = new Set<Life>();

function watch(): void {
  process.on("beforeExit", endAll);
  // Signals exist on the main thread only. First, to see who else listens: others leave when they are called.
  if (isMainThread()) for (const signal of SIGNALS) process.prependListener(signal, onSignal);
}

function unwatch(): void {
  process.off("beforeExit", endAll);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function endAll(): void {
  for (const life of lives) life.end();
}

/** A signal ends the program, which whoever listens to it sees to: alone, this does, after what was begun. */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  const all = [...lives].map(({ stopped }) => stopped);
  // The next one does what it always does.
  for (const one of SIGNALS) process.off(one, onSignal);
  endAll();
  void patiently(Promise.all(all)).then(() => endBy(signal));
}

/** Ends the program as the signal would have. */
function endBy(signal: NodeJS.Signals): void {
  // On Windows no signal can be sent: the program would be ended as if it had failed, or nothing would come of it.
  if (process.platform === "win32") process.exit(128 + constants.signals[signal]);
  process.kill(process.pid, signal);
}

/** True if the program hears the signal itself. */
export function isHeard(signal: NodeJS.Signals): boolean {
  return process.listeners(signal).some((one) => one !== onSignal);
}

/** Waits for what is being stopped, but not for ever. */
export async function patiently(stopped: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, PATIENCE);
  });
  await Promise.race([stopped, late]);
  clearTimeout(timer);
}
