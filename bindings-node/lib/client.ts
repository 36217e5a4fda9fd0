/** The client: one connection to one server. */

import { AsyncResource } from "node:async_hooks";
import type * as Addon from "./addon.js";
import { answerWith, heard, LISTENERS, type RootLike, setRoots } from "./answering.js";
import type { Suggestions } from "./completion.js";
import { CALLBACKS, type ClientOptions, type Made, make, withPolicy } from "./connecting.js";
import { ClosedError, MisuseError, native, TricornError, UnsupportedError } from "./errors.js";
import { type Home, logError } from "./handler.js";
import { addon, hold, listen, newSource, release, wait, warn } from "./host.js";
import { type MethodTiming, type Middleware, type RequestRecord, wrap } from "./middleware.js";
import { checkFunctions } from "./options.js";
import {
  collected,
  entries,
  type PromptPage,
  page,
  type ResourcePage,
  type ResourceTemplatePage,
  type ToolPage,
} from "./pages.js";
import { type RequestOptions, requested, texts } from "./requesting.js";
import { CallToolResult, ReadResourceResult } from "./result.js";
import { Server } from "./server.js";
import type { Target } from "./target.js";
import { createdTask, News, TaskHandle } from "./tasks.js";
import type {
  GetPromptResult,
  Implementation,
  LoggingLevel,
  MetaObject,
  Prompt,
  PromptReference,
  Resource,
  ResourceTemplate,
  ResourceTemplateReference,
  ServerCapabilities,
  Task,
  Tool,
} from "./types.js";

/** Gauges of a client. */
export interface ClientMetrics {
  /** Requests that wait for an answer. */
  readonly awaited: number;
  /** What the middleware {@link timing} counted, by method. */
  readonly timing?: Readonly<Record<string, MethodTiming>>;
}

/** What holds for one request with a `_meta` of the caller's. All optional. */
export interface CallOptions extends RequestOptions {
  /** The request's `_meta`. */
  readonly meta?: MetaObject;
}

/** @internal */
export interface Connected {
  readonly protocolVersion: string;
  readonly era: "legacy" | "modern";
  readonly transport: "stdio" | "http" | "memory";
  readonly serverInfo?: Implementation;
  readonly capabilities?: ServerCapabilities;
  readonly instructions?: string;
  readonly sessionId?: string;
}

/**
 * Connected clients, each with what lives as long as it does: what answers its server, and the server itself when
 * that is in this process. The program closes them when it has nothing else to do.
 */
const open = new Map<Client, readonly unknown[]>();

/**
 * Connects to a server, whichever era it speaks.
 *
 * ```ts
 * await using client = await connect("npx -y @modelcontextprotocol/server-everything");
 * const sum = await client.callTool("add", { a: 1, b: 2 });
 * ```
 */
export async function connect(target: Target, options: ClientOptions = {}): Promise<Client> {
  const given = withPolicy(options);
  const client = new Client((source) => make(target, given, source), given);
  await start(client, target instanceof Server ? target : undefined);
  return client;
}

let start: (client: Client, server: Server | undefined) => Promise<void>;

/**
 * A client that its group connects.
 *
 * @internal
 */
export function clientOf(make: (source: number) => Made, options: ClientOptions): Client {
  return new Client(make, options);
}

/**
 * Its group has connected a client.
 *
 * @internal
 */
export let connected: (client: Client, info: Connected, server: Server | undefined) => void;

/** A connection to a server. Made by {@link connect}. */
export class Client {
  readonly #native: Addon.Client;
  readonly #handle: Addon.ClientHandle;
  readonly #source = newSource();
  /** The engine refers to handlers weakly: this keeps them. */
  readonly #answers: readonly object[];
  /** Whether the roots are a list, which can be changed. */
  readonly #listed: boolean;
  readonly #news = new News();
  readonly #hear: (name: string, params: ClientEvent) => void;
  #connected: Connected | undefined;
  /** Whether the program is to go on for what is heard, and does. */
  #waits: boolean;
  #held = false;
  #closing: Promise<void> | undefined;

  static {
    start = (client, server) => client.#connect(server);
    connected = (client, info, server) => client.#open(info, server);
  }

