/** Clients of many servers, which are listed and called together. */

import type * as Addon from "../bridge/addon.js";
import { type ErrorRecord, errorFrom } from "../bridge/errors.js";
import { addon, bridge, say, wait, warn } from "../bridge/host.js";
import { nativeServer } from "../bridge/local-server.js";
import { withOptions } from "../bridge/options.js";
import { type CallOptions, REQUEST_OPTIONS, type RequestOptions } from "../call/options.js";
import { engineRequest } from "../call/request-options.js";
import { MisuseError, type TricornError, traceOf } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import { checkNames, shown } from "../json/checks.js";
import { deprecated } from "../json/deprecation.js";
import { stringify } from "../json/encoding.js";
import type { Kind } from "../model/definitions.js";
import type { CallToolResult, ReadResourceResult, Suggestions } from "../model/results.js";
import type {
  GetPromptResult,
  LoggingLevel,
  Prompt,
  PromptReference,
  Resource,
  ResourceTemplate,
  ResourceTemplateReference,
  Tool,
} from "../types.js";
import { type Client, clientOf, connected } from "./client.js";
import type { Connected } from "./connection.js";
import { type ClientOptions, type GroupOptions, OWN } from "./options.js";
import type { ArgumentsByName } from "./requests.js";
import * as paramsOf from "./requests.js";
import { engineOptions, withPolicy } from "./settings.js";
import { type ConfigTarget, isLocal, resolve, type Target } from "./target.js";

/** The path of an `mcp.json`, what it holds, or targets by name. Entries that are `"disabled": true` are left out. */
export type Targets = string | ConfigTarget | Readonly<Record<string, Target>>;

/** Something that a server lists: `server` is its name in the group. */
export type Listed<T> = T & { readonly server: string };

/** Something that a server of a group lists, and the name by which the group knows it. */
export interface Entry<T> {
  /** The server's name in the group. */
  readonly server: string;
  /** The public name: the thing's own, with the server's before it where several servers have one of that name. */
  readonly name: string;
  /** The definition as the server gave it. */
  readonly definition: T;
}

/** Entries of one kind from the servers of a group. */
export interface Listing<T> {
  /** In the servers' order, then in each server's own. */
  readonly entries: readonly Entry<T>[];
  /** Errors of the servers whose lists are missing, by the server's name. */
  readonly failures: ReadonlyMap<string, TricornError>;
}

interface Definitions {
  readonly tool: Tool;
  readonly resource: Resource;
  readonly resource_template: ResourceTemplate;
  readonly prompt: Prompt;
}

type Failures = Readonly<Record<string, ErrorRecord>>;

/**
 * Connects to many servers at once. One that fails is among {@link ClientGroup.failures} and does not disturb the others.
 *
 * ```ts
 * const group = await connectMany("mcp.json");
 * for (const tool of await group.listTools()) console.error(tool.server, tool.name);
 * await group.close();
 * ```
 *
 * @throws {MisuseError} for a file that cannot be read, a wrong option, more than 64 servers
 */
export async function connectMany(servers: Targets, options: GroupOptions = {}): Promise<ClientGroup> {
  const group = new ClientGroup(servers, options);
  try {
    await begin(group, options.signal);
  } catch (error) {
    // Some may be connected already.
    group.close().catch(() => {});
    throw error;
  }
  return group;
}

let begin: (group: ClientGroup, signal: AbortSignal | undefined) => Promise<void>;

/** Clients of many servers. Made by {@link connectMany}. What they offer is found by names that are unique in the group. */
export class ClientGroup {
  readonly #engine: Addon.ClientGroup;
  readonly #options: GroupOptions;
  /** The functions of authorization, which all clients share. */
  readonly #kept: readonly object[];
  readonly #clients = new Map<string, { readonly client: Client; readonly server?: object | undefined }>();
  readonly #ready = new Set<string>();
  #closing: Promise<void> | undefined;

  static {
    begin = (group, signal) => group.#connect(signal);
  }

