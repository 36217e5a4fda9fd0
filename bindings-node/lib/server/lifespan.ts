/** Resources of a server from its first use to its last: a pool of connections, a cache. */

import { AsyncLocalStorage } from "node:async_hooks";
import type * as Addon from "../bridge/addon.js";
import { typeName } from "../bridge/errors.js";
import { addon, type Handler, handle, type Origin, register, thrownHere } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { Life } from "./shutdown.js";

/** Starts and stops what the functions of a server share. */
export interface Lifespan<State> {
  /**
   * Called when the server is first used, before anything is answered: by `run`, a client in this process, the first
   * request to a mounted endpoint. What it returns is {@link Context.state}. What it throws is why serving or
   * connecting fails; the next use calls it again.
   */
  readonly start: () => State | Promise<State>;
  /**
   * Called once when the last use has ended, also by Ctrl-C and SIGTERM. A mounted server is used until it is closed, nobody
   * refers to it any more, or the program ends: by itself, or by a signal that nothing else listens to. A program that
   * calls `process.exit` calls `await server.close()` before.
   */
  readonly stop?: ((state: State) => unknown) | undefined;
}

/** Marks what runs as one end of a lifespan, until it has ended. */
const within = new AsyncLocalStorage<{ home: Home | undefined }>();

/** True if the lifespan of that server is what calls this: nothing that waits for it may be waited for. */
export function isWithin(home: Home): boolean {
  return within.getStore()?.home === home;
}

/** Runs one end of a lifespan. */
class End implements Handler {
  readonly #home: Home;
  readonly #call: () => unknown;

  constructor(home: Home, call: () => unknown) {
    this.#home = home;
    this.#call = call;
  }

  run(_params: unknown, key: number, origin: Origin | undefined): void {
    const scope = origin?.scope ?? this.#home.scope;
    const running: { home: Home | undefined } = { home: this.#home };
    const call = (): unknown => within.run(running, this.#call);
    const begun = async (): Promise<unknown> => {
      try {
        return await (scope ? scope.runInAsyncScope(call) : call());
      } finally {
        running.home = undefined;
      }
    };
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

/** The other end, which is called once for each that has begun. */
class Stop extends End {
  id = 0;
}

/** Gives a server a lifespan. Returns what keeps that alive. */
export function liveBy<State>(engine: Addon.Server, { start, stop }: Lifespan<State>, home: Home): object[] {
  if (typeof start !== "function" || (stop !== undefined && typeof stop !== "function")) {
    throw new MisuseError("lifespan: expected an object with the function start, and as a rule stop");
  }
  let life: Life | undefined;
  const starts = new End(home, async () => {
    home.state = await start();
    if (stop) home.life = life = new Life(engine, stops);
  });
  const stops: Stop = new Stop(home, async () => {
    const { state } = home;
    const begun = life;
    home.state = home.life = life = undefined;
    try {
      const stopping = stop?.(state as State);
      begun?.called();
      await stopping;
    } catch (error) {
      home.onError(error, "lifespan", "the end of the lifespan");
    } finally {
      begun?.over();
    }
  });
  stops.id = register(stops);
  engine.setLifespan(register(starts), stops.id);
  return [starts, stops];
}
