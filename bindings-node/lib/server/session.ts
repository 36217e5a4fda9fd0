/** Tools, resources and prompts for the client of one session. */

import { bridge, type Handler, keep, letGo } from "../bridge/host.js";
import type { Home } from "../call/handler.js";
import { native } from "../errors/errors.js";
import type { Kind } from "../model/definitions.js";
import { Offer } from "./registration.js";

/**
 * The session that a call belongs to: what is added here only its client sees, for as long as the session lives. Its
 * list is told to have changed.
 *
 * All of it throws `UnsupportedError` in revisions without sessions, and for what the client was not told of as it
 * connected: see {@link ServerOptions.capabilities}. It can be used as long as the call runs.
 */
export class Session<State = unknown> extends Offer<State> {
  readonly #key: number;

  /** @internal */
  constructor(key: number, home: Home) {
    super(home, {
      add: (kind, _name, definition, more, [runner]) => {
        // Kept until the engine says that nothing calls them any more.
        const kept: number[] = [];
        const register = (handler: Handler): number => {
          const id = keep(handler);
          kept.push(id);
          return id;
        };
        try {
          bridge.sessionAdd(key, kind, definition, more(register), register(runner));
        } catch (error) {
          for (const id of kept) letGo(id);
          throw error;
        }
      },
      remove: (kind, name) => bridge.sessionRemove(key, kind, name),
    });
    this.#key = key;
  }

  /**
   * Shows or hides something from this client alone.
   *
   * @param name the name; of a resource the URI, of a template the URI template
   * @returns whether that changed anything
   */
  setEnabled(kind: Kind, name: string, enabled: boolean): boolean {
    return native(() => bridge.setEnabled(this.#key, kind, name, enabled));
  }
}
