/** The server: tools in, serving out. */

import { AsyncResource } from "node:async_hooks";
import { isMainThread } from "node:worker_threads";
import type * as Addon from "./addon.js";
import { type CompleteResult, completeResult, type Icon } from "./content.js";
import { Context } from "./context.js";
import { MisuseError, native, RpcError, ToolError } from "./errors.js";
import { addon, bridge, calls, type Handler, listen, newSource, register, wait, warn } from "./host.js";
import { type HttpMount, type HttpOptions, type MountOptions, mount, type NodeListener } from "./http.js";
import { toEngine, withOptions } from "./options.js";
import { userPackage } from "./package.js";
import { describe, type Infer, isStandard, type JsonSchema, type Schema, toJsonSchema } from "./schema.js";

/** All optional. Sizes are bytes. */
export interface ServerOptions {
  /** Default: the version in your package.json. */
  readonly version?: string;
  /** A name for people. */
  readonly title?: string;
  readonly description?: string;
  readonly websiteUrl?: string;
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
   * Hears of what handlers throw, other than {@link ToolError} and {@link RpcError}.
   * Default: `console.error`. The model only ever learns the type of such an error.
   */
  readonly onError?: (error: unknown, tool: string) => void;
}

/** Hints about what a tool does. Clients should not trust them. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

export interface ToolOptions<Input extends Schema | undefined, Output extends Schema | undefined> {
  /** What the tool does, for the model. */
  readonly description?: string;
  /** A name for people. */
  readonly title?: string;
  /** The arguments. Default: any object. */
  readonly input?: Input;
  /** What the handler returns. Results are checked against it and sent as `structuredContent`. */
  readonly output?: Output;
  /** The JSON Schema of the arguments, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema;
  /** The JSON Schema of the result, likewise. */
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  readonly icons?: readonly Icon[];
  /** The tool's `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** The handler's first argument for an input schema. */
export type Arguments<Input> = [Input] extends [Schema]
  ? unknown extends Infer<Input>
    ? Record<string, unknown>
    : Infer<Input>
  : Record<string, unknown>;

/** What a handler may return for an output schema: without one, anything that is JSON. */
export type Returns<Output> = [Output] extends [Schema] ? Infer<Output> | CompleteResult : unknown;

