/** For tests of servers: the real protocol, no process and no socket. */

import { type Client, connect } from "./client.js";
import type { ClientOptions } from "./connecting.js";
import type { AnyState } from "./context.js";
import { type BridgeMetrics, bridgeMetrics } from "./host.js";
import type { Server } from "./server.js";

/**
 * Runs `test` with a client connected to `server` in memory, and closes it whatever happens.
 *
 * Pin `revision` to see the server as clients of that revision see it.
 */
export async function withClient<T>(
  server: Server<AnyState>,
  test: (client: Client) => T | Promise<T>,
  options: ClientOptions = {},
): Promise<T> {
  const client = await connect(server, options);
  try {
    return await test(client);
  } finally {
    await client.close();
  }
}

export { type BridgeMetrics, bridgeMetrics };
