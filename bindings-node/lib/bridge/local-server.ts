/** Servers of this process as the engine has them: a client can be connected to one in memory. */

import { MisuseError } from "../errors/errors.js";
import type * as Addon from "./addon.js";

const engines = new WeakMap<object, Addon.Server>();

/** Says what the engine has for `server`. */
export function setNativeServer(server: object, engine: Addon.Server): void {
  engines.set(server, engine);
}

/** True for a server of this process. */
export function isServer(value: unknown): boolean {
  return engines.has(value as object);
}

/**
 * Returns what the engine has for `server`.
 *
 * @throws {MisuseError} for what is no server
 */
export function nativeServer(server: object): Addon.Server {
  const engine = engines.get(server);
  if (!engine) throw new MisuseError("expected a Server");
  return engine;
}
