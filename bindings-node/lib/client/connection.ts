/**
 * Connections of clients: how the engine makes one, and which there are. The program closes them when it has nothing else
 * to do.
 */

import type * as Addon from "../bridge/addon.js";
import { addon, bridge, hold, release } from "../bridge/host.js";
import { nativeServer } from "../bridge/local-server.js";
import { withOptions } from "../bridge/options.js";
import type { Implementation, ServerCapabilities } from "../types.js";
import { type ClientOptions, OWN } from "./options.js";
import { engineOptions } from "./settings.js";
import { isLocal, resolve, type Target } from "./target.js";

interface Closes {
  close(): Promise<void>;
}

/** True if the program goes on for a client while that is connected. */
export class Hold {
  #wanted: boolean;
  #connected = false;
  #held = false;

  constructor(wanted: boolean) {
    this.#wanted = wanted;
  }

  want(wanted: boolean): void {
    this.#wanted = wanted;
    this.connected(this.#connected);
  }

  connected(connected: boolean): void {
    this.#connected = connected;
    const held = connected && this.#wanted;
    if (held !== this.#held) (held ? hold : release)();
    this.#held = held;
  }
}

/** Each with what lives as long as it does: what answers its server, and the server itself when that is in this process. */
const open = new Map<Closes, readonly unknown[]>();

/** It is from now on; `kept` lives as long. */
export function opened(client: Closes, ...kept: readonly unknown[]): void {
  if (open.size === 0) process.on("beforeExit", closeAll);
  open.set(client, kept);
}

/** It is not any more. */
export function closed(client: Closes): void {
  if (open.delete(client) && open.size === 0) process.off("beforeExit", closeAll);
}

/** The program has nothing left to do but may have servers running: let them end in order. */
function closeAll(): void {
  for (const client of open.keys()) client.close().catch(() => {});
}

/** A client of the engine, and who listens to the stderr of its program when the target says so. */
export interface Made {
  readonly engine: Addon.Client;
  readonly onStderr?: ((line: string) => void) | undefined;
  /** Objects that the client has to keep: the engine refers to them weakly. */
  readonly kept?: readonly object[] | undefined;
}

/** Makes a client of the engine, whose events arrive under `source`. */
export function make(target: Target, options: ClientOptions, source: number): Made {
  const { engine, kept } = engineOptions(options);
  if (isLocal(target)) {
    const client = withOptions(() => addon.Client.inMemory(bridge, source, nativeServer(target), engine), OWN);
    return { engine: client, kept };
  }
  const { wire, stderr } = resolve(target, options.server, options.onStderr !== undefined);
  return { engine: withOptions(() => new addon.Client(bridge, source, wire, engine), OWN), onStderr: stderr, kept };
}

/** @internal */
export interface Connected {
  readonly protocolVersion: string;
  readonly era: "legacy" | "modern";
  readonly transport: "stdio" | "http" | "memory";
  readonly serverInfo?: Implementation | undefined;
  readonly capabilities?: ServerCapabilities | undefined;
  readonly instructions?: string | undefined;
  readonly initializeResult: Readonly<Record<string, unknown>>;
  readonly sessionId?: string | undefined;
}
