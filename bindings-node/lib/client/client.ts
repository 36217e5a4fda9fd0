/** The client: one connection to one server. */

import { AsyncResource } from "node:async_hooks";
import type * as Addon from "../bridge/addon.js";
import { native } from "../bridge/errors.js";
import { addon, listen, newSource, wait } from "../bridge/host.js";
import { type Home, logError } from "../bridge/scope.js";
import { type Middleware, type RequestRecord, wrap } from "../call/middleware.js";
import type { CallOptions, RequestOptions } from "../call/options.js";
import { checkRequest, type Looks, requested } from "../call/request-options.js";
import type { AuthStep } from "../errors/auth-step.js";
import {
  ClosedError,
  knownAsNotFound,
  MisuseError,
  TricornError,
  traceOf,
  UnsupportedError,
} from "../errors/errors.js";
import { checkFunctions, checkTypes, shown } from "../json/checks.js";
import { deprecated } from "../json/deprecation.js";
import { paramsJson } from "../json/encoding.js";
import {
  CallToolResult,
  type PromptPage,
  ReadResourceResult,
  type ResourcePage,
  type ResourceTemplatePage,
  type Suggestions,
  type ToolPage,
  whole,
} from "../model/results.js";
import { createdTask } from "../model/task.js";
import type {
  CompleteResult,
  GetPromptResult,
  Implementation,
  LoggingLevel,
  Prompt,
  PromptReference,
  Resource,
  ResourceTemplate,
  ResourceTemplateReference,
  ServerCapabilities,
  Task,
  Tool,
} from "../types.js";
import type { RootLike } from "./answers.js";
import { type Connected, closed, Hold, type Made, make, opened } from "./connection.js";
import { type ClientEvent, hearing, hearsLists } from "./events.js";
import { answerWith, LISTENERS, setRoots } from "./handlers.js";
import { Listening, type ListenOptions } from "./listening.js";
import type { ClientOptions } from "./options.js";
import { collected, entries, type Members, page, sender } from "./pages.js";
import type { ArgumentsByName } from "./requests.js";
import * as paramsOf from "./requests.js";
import { CALLBACKS, type ClientMetrics, withPolicy } from "./settings.js";
import { isLocal, type Target } from "./target.js";
import { type Send, TaskHandle } from "./tasks.js";
import { type Traced, tracing } from "./trace.js";

/**
 * Connects to a server, whichever era it speaks.
 *
 * ```ts
 * const client = await connect("npx -y @modelcontextprotocol/server-everything");
 * const sum = await client.callTool("add", { a: 1, b: 2 });
 * await client.close();
 * ```
 */
export async function connect(target: Target, options: ClientOptions = {}): Promise<Client> {
  const given = withPolicy(options);
  const client = new Client((source) => make(target, given, source), given);
  await start(client, isLocal(target) ? target : undefined, options.signal);
  return client;
}

let start: (client: Client, server?: object, signal?: AbortSignal) => Promise<void>;

/** A client that its group connects. @internal */
export function clientOf(make: (source: number) => Made, options: ClientOptions): Client {
  return new Client(make, options);
}

/**
 * Its group has connected a client.
 *
 * @internal
 */
export let connected: (client: Client, info: Connected, server: object | undefined) => void;

/** A connection to a server. Made by {@link connect}. */
export class Client {
  readonly #native: Addon.Client;
  readonly #handle: Addon.ClientHandle;
  readonly #source = newSource();
  /** The engine refers to handlers weakly: this keeps them. */
  readonly #answers: readonly object[];
  /** True if the roots are a list, which can be changed. */
  readonly #listed: boolean;
  readonly #hear: (name: string, params: ClientEvent) => void;
  readonly #traced: Traced;
  #connected: Connected | undefined;
  /** True if the program is to go on for what is heard, and does. */
  readonly #hold: Hold;
  #closing: Promise<void> | undefined;

  static {
    start = (client, server, signal) => client.#connect(server, signal);
    connected = (client, info, server) => client.#open(info, server);
  }