  /** @internal */
  constructor(servers: Targets, options: GroupOptions) {
    this.#options = withPolicy(options);
    const { forServer, server, ...rest } = options as GroupOptions & Pick<ClientOptions, "server">;
    if (server !== undefined) {
      throw new MisuseError('group options: the option "server" is for clients of one server');
    }
    if (forServer !== undefined && typeof forServer !== "function") {
      throw new MisuseError(`forServer: expected a function, got ${shown(forServer)}`);
    }
    const own = [...OWN.filter((name) => name !== "server"), "connectTimeout", "prefix", "forServer"];
    const { engine, kept } = engineOptions(rest);
    this.#kept = kept;
    const file = typeof servers === "string" || isConfig(servers);
    const wire = file ? listed(servers, options) : "[]";
    this.#engine = withOptions(() => new addon.ClientGroup(bridge, wire, engine), own, "group options");
    for (const name of this.#engine.names()) {
      this.#seat(name, (source) => {
        const made = this.#engine.client(name, source);
        if (!made) throw new MisuseError(`server "${name}": there is none`);
        return { engine: made };
      });
    }
    if (!file) for (const [name, target] of Object.entries(servers)) this.#add(name, target);
  }

  /** The servers' names in their order, those that failed included. */
  get names(): readonly string[] {
    return this.#engine.names();
  }

  /** Errors of servers that are not connected, by name: they could not be reached, or their connection has ended. */
  get failures(): ReadonlyMap<string, TricornError> {
    const failures = failuresOf(JSON.parse(this.#engine.failures()) as Failures);
    for (const [name, error] of failures) this.#trace(name, error);
    return failures;
  }

  /** The client of one server, for everything that the group does not do itself; undefined when it never connected. */
  client(name: string): Client | undefined {
    return this.#ready.has(name) ? this.#clients.get(name)?.client : undefined;
  }

  /**
   * Adds a server and connects to it. One that fails stays in the group, as a failure.
   *
   * @throws {MisuseError} when there is one of that name or there are 64
   */
  async add(name: string, target: Target): Promise<Client> {
    this.#add(name, target);
    return this.reconnect(name);
  }

  /** Takes a server out of the group and ends its connection. Says whether there was one. */
  async remove(name: string): Promise<boolean> {
    const there = await wait<boolean>((op) => this.#engine.remove(op, name));
    const seat = this.#clients.get(name);
    this.#clients.delete(name);
    this.#ready.delete(name);
    await seat?.client.close();
    return there;
  }

  /** Ends the server's connection, if it has one, and connects anew. */
  async reconnect(name: string): Promise<Client> {
    try {
      const info = await wait<Connected>((op) => this.#engine.reconnect(op, name));
      return this.#connected(name, info);
    } catch (error) {
      this.#trace(name, error);
      throw error;
    }
  }

  /** Lists all entries of one kind, with the servers that failed to list theirs. */
  async list<K extends Kind>(kind: K, options: RequestOptions = {}): Promise<Listing<Definitions[K]>> {
    checkNames(`${kind}s`, options, REQUEST_OPTIONS);
    const start = (op: number): void => this.#engine.list(op, kind, engineRequest(options));
    const { entries, failures } = await wait<{
      readonly entries: readonly Entry<Definitions[K]>[];
      readonly failures: Failures;
    }>(start, options.signal);
    return { entries, failures: failuresOf(failures) };
  }

  /** The tools of all servers, each under its public name. A server whose list fails is warned of, and left out. */
  listTools(options?: RequestOptions): Promise<Listed<Tool>[]> {
    return this.#listed("tool", options, true);
  }

  /** The resources of all servers. */
  listResources(options?: RequestOptions): Promise<Listed<Resource>[]> {
    return this.#listed("resource", options, false);
  }

  /** The resource templates of all servers. */
  listResourceTemplates(options?: RequestOptions): Promise<Listed<ResourceTemplate>[]> {
    return this.#listed("resource_template", options, false);
  }

  /** The prompts of all servers, each under its public name. */
  listPrompts(options?: RequestOptions): Promise<Listed<Prompt>[]> {
    return this.#listed("prompt", options, true);
  }

  /** As {@link listTools}, for `for await`. */
  async *tools(options?: RequestOptions): AsyncGenerator<Listed<Tool>, void, undefined> {
    yield* await this.listTools(options);
  }

  /** As {@link listResources}, for `for await`. */
  async *resources(options?: RequestOptions): AsyncGenerator<Listed<Resource>, void, undefined> {
    yield* await this.listResources(options);
  }

  /** As {@link listResourceTemplates}, for `for await`. */
  async *resourceTemplates(options?: RequestOptions): AsyncGenerator<Listed<ResourceTemplate>, void, undefined> {
    yield* await this.listResourceTemplates(options);
  }

  /** As {@link listPrompts}, for `for await`. */
  async *prompts(options?: RequestOptions): AsyncGenerator<Listed<Prompt>, void, undefined> {
    yield* await this.listPrompts(options);
  }

  /**
   * Calls a tool by its public name; see {@link Client.callTool}.
   *
   * @throws {MisuseError} when no server has such a tool
   */
  async callTool<T = unknown>(name: string, args?: ArgumentsByName, options?: CallOptions): Promise<CallToolResult<T>> {
    paramsOf.ofCall("callTool", name, args ?? {}, options);
    const { client, name: own } = await this.#route("tool", name, options);
    return client.callTool<T>(own, args, options);
  }

  /**
   * Reads a resource from the server that lists it, else from the one that has a template for it, else from the only one
   * that has resources.
   *
   * @throws {MisuseError} when it could be several servers', or nobody's
   */
  async readResource(uri: string | URL, options?: CallOptions): Promise<ReadResourceResult> {
    const { client, name } = await this.#route("resource", paramsOf.uriOf("readResource", uri), options);
    return client.readResource(name, options);
  }

  /** Asks to hear of changes of a resource; whose it is, {@link readResource} says. */
  async subscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    const { client, name } = await this.#route("resource", paramsOf.uriOf("subscribe", uri), options);
    await client.subscribe(name, options);
  }

  /** No longer asks for it. */
  async unsubscribe(uri: string | URL, options?: RequestOptions): Promise<void> {
    const { client, name } = await this.#route("resource", paramsOf.uriOf("unsubscribe", uri), options);
    await client.unsubscribe(name, options);
  }

  /** Gets a prompt's messages by its public name; see {@link Client.getPrompt}. */
  async getPrompt(name: string, args?: ArgumentsByName, options?: CallOptions): Promise<GetPromptResult> {
    paramsOf.ofPrompt(name, args ?? {}, options);
    const { client, name: own } = await this.#route("prompt", name, options);
    return client.getPrompt(own, args, options);
  }

  /** Asks for suggestions for an argument of a prompt, by its public name, or a variable of a resource template. */
  async complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: string,
    value: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ): Promise<Suggestions> {
    paramsOf.ofComplete(ref, argument, value, args);
    const prompt = ref.type === "ref/prompt";
    const { client, name } = await this.#route(
      prompt ? "prompt" : "resource_template",
      prompt ? ref.name : ref.uri,
      options,
    );
    const own = prompt ? { ...ref, name } : { ...ref, uri: name };
    return client.complete(own, argument, value, args, options);
  }

  /**
   * Asks all servers that log, now and later, for their log from this level on.
   *
   * @returns those whose answer was an error, by name
   * @deprecated MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry
   */
  async setLogLevel(level: LoggingLevel, options: RequestOptions = {}): Promise<ReadonlyMap<string, TricornError>> {
    deprecated("setLogLevel", "logging");
    checkNames("logging/setLevel", options, REQUEST_OPTIONS);
    const start = (op: number): void => this.#engine.setLogLevel(op, level);
    const { failures } = await wait<{ readonly failures: Failures }>(start, options.signal);
    return failuresOf(failures);
  }

  /** Ends all connections. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await wait((op) => this.#engine.close(op));
    await Promise.all([...this.#clients.values()].map(({ client }) => client.close()));
    this.#clients.clear();
    this.#ready.clear();
  }

  async #connect(signal: AbortSignal | undefined): Promise<void> {
    const start = (op: number): void => this.#engine.connect(op);
    const { servers } = await wait<{ readonly servers: Readonly<Record<string, Connected>> }>(start, signal);
    for (const [name, info] of Object.entries(servers)) this.#connected(name, info);
  }

  #trace(name: string, error: unknown): void {
    const client = this.#clients.get(name)?.client;
    if (client) traceOf(error, () => client.authTrace());
  }

  #connected(name: string, info: Connected): Client {
    const seat = this.#clients.get(name);
    if (!seat) throw new MisuseError(`server "${name}": it was removed meanwhile`);
    connected(seat.client, info, seat.server);
    this.#ready.add(name);
    return seat.client;
  }

  #add(name: string, target: Target): void {
    if (isLocal(target)) {
      this.#seat(name, (source) => ({ engine: this.#engine.addServer(name, source, nativeServer(target)) }), target);
      return;
    }
    const { wire, stderr } = resolve(target, undefined, this.#heard(name).onStderr !== undefined);
    this.#seat(name, (source) => ({ engine: this.#engine.add(name, source, wire), onStderr: stderr }));
  }

  /** Returns the handlers and listeners of this server. */
  #heard(name: string): ClientOptions {
    const { forServer } = this.#options;
    // Where one server's stderr is heard, all of them are read here.
    return { ...(forServer && { onStderr: toStderr }), ...this.#options, ...withPolicy(forServer?.(name) ?? {}) };
  }

  #seat(name: string, make: Parameters<typeof clientOf>[0], server?: object): void {
    const client = clientOf((source) => ({ ...withOptions(() => make(source)), kept: this.#kept }), this.#heard(name));
    this.#clients.set(name, { client, server });
  }

  async #listed<K extends Kind>(
    kind: K,
    options: RequestOptions | undefined,
    renamed: boolean,
  ): Promise<Listed<Definitions[K]>[]> {
    const { entries, failures } = await this.list(kind, options);
    for (const [server, error] of failures)
      warn(`server "${server}": its ${kind}s could not be listed: ${error.message}`);
    return entries.map(({ server, name, definition }) => ({ ...definition, ...(renamed && { name }), server }));
  }

  /** Finds the client to ask, and the name to ask it for. */
  async #route(
    kind: Kind,
    name: string,
    options: RequestOptions | undefined,
  ): Promise<{ readonly client: Client; readonly name: string }> {
    const start = (op: number): void => this.#engine.route(op, kind, name);
    const found = await wait<{ readonly server: string; readonly name: string }>(start, options?.signal);
    const client = this.#clients.get(found.server)?.client;
    if (!client) throw new MisuseError(`server "${found.server}": it was removed meanwhile`);
    return { client, name: found.name };
  }
}

