/** For tests of servers: the real protocol, no process and no socket; and of their stores. */

import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { type BridgeMetrics, bridgeMetrics, wait } from "./bridge/host.js";
import { nativeServer } from "./bridge/local-server.js";
import type { AnyState } from "./call/context.js";
import { type Client, connect } from "./client/client.js";
import type { ClientOptions } from "./client/options.js";
import type { Target } from "./client/target.js";
import { MisuseError } from "./errors/errors.js";
import type { DocumentStore } from "./server/document-store.js";
import { Server } from "./server/server.js";

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
  return run(await connect(server, options), test);
}

/** Options of {@link withCassette}. */
export interface CassetteOptions extends ClientOptions {
  /** `auto` records where there is no file and plays it otherwise, `record` records anew, `replay` never records. Default `auto`. */
  readonly mode?: "auto" | "record" | "replay" | undefined;
  /** Plays each answer once, and only for the request that was recorded. Default: the best match answers, too. */
  readonly strict?: boolean | undefined;
}

/**
 * Runs `test` with a client that records its server the first time and plays the recording afterwards, and closes it
 * whatever happens.
 *
 * If `file` is missing, `target` is connected to and recorded there, without secrets; a test that fails leaves no file.
 * A file that is there is played, and `target` is not touched. A file that is no cassette, or that `replay` does not
 * find, is a {@link MisuseError}.
 */
export async function withCassette<T>(
  file: string | URL,
  target: Target,
  test: (client: Client) => T | Promise<T>,
  options: CassetteOptions = {},
): Promise<T> {
  const { mode = "auto", strict = false, ...given } = options;
  if (mode !== "auto" && mode !== "record" && mode !== "replay") {
    throw new MisuseError(`cassette: mode: expected "auto", "record" or "replay", got ${JSON.stringify(mode)}`);
  }
  const path = typeof file === "string" ? file : fileURLToPath(file);
  if (mode === "replay" || (mode === "auto" && existsSync(path))) {
    return run(await connect(`replay:${path}${strict ? "?strict" : ""}`, given), test);
  }
  const part = `${path}.part`;
  await mkdir(dirname(path), { recursive: true });
  try {
    const result = await run(await connect(target, { ...given, record: part }), test);
    await rename(part, path);
    return result;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function run<T>(client: Client, test: (client: Client) => T | Promise<T>): Promise<T> {
  try {
    return await test(client);
  } finally {
    await client.close();
  }
}

/**
 * Tries a server's store of the program's own: each rule, also with many writers at once, then what a server does with
 * it. Takes some seconds. The keys begin with `tricorn-check:` and a random part; what is left of them ends after two
 * minutes.
 *
 * @throws {MisuseError} naming each rule that the store breaks, a line for each; its `cause` is what was thrown first
 */
export async function checkDocumentStore(store: DocumentStore): Promise<void> {
  const thrown: unknown[] = [];
  const server = new Server("check", { version: "0", store, onError: (error) => thrown.push(error) });
  try {
    await wait((op) => nativeServer(server).checkStore(op));
  } catch (error) {
    if (!(error instanceof MisuseError) || thrown.length === 0) throw error;
    throw new MisuseError(error.message, { cause: thrown[0] });
  } finally {
    await server.close();
  }
}

export { type BridgeMetrics, bridgeMetrics };
