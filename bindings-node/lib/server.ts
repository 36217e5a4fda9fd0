/** The server: tools in, serving out. */

import { AsyncResource } from "node:async_hooks";
import { isMainThread } from "node:worker_threads";
import type * as Addon from "./addon.js";
import { MisuseError, native } from "./errors.js";
import { addon, bridge, listen, newSource, register, wait, warn } from "./host.js";
import { type HttpMount, type HttpOptions, type MountOptions, mount, type NodeListener } from "./http.js";
import { toEngine, withOptions } from "./options.js";
import { userPackage } from "./package.js";
import type { Schema } from "./schema.js";
import {
  type AnyHandler,
  type AnyOptions,
  define,
  type Home,
  Tool,
  type ToolHandler,
  type ToolOptions,
} from "./tool.js";
import type { Icon } from "./types.js";

/** All optional. Sizes are bytes. */
export interface ServerOptions {
  /** Default: the version in your package.json. */
  readonly version?: string;
  /** A name for people. */
  readonly title?: string;
  /** What the server is, for people. */
  readonly description?: string;
  /** Where to read about it. */
  readonly websiteUrl?: string;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[];
  /** How to use this server, for the model. */
  readonly instructions?: string;
  /** Entries per page of a list. Default 250. */
  readonly pageSize?: number;
  /** Largest message accepted. Default 4 MiB. */
  readonly maxMessageBytes?: number;
  /** Deepest JSON accepted. Default 128. */
  readonly maxNesting?: number;
  /** Requests running at once per connection. Default 256. */
  readonly maxInFlight?: number;
  /** Notifications waiting for a slow peer. Default 256. */
  readonly maxQueuedNotifications?: number;
  /**
   * Hears of what handlers throw, other than `ToolError` and `RpcError`.
   * Default: `console.error`. The model only ever learns the type of such an error.
   */
  readonly onError?: (error: unknown, tool: string) => void;
}

/** Gauges; see the documentation of the engine. */
export type Metrics = Readonly<Record<string, number>>;

/** Servers that serve refer to themselves: nobody else need. */
const serving = new Set<Server>();

/** @internal */
export let nativeServer: (server: Server) => Addon.Server;

/**
 * A server, for any number of connections at once.
 *
 * ```ts
 * const app = new Server("demo");
 * app.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
 * await app.run();
 * ```
 */
export class Server {
  /** As clients see it. */
  readonly name: string;
  readonly #native: Addon.Server;
  readonly #source = newSource();
  readonly #tools = new Map<string, Tool>();
  readonly #home: Home;
  readonly #maxMessageBytes: number;
  #mount: HttpMount | undefined;
  #serves = new Set<Promise<unknown>>();

  static {
    nativeServer = (server) => {
      server.#capture();
      return server.#native;
    };
  }

  /** @param name default: the name in your package.json */
  constructor(name?: string, options: ServerOptions = {}) {
    const { onError, ...rest } = options;
    const user = userPackage();
    this.name = name ?? user.name ?? "server";
    this.#home = { scope: undefined, running: 0, onError: onError ?? logError };
    this.#maxMessageBytes = options.maxMessageBytes ?? 4 << 20;
    const engine = toEngine({ version: user.version ?? "0.0.0", ...rest, name: this.name });
    this.#native = withOptions(() => new addon.Server(bridge, this.#source, engine));
  }

