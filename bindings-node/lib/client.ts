/** The client: one connection to one server. */

import type * as Addon from "./addon.js";
import { ClosedError, MisuseError, native, PeerMisbehavedError, TricornError } from "./errors.js";
import { addon, bridge, listen, newSource, wait, warn } from "./host.js";
import { toEngine, withOptions } from "./options.js";
import { userPackage } from "./package.js";
import { CallToolResult } from "./result.js";
import { type Metrics, nativeServer, Server } from "./server.js";
import type { ClientCapabilities, Icon, Implementation, MetaObject, ServerCapabilities, Tool } from "./types.js";

/** A server behind a URL. */
export interface HttpTarget {
  /** `http:` or `https:`, with the path of the endpoint. */
  readonly url: string | URL;
  /** Sent with every request; each wins over one of that name in {@link ClientOptions.headers}. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server that is a program; it is started, and stopped on close with everything it started. */
export interface CommandTarget {
  /** A path, or a name to be found on PATH. No shell reads it. */
  readonly command: string;
  /** Default: none. */
  readonly args?: readonly string[];
  /** Added to this program's environment; null removes a variable. */
  readonly env?: Readonly<Record<string, string | null>>;
  /** Default: this program's working directory. */
  readonly cwd?: string;
  /** Where its stderr goes: to ours (default), nowhere, or line by line to a function. */
  readonly stderr?: "inherit" | "discard" | ((line: string) => void);
}

/** The contents of an `mcp.json`. */
export interface ConfigTarget {
  /** By name; see {@link ClientOptions.server}. What hosts keep beside the members of a target is ignored. */
  readonly mcpServers: Readonly<
    Record<string, HttpTarget | (Omit<CommandTarget, "stderr"> & { readonly stderr?: "inherit" | "discard" })>
  >;
}

/** A URL, a command line, the path of an `mcp.json`, a server in this process, or one of these spelt out. */
export type Target = string | URL | Server | HttpTarget | CommandTarget | ConfigTarget;

/** All optional. Durations are milliseconds, sizes bytes. */
export interface ClientOptions {
  /** Default: the name in your package.json. */
  readonly name?: string;
  /** Default: the version in your package.json. */
  readonly version?: string;
  /** A name for people. */
  readonly title?: string;
  /** What the program is, for people. */
  readonly description?: string;
  /** Where to read about it. */
  readonly websiteUrl?: string;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[];
  /** Speak exactly this protocol revision. Default: the newest the server knows. */
  readonly revision?: string;
  /** Longest wait for an answer, counted anew at each sign of progress; null or 0: no limit. Default one minute. */
  readonly requestTimeout?: number | null;
  /** Longest wait for the first sign of a modern server. Default 5 seconds. */
  readonly probeTimeout?: number;
  /** Largest message accepted. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** Deepest JSON accepted. Default 128. */
  readonly maxNesting?: number;
  /** Requests awaiting an answer at once, further ones wait their turn; at least 1. Default 256. */
  readonly maxInFlight?: number;
  /** Sent with every HTTP request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a server that was started gets to end by itself. Default 2 seconds. */
  readonly shutdownGrace?: number;
  /** Capabilities to declare, as in the protocol. */
  readonly capabilities?: ClientCapabilities;
  /** Which entry of an `mcp.json`; not needed when there is only one. */
  readonly server?: string;
  /** Hears of every notification of the server that nothing else waits for. */
  readonly onNotification?: (method: string, params: unknown) => void;
  /** Hears why the connection ended, when it was not by {@link Client.close}. */
  readonly onClose?: (reason: string) => void;
  /**
   * Hears the stderr of a program line by line, unless the target itself says where that goes. Default: it goes to ours.
   */
  readonly onStderr?: (line: string) => void;
}

/** How far a call is. */
export interface Progress {
  /** Grows with every report. */
  readonly progress: number;
  /** Where progress ends, when the server knows. */
  readonly total?: number;
  /** What the server is doing, for people. */
  readonly message?: string;
}

/** What holds for one request. All optional. */
export interface RequestOptions {
  /** Milliseconds without an answer or progress; null or 0: no limit. Default: the client's. */
  readonly timeout?: number | null;
  /** Milliseconds in all, progress or not; null or 0: no limit. Default: no limit. */
  readonly maxTimeout?: number | null;
  /** Aborting it rejects with its reason and cancels the request at the server. */
  readonly signal?: AbortSignal;
  /** Hears of progress until the answer comes. What it throws is an uncaught exception. */
  readonly onProgress?: (progress: Progress) => void;
}

/** What holds for one call of a tool. All optional. */
export interface CallOptions extends RequestOptions {
  /** The request's `_meta`. */
  readonly meta?: MetaObject;
}

/** One page of `tools/list`. */
export interface ToolPage {
  /** In the server's order. */
  readonly tools: readonly Tool[];
  /** Where the next page starts; undefined on the last. */
  readonly nextCursor?: string;
}

interface Connected {
  readonly protocolVersion: string;
  readonly era: "legacy" | "modern";
  readonly transport: "stdio" | "http" | "memory";
  readonly serverInfo?: Implementation;
  readonly capabilities?: ServerCapabilities;
  readonly instructions?: string;
  readonly sessionId?: string;
}

/** Pages of one list; a server that sends more of them never ends. */
const MAX_PAGES = 1000;

/**
 * Connected clients, each with its server when that is in this process: it lives as long as they do.
 * The program closes them when it has nothing else to do.
 */
const open = new Map<Client, Server | undefined>();

/**
 * Connects to a server, whichever era it speaks.
 *
 * ```ts
 * await using client = await connect("npx -y @modelcontextprotocol/server-everything");
 * const sum = await client.callTool("add", { a: 1, b: 2 });
 * ```
 */
export async function connect(target: Target, options: ClientOptions = {}): Promise<Client> {
  const client = new Client(target, options);
  await start(client, target instanceof Server ? target : undefined);
  return client;
}

let start: (client: Client, server: Server | undefined) => Promise<void>;

/** A connection to a server. Made by {@link connect}. */
export class Client {
  readonly #native: Addon.Client;
  readonly #handle: Addon.ClientHandle;
  readonly #source = newSource();
  #connected: Connected | undefined;
  #closing: Promise<void> | undefined;