/** Keys under which hosts keep their servers, and those of a single target, which a table of targets has not. */
const ROOTS = ["mcpServers", "servers", "mcp", "mcp.servers", "context_servers"];
const ENTRY = ["command", "url", "serverUrl", "httpUrl", "transport", "file", "text", "type"];

function isConfig(servers: object): servers is ConfigTarget {
  return ROOTS.some((name) => {
    const root = (servers as Readonly<Record<string, unknown>>)[name];
    const isTable = typeof root === "object" && root !== null && Object.getPrototypeOf(root) === Object.prototype;
    return isTable && !ENTRY.some((member) => member in root);
  });
}

/** A configuration as the engine takes it. */
function listed(servers: string | ConfigTarget, { onStderr, forServer }: GroupOptions): string {
  const hears = onStderr !== undefined || forServer !== undefined;
  if (typeof servers !== "string") {
    if ("mcpServers" in servers) return resolve(servers, undefined, hears).wire;
    return stringify({ ...(hears && { stderr: "event" }), ...(servers as object) });
  }
  return stringify({ file: servers, ...(hears && { stderr: "event" }) });
}

function toStderr(line: string): void {
  say(line);
}

function failuresOf(records: Failures): ReadonlyMap<string, TricornError> {
  return new Map(Object.entries(records).map(([name, record]) => [name, received(errorFrom(record))]));
}
