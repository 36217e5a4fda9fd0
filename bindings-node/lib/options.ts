/** Options on their way to the engine: the same names, in its casing and units. */

import { MisuseError, native } from "./errors.js";

/** Durations are milliseconds here, as everywhere in Node, and seconds in the engine. */
const DURATIONS = new Set([
  "keepAliveInterval",
  "maxTimeout",
  "pingInterval",
  "pingTimeout",
  "probeTimeout",
  "requestTimeout",
  "sessionIdleTimeout",
  "shutdownGrace",
  "sseRetry",
  "timeout",
]);

/** `options` as JSON with snake_case names. Those that are undefined are left out. */
export function toEngine(options: object): string {
  const wire: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    wire[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)] =
      DURATIONS.has(name) && typeof value === "number" ? value / 1000 : value;
  }
  return JSON.stringify(wire);
}

/** Runs a call that was given options, and names them the way they are written here if it objects. */
export function withOptions<T>(call: () => T): T {
  try {
    return native(call);
  } catch (error) {
    if (!(error instanceof MisuseError)) throw error;
    const message = error.message.replace(/(["`])([a-z]+(?:_[a-z]+)+)\1/g, (_match, quote: string, name: string) => {
      return quote + name.replace(/_([a-z])/g, (_underscore, letter: string) => letter.toUpperCase()) + quote;
    });
    throw new MisuseError(message);
  }
}