  static {
    start = (client, server) => client.#connect(server);
  }

  /** @internal */
  constructor(target: Target, options: ClientOptions) {
    const { onNotification, onClose, server, requestTimeout, onStderr: listener, ...rest } = options;
    const user = userPackage();
    const engine = toEngine({
      name: user.name ?? "client",
      version: user.version ?? "0.0.0",
      ...rest,
      requestTimeout: requestTimeout === undefined ? undefined : (limit(requestTimeout) ?? 0),
    });
    let onStderr = listener;
    if (target instanceof Server) {
      this.#native = withOptions(() => addon.Client.inMemory(bridge, this.#source, nativeServer(target), engine));
    } else {
      const { wire, stderr } = resolve(target, server, onStderr !== undefined);
      onStderr = stderr ?? onStderr;
      this.#native = withOptions(() => new addon.Client(bridge, this.#source, wire, engine));
    }
    this.#handle = this.#native.handle();
    listen(this.#source, (name: string, params: ClientEvent) => {
      if (name === "notification") onNotification?.(params.method, params.params);
      else if (name === "stderr") onStderr?.(params.line);
      else if (name === "warning") warn(params.message);
      else if (name === "closed") {
        this.#forget();
        if (!this.#closing) onClose?.(params.reason);
      }
    });
  }

  /** The protocol revision in force. */
  get protocolVersion(): string {
    return this.#info.protocolVersion;
  }

  /** `legacy`: opened by `initialize`. `modern`: stateless. */
  get era(): "legacy" | "modern" {
    return this.#info.era;
  }

  /** How the server is reached; `memory` is one in this process. */
  get transport(): "stdio" | "http" | "memory" {
    return this.#info.transport;
  }

  /** Name, version and more, when the server said so. */
  get serverInfo(): Implementation | undefined {
    return this.#info.serverInfo;
  }

  /** What the server can do, as in the protocol; empty when it declared nothing. */
  get capabilities(): ServerCapabilities {
    return this.#info.capabilities ?? {};
  }

  /** How to use the server, for the model. */
  get instructions(): string | undefined {
    return this.#info.instructions;
  }

  /** The `Mcp-Session-Id` of a legacy HTTP connection. */
  get sessionId(): string | undefined {
    return this.#info.sessionId;
  }

  /** All tools, all pages. */
  async listTools(options?: RequestOptions): Promise<Tool[]> {
    const tools: Tool[] = [];
    const seen = new Set<string>();
    for (let cursor: string | undefined; ; ) {
      const page = await this.listToolsPage(cursor, options);
      tools.push(...page.tools);
      cursor = page.nextCursor ?? undefined;
      if (cursor === undefined) return tools;
      if (seen.has(cursor)) throw new PeerMisbehavedError(`tools/list never ends: the cursor "${cursor}" came twice`);
      if (seen.add(cursor).size < MAX_PAGES) continue;
      throw new PeerMisbehavedError(`tools/list never ends: there are more than ${MAX_PAGES} pages`);
    }
  }

  /** One page of tools: the first, or the one at `cursor`. */
  async listToolsPage(cursor?: string, options?: RequestOptions): Promise<ToolPage> {
    const page = await this.request("tools/list", cursor === undefined ? {} : { cursor }, options);
    if (!Array.isArray(page["tools"])) throw new PeerMisbehavedError("tools/list: the result has no list of tools");
    return page as unknown as ToolPage;
  }

