/** What a server has from its first use to its last: a pool of connections, a cache. */

import type * as Addon from "./addon.js";
import { MisuseError } from "./errors.js";
import { type Home, typeName } from "./handler.js";
import { addon, type Handler, handle, register, thrownHere } from "./host.js";

/** Starts and stops what the functions of a server share. */
export interface Lifespan<State> {
  /**
   * Called when the server is first used, before anything is answered: by `run`, a client in this process, the first
   * request to a mounted endpoint. What it returns is {@link Context.state}. What it throws is why serving or
   * connecting fails; the next use calls it again.
   */
  readonly start: () => State | Promise<State>;
  /** Called once when the last use has ended, also by Ctrl-C and SIGTERM. */
  readonly stop?: (state: State) => unknown;
}

/** Runs one end of a lifespan. */
class End implements Handler {
  readonly #home: Home;
  readonly #call: () => unknown;

  constructor(home: Home, call: () => unknown) {
    this.#home = home;
    this.#call = call;
  }

  run(_params: unknown, key: number): void {
    const { scope } = this.#home;
    const begun = async (): Promise<unknown> => (scope ? scope.runInAsyncScope(this.#call) : this.#call());
    this.#home.ending = begun().then(
      () => void addon.answerResult(handle, key, "{}"),
      (error: unknown) => {
        // Who serves or connects gets the error itself; the client of a mounted endpoint learns the type only.
        if (this.#home.mounted) this.#home.onError(error, "lifespan", "the start of the lifespan");
        addon.answerError(handle, key, -32603, `the server could not start: ${typeName(error)}`, thrownHere(error));
      },
    );
  }
}

/** Gives a server a lifespan. Returns what keeps that alive. */
export function liveBy<State>(engine: Addon.Server, { start, stop }: Lifespan<State>, home: Home): object[] {
  if (typeof start !== "function" || (stop !== undefined && typeof stop !== "function")) {
    throw new MisuseError("lifespan: expected an object with the function start, and as a rule stop");
  }
  const starts = new End(home, async () => {
    home.state = await start();
  });
  const stops = new End(home, async () => {
    const { state } = home;
    home.state = undefined;
    try {
      await stop?.(state as State);
    } catch (error) {
      home.onError(error, "lifespan", "the end of the lifespan");
    }
  });
  engine.setLifespan(register(starts), register(stops));
  return [starts, stops];
}