  /** @internal */
  constructor(make: (source: number) => Made, options: ClientOptions) {
    const { middleware = [], onClose, onError } = options;
    checkFunctions(options, CALLBACKS);
    if (!Array.isArray(middleware)) throw new MisuseError(`middleware: expected a list, got ${shown(middleware)}`);
    const { engine, onStderr = options.onStderr, kept = [] } = make(this.#source);
    this.#native = engine;
    this.#handle = engine.handle();
    const home: Home = { scope: new AsyncResource("tricorn.Client"), running: 0, onError: onError ?? logError };
    const logs: ((record: RequestRecord) => void)[] = [];
    const around = middleware.flatMap((one: Middleware) => wrap(engine, one, home, logs, true));
    this.#answers = [...answerWith(engine, options, home), ...around, ...kept];
    this.#listed = Array.isArray(options.roots);
    this.#traced = tracing(options.traceContext, middleware, home);
    this.#hold = new Hold(LISTENERS.some((name) => options[name] !== undefined));
    const ended = (reason: string): void => {
      this.#forget();
      if (!this.#closing) onClose?.(reason);
    };
    this.#hear = hearing(options, { logs, onStderr, known: () => this.#connected, closed: ended });
    if (hearsLists(options)) engine.hearChanges();
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

  /** The transport to the server; `memory` is a server in this process. */
  get transport(): "stdio" | "http" | "memory" {
    return this.#info.transport;
  }

  /** Name, version and more, when the server said so. */
  get serverInfo(): Implementation | undefined {
    return this.#info.serverInfo;
  }

  /** The server's capabilities, as in the protocol; empty when it declared nothing. */
  get capabilities(): ServerCapabilities {
    return this.#info.capabilities ?? {};
  }

  /** Instructions for using the server, for the model. */
  get instructions(): string | undefined {
    return this.#info.instructions;
  }

  /**
   * The server's answer when the connection was opened, as it came, `_meta` and unknown members included: the
   * result of `initialize`, in modern revisions that of `server/discover`.
   */
  get initializeResult(): Readonly<Record<string, unknown>> {
    return this.#info.initializeResult;
  }

  /** The `Mcp-Session-Id` of a legacy HTTP connection as it is now: it changes when the server loses the session. */
  get sessionId(): string | undefined {
    return this.#info && (this.#native.sessionId() ?? undefined);
  }

  /** All tools, all pages. */
  listTools(options?: RequestOptions): Promise<Tool[]> {
    return collected(sender(this, options), "tools/list");
  }

  /** One page of tools: the first, or the one at `cursor`. */
  listToolsPage(cursor?: string, options?: RequestOptions): Promise<ToolPage> {
    return page(sender(this, options), "tools/list", cursor);
  }

  /** All tools, each page asked for when the loop gets there. */
  tools(options?: RequestOptions): AsyncGenerator<Tool, void, undefined> {
    return entries(sender(this, options), "tools/list");
  }

  /** All resources, all pages. */
  listResources(options?: RequestOptions): Promise<Resource[]> {
    return collected(sender(this, options), "resources/list");
  }

  /** One page of resources: the first, or the one at `cursor`. */
  listResourcesPage(cursor?: string, options?: RequestOptions): Promise<ResourcePage> {
    return page(sender(this, options), "resources/list", cursor);
  }

  /** All resources, each page asked for when the loop gets there. */
  resources(options?: RequestOptions): AsyncGenerator<Resource, void, undefined> {
    return entries(sender(this, options), "resources/list");
  }

  /** All resource templates, all pages. */
  listResourceTemplates(options?: RequestOptions): Promise<ResourceTemplate[]> {
    return collected(sender(this, options), "resources/templates/list");
  }

  /** One page of resource templates: the first, or the one at `cursor`. */
  listResourceTemplatesPage(cursor?: string, options?: RequestOptions): Promise<ResourceTemplatePage> {
    return page(sender(this, options), "resources/templates/list", cursor);
  }

  /** All resource templates, each page asked for when the loop gets there. */
  resourceTemplates(options?: RequestOptions): AsyncGenerator<ResourceTemplate, void, undefined> {
    return entries(sender(this, options), "resources/templates/list");
  }

  /** All prompts, all pages. */
  listPrompts(options?: RequestOptions): Promise<Prompt[]> {
    return collected(sender(this, options), "prompts/list");
  }

  /** One page of prompts: the first, or the one at `cursor`. */
  listPromptsPage(cursor?: string, options?: RequestOptions): Promise<PromptPage> {
    return page(sender(this, options), "prompts/list", cursor);
  }

  /** All prompts, each page asked for when the loop gets there. */
  prompts(options?: RequestOptions): AsyncGenerator<Prompt, void, undefined> {
    return entries(sender(this, options), "prompts/list");
  }

  /**
   * Calls a tool.
   *
   * @throws {RpcError} when the server answered with an error; a tool that fails is a result
   * @throws {TimeoutError} when no answer came; the server has been told
   */
  async callTool<T = unknown>(
    name: string,
    args: ArgumentsByName = {},
    options?: CallOptions,
  ): Promise<CallToolResult<T>> {
    const params = paramsOf.ofCall("callTool", name, args, options);
    return new CallToolResult<T>(await this.request("tools/call", params, options));
  }

  /**
   * Calls a tool as a task, which is there when this settles: its result can be had later. In 2026-07-28 the server decides
   * whether and for how long it is one: a call that was answered at once is a task that is over.
   *
   * @param options.ttl milliseconds for which task and result are wanted, from now on; the server may decide otherwise
   * @throws {UnsupportedError} when the server, or in 2026-07-28 this client, has no tasks, or the tool is none; nothing was sent
   * @throws {RpcError} with -32601 when the tool cannot be called as one
   */
  async callToolTask<T = unknown>(
    name: string,
    args: ArgumentsByName = {},
    options: Omit<CallOptions, "task"> & { readonly ttl?: number | undefined } = {},
  ): Promise<TaskHandle<T>> {
    checkTypes("callToolTask", ["ttl", options.ttl, "number", "optional"]);
    const isModern = this.era === "modern"; // There the engine says whether both sides have tasks.
    if (!isModern && !this.capabilities.tasks?.requests?.tools?.call) {
      throw new UnsupportedError('"tools/call" was not sent: the server does not declare "tasks.requests.tools.call"');
    }
    const { ttl, ...rest } = options;
    const params = { ...paramsOf.ofCall("callToolTask", name, args, options), task: { ttl } };
    const created = await this.request("tools/call", params, isModern ? { ...rest, task: true } : rest);
    return this.#task(createdTask(created).taskId, created);
  }

  /** A task by its id, to come back to it. Nothing is sent. */
  task<T = unknown>(id: string): TaskHandle<T> {
    return this.#task(id, undefined);
  }

  /** All tasks that the server keeps of this session, all pages. */
  listTasks(options?: RequestOptions): Promise<Task[]> {
    return collected(sender(this, options), "tasks/list");
  }

  /** All tasks, each page asked for when the loop gets there. */
  tasks(options?: RequestOptions): AsyncGenerator<Task, void, undefined> {
    return entries(sender(this, options), "tasks/list");
  }

  /**
   * Reads a resource.
   * @throws {ResourceNotFoundError} when there is none: -32002, in newer revisions -32602
   */
  async readResource(uri: string | URL, options?: CallOptions): Promise<ReadResourceResult> {
    const answer = this.request("resources/read", paramsOf.ofRead(uri, options), options);
    return new ReadResourceResult(await answer.catch((error) => Promise.reject(knownAsNotFound(error))));
  }

  /** Asks to hear of changes of a resource, by {@link ClientOptions.onResourceUpdated}. */
  async subscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    await this.request("resources/subscribe", { uri: paramsOf.uriOf("subscribe", uri) }, options);
  }

  /** No longer asks for it. */
  async unsubscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    await this.request("resources/unsubscribe", { uri: paramsOf.uriOf("unsubscribe", uri) }, options);
  }

  /**
   * Listens to changes at the server, in every revision. It begins at once, and leaving the loop ends it.
   *
   * ```ts
   * for await (const change of client.listen({ tools: true, uris: ["notes://today"] })) console.log(change.type);
   * ```
   * @throws {MisuseError} naming the option that is wrong
   */
  listen(options: ListenOptions): Listening {
    return new Listening(this.#native, options);
  }

  /**
   * Gets a prompt's messages. Arguments are text in the protocol: here dates become it by ISO 8601 and others as JSON;
   * null and undefined are left out.
   */
  async getPrompt(name: string, args: ArgumentsByName = {}, options?: CallOptions): Promise<GetPromptResult> {
    return (await this.request(
      "prompts/get",
      paramsOf.ofPrompt(name, args, options),
      options,
    )) as unknown as GetPromptResult;
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
    const result = await this.request("completion/complete", paramsOf.ofComplete(ref, argument, value, args), options);
    return whole(result["completion"] as CompleteResult["completion"], result);
  }

  /**
   * Asks for the server's log from this level on, by {@link ClientOptions.onLog}; a request's `meta` may ask for another.
   * @throws {UnsupportedError} when the server has no log
   * @deprecated MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry
   */
  async setLogLevel(level: LoggingLevel, options?: RequestOptions): Promise<void> {
    deprecated("setLogLevel", "logging");
    await this.request("logging/setLevel", { level }, options);
  }

  /**
   * Has these roots from now on, and tells the server; not in modern revisions, where it asks whenever it needs them.
   * @throws {MisuseError} when {@link ClientOptions.roots} was no list: give an empty one when there are none yet
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  setRoots(roots: readonly RootLike[]): void {
    deprecated("setRoots", "roots");
    if (!this.#listed) throw new MisuseError('setRoots: connect with the option "roots", a list, which may be empty');
    setRoots(this.#native, roots);
  }

  /**
   * Tells the server that what {@link ClientOptions.roots}, a function, gives has changed, as {@link setRoots} does by
   * itself.
   * @throws {MisuseError} when the client was connected without roots
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  rootsChanged(): void {
    deprecated("rootsChanged", "roots");
    this.notify("notifications/roots/list_changed");
  }

  /** Asks whether the server is still there: by `ping`, or by `server/discover` where the revision has none. */
  async ping(options?: RequestOptions): Promise<void> {
    await this.request("ping", undefined, options);
  }

  /**
   * Sends any request and returns its result object.
   * @throws {RpcError} when the server answered with an error
   * @throws {TimeoutError} when no answer came; the server has been told
   * @throws {ClosedError} when the connection is closed or ends meanwhile
   */
  request(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    return this.#request(method, params, options);
  }

  /**
   * Sends a notification.
   * @throws {ClosedError} when the connection is closed
   */
  notify(method: string, params?: Readonly<Record<string, unknown>>): void {
    native(() => this.#native.notify(method, paramsJson(method, params)));
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
   * `onResourceUpdated`, `onListChanged`, `onNotification` was given; else a program ends that waits for nothing: for no
   * answer, and no change that it {@link listen}s to.
   */
  ref(): this {
    this.#hold.want(true);
    return this;
  }

  /** Lets the program end though this client is connected: only requests that wait for their answer keep it running. */
  unref(): this {
    this.#hold.want(false);
    return this;
  }

  /**
   * Returns the steps of the last logins (asked, answered, decided), oldest first: 128 at most, without secrets.
   * Clients of one group share it. What {@link connect} throws has it, too: {@link TricornError.authTrace}.
   */
  authTrace(): AuthStep[] {
    return JSON.parse(this.#native.authTrace()) as AuthStep[];
  }

  /** Gauges of this connection: requests in flight, and so on. */
  metrics(): ClientMetrics {
    return JSON.parse(this.#native.metrics()) as ClientMetrics;
  }

  async #request(method: string, params: Members | undefined, options: RequestOptions, looks?: Looks) {
    if (this.#closing) throw new ClosedError("the client is closed");
    checkRequest(method, options);
    const send = (op: number, text: string | undefined, engine: string): void =>
      addon.request(this.#handle, op, method, text, engine);
    return requested(method, this.#traced(options), params, send, looks);
  }

  #task<T>(id: string, created: Readonly<Record<string, unknown>> | undefined): TaskHandle<T> {
    const send: Send = (method, params, options = {}, looks) => this.#request(method, params, options, looks);
    return new TaskHandle<T>(id, created, send, (number) => this.#native.endListening(number));
  }

  get #info(): Connected {
    if (!this.#connected) throw new MisuseError("the client is not connected yet");
    return this.#connected;
  }

  async #connect(server?: object, signal?: AbortSignal): Promise<void> {
    try {
      this.#open(await wait<Connected>((op) => this.#native.connect(op), signal), server);
    } catch (error) {
      this.#forget();
      if (error instanceof TricornError) Error.captureStackTrace(error);
      traceOf(error, () => this.authTrace());
      throw error;
    }
  }

  #open(info: Connected, server: object | undefined): void {
    this.#connected = info;
    // A group connects a client again that was closed, or lost its server.
    this.#closing = undefined;
    listen(this.#source, this.#hear);
    opened(this, server, this.#answers);
    this.#hold.connected(true);
  }

  #forget(): void {
    listen(this.#source, undefined);
    this.#hold.connected(false);
    closed(this);
  }
}
