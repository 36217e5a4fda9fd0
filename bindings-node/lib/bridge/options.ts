/** Calls that are given options: what the engine says of them, in the names of this side. */

import { MisuseError } from "../errors/errors.js";
import { distance, hint } from "../json/checks.js";
import { native } from "./errors.js";

/**
 * The engine's text for an option that it does not know, with a suggestion or with all that there are. Options within
 * options, which are named before, are none of ours.
 */
const UNKNOWN = /^([^"]*)unknown option "(.*)", (?:did you mean "(.*)"\?|expected one of (.*))/;

/**
 * Runs a call that was given options. A name that it does not know may be near one that the engine does not see.
 *
 * @param others the options that the engine does not see
 * @param whose whose they are, where the engine says something else
 */
export function withOptions<T>(call: () => T, others: readonly string[] = [], whose?: string): T {
  try {
    return native(call);
  } catch (error) {
    if (!(error instanceof MisuseError)) throw error;
    throw new MisuseError(
      error.message.replace(
        UNKNOWN,
        (_match, said: string, name: string, near: string | undefined, all: string | undefined) => {
          const place = whose === undefined ? said : `${whose}: `;
          if (near === undefined)
            return `${place}unknown option "${name}", ${hint(name, [...(all ?? "").split(", "), ...others])}`;
          // The engine knows all but those.
          const [nearest = near] = [near, ...others].sort((a, b) => distance(name, a) - distance(name, b));
          return `${place}unknown option "${name}", did you mean "${nearest}"?`;
        },
      ),
    );
  }
}
