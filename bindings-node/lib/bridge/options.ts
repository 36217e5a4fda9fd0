/** Calls that are given options: what the engine says of them, in the names of this side. */

import { refuseName } from "../json/checks.js";
import { native, unknownOf } from "./errors.js";

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
    const unknown = unknownOf(error);
    if (unknown) refuseName(whose ?? unknown.what, unknown.name, [...unknown.known, ...others]);
    throw error;
  }
}