  /** @internal */
  constructor(make: (source: number) => Made, options: ClientOptions) {
    const { middleware = [], onClose, onError } = options;
    checkFunctions(options, CALLBACKS);
    if (!Array.isArray(middleware)) throw new MisuseError("middleware: expected a list");
    const { engine, onStderr = options.onStderr } = make(this.#source);
    this.#native = engine;
    this.#handle = engine.handle();
    const home: Home = { scope: new AsyncResource("tricorn.Client"), running: 0, onError: onError ?? logError };
    const logs: ((record: RequestRecord) => void)[] = [];
    const around = middleware.flatMap((one: Middleware) => wrap(engine, one, home, logs, true));
    this.#answers = [...answerWith(engine, options, home), ...around];
    this.#listed = Array.isArray(options.roots);
    this.#waits = LISTENERS.some((name) => options[name] !== undefined);
    this.#hear = (name: string, params: ClientEvent) => {
      if (name === "notification") {
        if (params.method === "notifications/tasks/status") this.#news.tell(params.params?.taskId ?? "");
        heard(options, params.method, params.params);
      } else if (name === "request") for (const log of logs) log(params);
      else if (name === "stderr") onStderr?.(params.line);
      else if (name === "warning") warn(params.message);
      else if (name === "closed") {
        this.#forget();
        if (!this.#closing) onClose?.(params.reason);
      }
    };
    listen(this.#source, this.#hear);
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
  listTools(options?: RequestOptions): Promise<Tool[]> {
    return collected(this.tools(options));
  }

  /** One page of tools: the first, or the one at `cursor`. */
  listToolsPage(cursor?: string, options?: RequestOptions): Promise<ToolPage> {
    return page(this.#sender(options), "tools/list", cursor);
  }

  /** All tools, each page asked for when the loop gets there. */
  tools(options?: RequestOptions): AsyncGenerator<Tool, void, undefined> {
    return entries(this.#sender(options), "tools/list");
  }

  /** All resources, all pages. */
  listResources(options?: RequestOptions): Promise<Resource[]> {
    return collected(this.resources(options));
  }

  /** One page of resources: the first, or the one at `cursor`. */
  listResourcesPage(cursor?: string, options?: RequestOptions): Promise<ResourcePage> {
    return page(this.#sender(options), "resources/list", cursor);
  }

  /** All resources, each page asked for when the loop gets there. */
  resources(options?: RequestOptions): AsyncGenerator<Resource, void, undefined> {
    return entries(this.#sender(options), "resources/list");
  }

  /** All resource templates, all pages. */
  listResourceTemplates(options?: RequestOptions): Promise<ResourceTemplate[]> {
    return collected(this.resourceTemplates(options));
  }

  /** One page of resource templates: the first, or the one at `cursor`. */
  listResourceTemplatesPage(cursor?: string, options?: RequestOptions): Promise<ResourceTemplatePage> {
    return page(this.#sender(options), "resources/templates/list", cursor);
  }

  /** All resource templates, each page asked for when the loop gets there. */
  resourceTemplates(options?: RequestOptions): AsyncGenerator<ResourceTemplate, void, undefined> {
    return entries(this.#sender(options), "resources/templates/list");
  }

  /** All prompts, all pages. */
  listPrompts(options?: RequestOptions): Promise<Prompt[]> {
    return collected(this.prompts(options));
  }

  /** One page of prompts: the first, or the one at `cursor`. */
  listPromptsPage(cursor?: string, options?: RequestOptions): Promise<PromptPage> {
    return page(this.#sender(options), "prompts/list", cursor);
  }

  /** All prompts, each page asked for when the loop gets there. */
  prompts(options?: RequestOptions): AsyncGenerator<Prompt, void, undefined> {
    return entries(this.#sender(options), "prompts/list");
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
    const params = withMeta({ name, arguments: args }, options);
    return new CallToolResult<T>(await this.request("tools/call", params, options));
  }

  /**
   * Calls a tool as a task, which is there when this settles: its result can be had later. Experimental.
   *
   * @param options.ttl milliseconds for which task and result are wanted, from now on; the server may decide otherwise
   * @throws {UnsupportedError} when the server has no tasks, or listed the tool as one that is none; nothing was sent
   * @throws {RpcError} with -32601 when the tool cannot be called as one
   */
  async callToolTask<T = unknown>(
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    options: Omit<CallOptions, "task"> & { readonly ttl?: number } = {},
  ): Promise<TaskHandle<T>> {
    if (!this.capabilities.tasks?.requests?.tools?.call) {
      throw new UnsupportedError('"tools/call" was not sent: the server does not declare "tasks.requests.tools.call"');
    }
    const { ttl, ...rest } = options;
    const params = withMeta({ name, arguments: args, task: { ttl } }, options);
    return this.task(createdTask(await this.request("tools/call", params, rest)).taskId);
  }

  /** A task by its id, to come back to it. Nothing is sent. */
  task<T = unknown>(id: string): TaskHandle<T> {
    return new TaskHandle<T>(id, (method, params, options) => this.request(method, params, options), this.#news);
  }

  /** All tasks that the server keeps of this session, all pages. */
  listTasks(options?: RequestOptions): Promise<Task[]> {
    return collected(this.tasks(options));
  }

  /** All tasks, each page asked for when the loop gets there. */
  tasks(options?: RequestOptions): AsyncGenerator<Task, void, undefined> {
    return entries(this.#sender(options), "tasks/list");
  }

  /**
   * Reads a resource.
   *
   * @throws {RpcError} when there is none: -32002, in newer revisions -32602
   */
  async readResource(uri: string | URL, options?: CallOptions): Promise<ReadResourceResult> {
    const params = withMeta({ uri: String(uri) }, options);
    return new ReadResourceResult(await this.request("resources/read", params, options));
  }

  /** Asks to hear of changes of a resource, by {@link ClientOptions.onResourceUpdated}. */
  async subscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    await this.request("resources/subscribe", { uri: String(uri) }, options);
  }

  /** No longer asks for it. */
  async unsubscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    await this.request("resources/unsubscribe", { uri: String(uri) }, options);
  }

  /**
   * Gets a prompt's messages. Arguments are text in the protocol: here dates become it by ISO 8601 and others as JSON;
   * null and undefined are left out.
   */
  async getPrompt(
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    options?: CallOptions,
  ): Promise<GetPromptResult> {
    const params = withMeta({ name, arguments: texts(args) }, options);
    return (await this.request("prompts/get", params, options)) as unknown as GetPromptResult;
  }

  /**
   * Asks for suggestions for an argument of a prompt or a variable of a resource template.
   *
   * ```ts
   * const { values } = await client.complete({ type: "ref/prompt", name: "greet" }, "name", "An");
   * ```
   *
   * @param value what has been typed so far
   * @param args the other arguments, as far as they are known
   */
  async complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: string,
    value: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ): Promise<Suggestions> {
    const params = { ref, argument: { name: argument, value }, ...(args && { context: { arguments: args } }) };
    const { completion } = await this.request("completion/complete", params, options);
    return completion as Suggestions;
  }

  /**
   * Asks for the server's log from this level on, by {@link ClientOptions.onLog}.
   *
   * @throws {UnsupportedError} where each request asks by itself, with `io.modelcontextprotocol/logLevel` in its `_meta`
   */
  async setLogLevel(level: LoggingLevel, options?: RequestOptions): Promise<void> {
    await this.request("logging/setLevel", { level }, options);
  }

  /**
   * Has these roots from now on, and tells the server.
   *
   * @throws {MisuseError} when {@link ClientOptions.roots} was no list: give an empty one when there are none yet
   */
  setRoots(roots: readonly RootLike[]): void {
    if (!this.#listed) throw new MisuseError('setRoots: connect with the option "roots", a list, which may be empty');
    setRoots(this.#native, roots);
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
  request(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    if (this.#closing) return Promise.reject(new ClosedError("the client is closed"));
    return requested(options, params, (op, text, engine) => addon.request(this.#handle, op, method, text, engine));
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

  /**
   * Keeps the program running while this client is connected, as a socket does. So it is when one of `onLog`,
   * `onResourceUpdated`, `onListChanged`, `onNotification` was given; else a program that waits for nothing ends.
   */
  ref(): this {
    return this.#wait(true);
  }

  /** Lets the program end though this client is connected: only requests that wait for their answer keep it running. */
  unref(): this {
    return this.#wait(false);
  }

  /** Gauges of this connection: requests in flight, and so on. */
  metrics(): ClientMetrics {
    return JSON.parse(this.#native.metrics()) as ClientMetrics;
  }

  #wait(waits: boolean): this {
    this.#waits = waits;
    this.#hold(waits && open.has(this));
    return this;
  }

  #hold(held: boolean): void {
    if (held !== this.#held) (held ? hold : release)();
    this.#held = held;
  }

  #sender(options?: RequestOptions) {
    return (method: string, params: Readonly<Record<string, unknown>>) => this.request(method, params, options);
  }

  get #info(): Connected {
    if (!this.#connected) throw new MisuseError("the client is not connected yet");
    return this.#connected;
  }

  async #connect(server: Server | undefined): Promise<void> {
    try {
      this.#open(await wait<Connected>((op) => this.#native.connect(op)), server);
    } catch (error) {
      this.#forget();
      if (error instanceof TricornError) Error.captureStackTrace(error);
      throw error;
    }
  }

  #open(info: Connected, server: Server | undefined): void {
    this.#connected = info;
    // A group connects a client again that was closed, or lost its server.
    this.#closing = undefined;
    listen(this.#source, this.#hear);
    if (open.size === 0) process.on("beforeExit", closeAll);
    open.set(this, [server, this.#answers]);
    this.#hold(this.#waits);
  }

  #forget(): void {
    listen(this.#source, undefined);
    this.#hold(false);
    if (open.delete(this) && open.size === 0) process.off("beforeExit", closeAll);
  }
}

function withMeta(params: Record<string, unknown>, options: CallOptions | undefined): Record<string, unknown> {
  return options?.meta ? { ...params, _meta: options.meta } : params;
}

type ClientEvent = RequestRecord & {
  readonly params: { readonly taskId?: string } | undefined;
  readonly line: string;
  readonly message: string;
  readonly reason: string;
};

/** The program has nothing left to do but may have servers running: let them end in order. */
function closeAll(): void {
  for (const client of open.keys()) client.close().catch(() => {});
}
