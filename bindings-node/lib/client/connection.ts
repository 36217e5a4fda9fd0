/** The clients that are connected. The program closes them when it has nothing else to do. */

import { hold, release } from "../bridge/host.js";

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
