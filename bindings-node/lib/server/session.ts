/** Tools, resources and prompts for the client of one session. */

import { bridge, type Handler, keep, letGo } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { Session } from "../call/context.js";
import { Registration } from "./registration.js";

/** The session that call `key` belongs to. */
export function sessionOf<State>(key: number, home: Home): Session<State> {
  const registration = new Registration(home, {
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
  return new Session<State>(key, registration);
}