/** A plain function: typed arguments in, plain value out, now or later. */
export type ToolHandler<Input, Output> = (
  args: Arguments<Input>,
  ctx: Context,
) => Returns<Output> | Promise<Returns<Output>>;

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
  readonly name: string;
  readonly #native: Addon.Server;
  readonly #source = newSource();
  readonly #tools = new Map<string, Tool>();
  readonly #onError: NonNullable<ServerOptions["onError"]>;
  readonly #maxMessageBytes: number;
  #scope: AsyncResource | undefined;
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
    this.#onError = onError ?? logError;
    this.#maxMessageBytes = options.maxMessageBytes ?? 4 << 20;
    const engine = toEngine({ version: user.version ?? "0.0.0", ...rest, name: this.name });
    this.#native = withOptions(() => new addon.Server(bridge, this.#source, engine));
  }

  /**
   * Adds a tool.
   *
   * Arguments are validated before the handler runs. It returns a plain value (text for a string,
   * otherwise JSON, structured for an object), content blocks such as `image(…)`, or a whole `result(…)`.
   * It throws {@link ToolError} to tell the model what went wrong.
   *
   * @throws {MisuseError} for a schema that cannot be JSON Schema or a name that cannot be used
   */
  tool<const Input extends Schema | undefined = undefined, const Output extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<Input, Output>,
    handler: ToolHandler<Input, Output>,
  ): this;
  tool(name: string, handler: ToolHandler<undefined, undefined>): this;
  tool(name: string, first: AnyOptions | AnyHandler, second?: AnyHandler): this {
    const [options, run] = typeof first === "function" ? [{}, first] : [first, second];
    if (typeof run !== "function") {
      throw new MisuseError(`tool "${name}": the last argument must be the function that runs it`);
    }
    const tool = new Tool(name, options, run, this);
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
   * Serves until the client goes away or a signal ends the program: over HTTP when `http` is given,
   * otherwise over stdin and stdout.
   */
  async run(http?: HttpOptions): Promise<void> {
    const signals = closeOnSignal(this);
    try {
      if (http) await this.serveHttp({ onListening: (url) => console.error(`${this.name}: ${url}`), ...http });
      else await this.serveStdio();
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

  /** An HTTP endpoint without a socket, to be mounted in a server you already have. */
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Gauges of this server: connections, sessions, requests in flight, and so on. */
  metrics(): Metrics {
    return JSON.parse(this.#native.metrics()) as Metrics;
  }

  /** @internal */
  failed(tool: string, error: unknown): void {
    this.#onError(error, tool);
  }

  /**
   * Runs a handler where the server was started: what `AsyncLocalStorage` held there, it holds here.
   *
   * @internal
   */
  inScope(tool: Tool, args: unknown, ctx: Context): unknown {
    return this.#scope ? this.#scope.runInAsyncScope(tool.call, tool, args, ctx) : tool.call(args, ctx);
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
    this.#scope ??= new AsyncResource("tricorn.Server");
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the overloads of `tool` give handlers their types.
type AnyHandler = (args: any, ctx: Context) => unknown;
type AnyOptions = ToolOptions<Schema | undefined, Schema | undefined>;

/** A registered tool: validates what the engine cannot, runs the handler, answers. */
class Tool implements Handler {
  readonly #name: string;
  readonly #server: Server;
  readonly #typed: boolean;
  readonly call: AnyHandler;

  constructor(name: string, options: AnyOptions, handler: AnyHandler, server: Server) {
    this.#name = name;
    this.#server = server;
    this.#typed = options.output !== undefined || options.outputSchema !== undefined;
    this.call = options.input && isStandard(options.input) ? validated(options.input["~standard"], handler) : handler;
  }

  run(args: unknown, key: number): void {
    const ctx = new Context(key);
    try {
      const value = this.#server.inScope(this, args, ctx);
      if (!isThenable(value)) {
        this.#answer(key, value);
        return;
      }
      calls.set(key, ctx);
      value.then(
        (settled) => {
          calls.delete(key);
          try {
            this.#answer(key, settled);
          } catch (error) {
            this.#fail(key, ctx, error);
          }
        },
        (error: unknown) => {
          calls.delete(key);
          this.#fail(key, ctx, error);
        },
      );
    } catch (error) {
      this.#fail(key, ctx, error);
    }
  }

  #answer(key: number, value: unknown): void {
    if (typeof value === "string" && !this.#typed) {
      bridge.text(key, value);
    } else if (value === undefined || (value === null && !this.#typed)) {
      bridge.result(key, '{"content":[]}');
    } else {
      const complete = typeof value === "object" && value !== null && completeResult(value, this.#typed);
      if (complete) bridge.result(key, JSON.stringify(complete));
      else bridge.value(key, toJson(value));
    }
  }

  #fail(key: number, ctx: Context, error: unknown): void {
    if (error instanceof ToolError) {
      bridge.failed(key, error.message);
    } else if (error instanceof RpcError) {
      const data = error.data === undefined ? undefined : JSON.stringify(error.data);
      bridge.error(key, error.code, error.message, data);
    } else {
      bridge.failed(key, `tool "${this.#name}" failed: ${typeName(error)}`);
      // Giving up after a cancel is what a handler should do: nothing to report.
      if (!ctx.cancelled) this.#server.failed(this.#name, error);
    }
  }
}

/** The engine has checked the JSON Schema; this adds what only the library knows: defaults, transforms, refinements. */
function validated(schema: StandardProperties, handler: AnyHandler): AnyHandler {
  const checked = (outcome: Outcome, ctx: Context): unknown => {
    if (outcome.issues) throw new ToolError(describe(outcome.issues));
    return handler(outcome.value, ctx);
  };
  return (args, ctx) => {
    const outcome = schema.validate(args);
    return isThenable(outcome) ? outcome.then((later) => checked(later, ctx)) : checked(outcome, ctx);
  };
}

type StandardProperties = Extract<Schema, { "~standard": unknown }>["~standard"];
type Outcome = Awaited<ReturnType<StandardProperties["validate"]>>;

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === "function";
}

function toJson(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return text;
}

/** What the model learns of an error that is none of its business. */
function typeName(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return error.name === "Error" ? error.constructor.name : error.name;
}

function logError(error: unknown, tool: string): void {
  console.error(`tool "${tool}" failed:`, error);
}

/** The `Tool` object of the schema as JSON text. */
function define(name: string, options: AnyOptions): string {
  const { title, description, annotations, icons, meta: _meta } = options;
  const head = JSON.stringify({ name, title, description, annotations, icons, _meta });
  const input = options.inputSchema ?? options.input ?? { type: "object" };
  const output = options.outputSchema ?? options.output;
  let text = `${head.slice(0, -1)},"inputSchema":${toJsonSchema(input, "input", `tool "${name}" input`)}`;
  if (output) text += `,"outputSchema":${toJsonSchema(output, "output", `tool "${name}" output`)}`;
  return `${text}}`;
}

/** SIGINT and SIGTERM close the server first and then do what they would have done. */
function closeOnSignal(server: Server): { done(): void } {
  // Signals exist on the main thread only.
  if (!isMainThread) return { done() {} };
  let caught: NodeJS.Signals | undefined;
  const signals = ["SIGINT", "SIGTERM"] as const;
  const onSignal = (signal: NodeJS.Signals): void => {
    caught = signal;
    // A second one does not wait.
    for (const name of signals) process.off(name, onSignal);
    void server.close();
  };
  for (const name of signals) process.on(name, onSignal);
  return {
    done() {
      for (const name of signals) process.off(name, onSignal);
      // Somebody else listens: then it is theirs to decide what the signal means.
      if (caught && process.listenerCount(caught) === 0) process.kill(process.pid, caught);
    },
  };
}

let guards = 0;
let realWrite: typeof process.stdout.write | undefined;

/** While stdout carries the protocol, what the program prints there goes to stderr, with one warning. */
function guardStdout(): () => void {
  if (guards++ === 0 && isMainThread) {
    let warned = false;
    realWrite = process.stdout.write;
    process.stdout.write = ((...args: Parameters<typeof process.stderr.write>) => {
      if (!warned) warn("stdout belongs to the protocol: what the program prints there goes to stderr");
      warned = true;
      return process.stderr.write(...args);
    }) as typeof process.stdout.write;
  }
  return () => {
    if (--guards === 0 && realWrite) {
      process.stdout.write = realWrite;
      realWrite = undefined;
    }
  };
}