  /**
   * Calls a tool.
   *
   * @throws {RpcError} when the server answered with an error; a tool that fails is a result
   * @throws {TimeoutError} when no answer came; the server has been told
   */
  async callTool<T = unknown>(
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    options?: CallOptions,
  ): Promise<CallToolResult<T>> {
    const params = { name, arguments: args, ...(options?.meta && { _meta: options.meta }) };
    return new CallToolResult<T>(await this.request("tools/call", params, options));
  }

  /**
   * Asks whether the server is still there.
   *
   * Where the revision has no `ping`, `server/discover` is asked instead.
   */
  async ping(options?: RequestOptions): Promise<void> {
    await this.request("ping", undefined, options);
  }

  /**
   * Sends any request and returns its result object.
   *
   * @throws {RpcError} when the server answered with an error
   * @throws {TimeoutError} when no answer came; the server has been told
   * @throws {ClosedError} when the connection is closed or ends meanwhile
   */
  async request(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    if (this.#closing) throw new ClosedError("the client is closed");
    const { signal, onProgress, timeout, maxTimeout } = options;
    const engine =
      timeout === undefined && maxTimeout === undefined && !onProgress
        ? ""
        : toEngine({
            timeout: timeout === undefined ? undefined : limit(timeout),
            maxTimeout: limit(maxTimeout) ?? undefined,
            progress: onProgress && true,
          });
    const text = params && JSON.stringify(params);
    const listener = onProgress && ((_name: string, progress: Progress) => onProgress(progress));
    try {
      return await wait((op) => addon.request(this.#handle, op, method, text, engine), signal, listener);
    } catch (error) {
      // The error was made where the answer arrived; show where the question was asked.
      if (error instanceof TricornError) Error.captureStackTrace(error);
      throw error;
    }
  }

  /**
   * Sends a notification.
   *
   * @throws {ClosedError} when the connection is closed
   */
  notify(method: string, params?: Readonly<Record<string, unknown>>): void {
    native(() => this.#native.notify(method, params && JSON.stringify(params)));
  }

  /** Ends the connection, and the server if it was started here. Safe to call from anywhere, any number of times. */
  close(): Promise<void> {
    this.#closing ??= wait<unknown>((op) => this.#native.close(op)).then(() => this.#forget());
    return this.#closing;
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Gauges of this connection: requests in flight, and so on. */
  metrics(): Metrics {
    return JSON.parse(this.#native.metrics()) as Metrics;
  }

  get #info(): Connected {
    if (!this.#connected) throw new MisuseError("the client is not connected yet");
    return this.#connected;
  }

  async #connect(server: Server | undefined): Promise<void> {
    try {
      this.#connected = await wait<Connected>((op) => this.#native.connect(op));
    } catch (error) {
      this.#forget();
      if (error instanceof TricornError) Error.captureStackTrace(error);
      throw error;
    }
    if (open.size === 0) process.on("beforeExit", closeAll);
    open.set(this, server);
  }

  #forget(): void {
    listen(this.#source, undefined);
    if (open.delete(this) && open.size === 0) process.off("beforeExit", closeAll);
  }
}

/** A time limit as the engine takes it: null for none, however that was said. */
function limit(milliseconds: number | null | undefined): number | null {
  return milliseconds === 0 || milliseconds === Number.POSITIVE_INFINITY ? null : (milliseconds ?? null);
}

type ClientEvent = {
  readonly method: string;
  readonly params: unknown;
  readonly line: string;
  readonly message: string;
  readonly reason: string;
};

/** The program has nothing left to do but may have servers running: let them end in order. */
function closeAll(): void {
  for (const client of open.keys()) client.close().catch(() => {});
}

interface Resolved {
  readonly wire: string;
  readonly stderr?: (line: string) => void;
}

/** What the engine shall connect to, and who listens to a program's stderr; `heard`: the client's options do. */
function resolve(target: Exclude<Target, Server>, server: string | undefined, heard: boolean): Resolved {
  const mode = heard ? "event" : undefined;
  if (typeof target === "string") return { wire: JSON.stringify({ text: target, server, stderr: mode }) };
  if (target instanceof URL) return { wire: JSON.stringify({ text: target.href, server }) };
  if ("url" in target) return { wire: JSON.stringify({ ...target, url: String(target.url), server }) };
  if ("mcpServers" in target) {
    const deaf = Object.keys(target.mcpServers).find((name) => typeof stderrOf(target.mcpServers[name]) === "function");
    if (deaf !== undefined) {
      throw new MisuseError(`server "${deaf}": stderr: a function is for the option onStderr`);
    }
    return { wire: JSON.stringify({ ...target, server, stderr: mode }) };
  }
  const { stderr = mode, ...rest } = target;
  if (typeof stderr === "function")
    return { wire: JSON.stringify({ args: [], ...rest, server, stderr: "event" }), stderr };
  return { wire: JSON.stringify({ args: [], ...rest, server, stderr }) };
}

function stderrOf(entry: unknown): unknown {
  return (entry as { readonly stderr?: unknown } | null)?.stderr;
}