  /**
   * Adds a tool.
   *
   * Arguments are validated before the handler runs. It returns a plain value (text for a string,
   * otherwise JSON, structured for an object), content blocks such as `image(…)`, or a whole `result(…)`.
   * It throws `ToolError` to tell the model what went wrong.
   *
   * @throws {MisuseError} for a schema that cannot be JSON Schema or a name that cannot be used
   */
  tool<const Input extends Schema | undefined = undefined, const Output extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<Input, Output>,
    handler: ToolHandler<Input, Output>,
  ): this;
  /** Adds a tool that takes any object and says nothing about itself. */
  tool(name: string, handler: ToolHandler<undefined, undefined>): this;
  tool(name: string, first: AnyOptions | AnyHandler, second?: AnyHandler): this {
    const [options, run] = typeof first === "function" ? [{}, first] : [first, second];
    if (typeof run !== "function") {
      throw new MisuseError(`tool "${name}": the last argument must be the function that runs it`);
    }
    const tool = new Tool(name, options, run, this.#home);
    native(() => this.#native.addTool(define(name, options), register(tool)));
    this.#tools.set(name, tool);
    return this;
  }

  /** Removes a tool. Returns false when there is none of that name. */
  removeTool(name: string): boolean {
    this.#tools.delete(name);
    return this.#native.removeTool(name);
  }

  /**
   * Serves until the client or the user ends it: over stdin and stdout, unless HTTP is asked for.
   *
   * HTTP is asked for here (true, a port, `"host:port"`, options) or on the command line by
   * `--http [HOST:PORT]`; `ready <url>` then appears on stderr. SIGTERM and Ctrl-C close the server
   * and settle this; the exit status after Ctrl-C is 130. A handler that goes on although it was
   * cancelled keeps the program for half a second only.
   */
  async run(http: boolean | number | string | HttpOptions = askedFor(process.argv.slice(2))): Promise<void> {
    const signals = closeOnSignal(this, this.#home);
    try {
      if (http === false) await this.serveStdio();
      else await this.serveHttp({ onListening: (url) => console.error(`ready ${url}`), ...address(http) });
    } finally {
      signals.done();
    }
  }

  /**
   * Serves one client over stdin and stdout, which belong to the protocol from now on.
   * Settles when stdin has ended and all answers are written.
   */
  async serveStdio(): Promise<void> {
    const restore = guardStdout();
    try {
      await this.#serve((op) => this.#native.serveStdio(op));
    } finally {
      restore();
    }
  }

  /** Serves Streamable HTTP, legacy and modern clients alike. Settles after {@link close}. */
  async serveHttp(options: HttpOptions = {}): Promise<void> {
    const { onListening, ...rest } = options;
    await this.#serve((op) => withOptions(() => this.#native.serveHttp(toEngine(rest), op)), onListening);
  }

  /** An HTTP endpoint without a socket, to be mounted in a server you already have, at any path. */
  http(options: MountOptions = {}): HttpMount {
    this.#capture();
    const endpoint = withOptions(() => this.#native.http(toEngine(options)));
    return mount(endpoint, this.#maxMessageBytes, this);
  }

  /** Answers one HTTP request: for Hono, Deno, Bun and everything else that speaks `fetch`. */
  readonly fetch = (request: Request): Promise<Response> => {
    this.#mount ??= this.http();
    return this.#mount.fetch(request);
  };

  /** A listener for `node:http`, Express and others that speak `(req, res)`. */
  listener(options: MountOptions = {}): NodeListener {
    return this.http(options).listener;
  }

  /** Stops serving everywhere: cancels what runs, answers what has an answer, settles what serves. */
  async close(): Promise<void> {
    this.#native.close();
    await Promise.allSettled(this.#serves);
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Gauges of this server: connections, sessions, requests in flight, and so on. */
  metrics(): Metrics {
    return JSON.parse(this.#native.metrics()) as Metrics;
  }

  async #serve(start: (op: number) => void, onListening?: (url: string) => void): Promise<void> {
    this.#capture();
    const done = wait(start);
    this.#serves.add(done);
    serving.add(this);
    listen(this.#source, (name: string, params: { url: string; message: string }) => {
      if (name === "listening") onListening?.(params.url);
      else if (name === "warning") warn(params.message);
    });
    try {
      await done;
    } finally {
      this.#serves.delete(done);
      if (this.#serves.size === 0) {
        serving.delete(this);
        listen(this.#source, undefined);
      }
    }
  }

  #capture(): void {
    this.#home.scope ??= new AsyncResource("tricorn.Server");
  }
}

function logError(error: unknown, tool: string): void {
  console.error(`tool "${tool}" failed:`, error);
}

/** What the command line says about HTTP: an address, true for the default one, or false. */
function askedFor(args: readonly string[]): boolean | string {
  const place = args.findIndex((arg) => arg === "--http" || arg.startsWith("--http="));
  const arg = args[place];
  if (arg === undefined) return false;
  if (arg !== "--http") return arg.slice("--http=".length);
  const next = args[place + 1];
  return next === undefined || next.startsWith("-") ? true : next;
}

function address(http: true | number | string | HttpOptions): HttpOptions {
  if (http === true || http === "") return {};
  if (typeof http === "object") return http;
  const [, host, port] = /^(?:(.*):)?(\d+)$/.exec(String(http)) ?? [];
  if (port === undefined) throw new MisuseError(`run: expected a port or host:port, got "${http}"`);
  return { ...(host && { host: host.replace(/^\[|\]$/g, "") }), port: Number(port) };
}

/** Milliseconds a handler may go on after a signal has cancelled it. */
const STUBBORN = 500;

/** The first SIGINT or SIGTERM closes the server in order, the next one does what it always does. */
function closeOnSignal(server: Server, home: Home): { done(): void } {
  // Signals exist on the main thread only.
  if (!isMainThread) return { done() {} };
  const signals = ["SIGINT", "SIGTERM"] as const;
  const done = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    done();
    if (signal === "SIGINT") process.exitCode ??= 130;
    void server.close();
    setTimeout(() => {
      if (home.running > 0) process.exit();
    }, STUBBORN).unref();
  };
  for (const signal of signals) process.on(signal, onSignal);
  return { done };
}

let guards = 0;
let unguard: (() => void) | undefined;

/**
 * While stdout carries the protocol, what the program prints there goes to stderr, with one warning.
 *
 * The engine sees to the first for everything that writes to the descriptor; this is for the warning.
 * The stream is not touched before somebody asks for it: making it takes time and memory.
 */
function guardStdout(): () => void {
  if (guards++ === 0 && isMainThread) {
    const original = Object.getOwnPropertyDescriptor(process, "stdout") as PropertyDescriptor;
    const restore = (): void => {
      Object.defineProperty(process, "stdout", original);
    };
    unguard = restore;
    const get = (): NodeJS.WriteStream => {
      restore();
      const { stdout } = process;
      unguard = redirect(stdout);
      return stdout;
    };
    Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get });
  }
  return () => {
    if (--guards === 0) unguard?.();
  };
}

function redirect(stdout: NodeJS.WriteStream): () => void {
  const { write } = stdout;
  let warned = false;
  stdout.write = ((...args: Parameters<typeof process.stderr.write>) => {
    if (!warned) warn("stdout belongs to the protocol: what the program prints there goes to stderr");
    warned = true;
    return process.stderr.write(...args);
  }) as typeof write;
  return () => {
    stdout.write = write;
  };
}
