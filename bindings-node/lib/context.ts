/** What a handler may know about its call, and do during it. */

import {
  CreateMessageResult,
  type Elicited,
  elicited,
  type SampleMessage,
  type SampleOptions,
  sampling,
} from "./ask.js";
import { native, PeerMisbehavedError } from "./errors.js";
import { asked, type Form } from "./form.js";
import type { Home } from "./handler.js";
import { bridge } from "./host.js";
import type { Kind } from "./kind.js";
import { type Logger, loggable, logger } from "./logger.js";
import { valuesOf } from "./passing.js";
import { own } from "./received.js";
import { type RequestOptions, requested } from "./requesting.js";
import type { Schema } from "./schema.js";
import type { Session } from "./session.js";
import type { Arguments } from "./tool.js";
import type {
  ClientCapabilities,
  ElicitResult,
  Implementation,
  LoggingLevel,
  MetaObject,
  ProgressToken,
  RequestId,
  Root,
} from "./types.js";

/** The request behind a call. Handlers cannot tell where it came from unless they look here. */
export interface RequestInfo {
  /** The JSON-RPC id. */
  readonly id: RequestId;
  /** The JSON-RPC method, such as `tools/call`. */
  readonly method: string;
  /** The protocol revision in force, such as `2025-11-25`. */
  readonly protocolVersion: string;
  /** `legacy`: opened by `initialize`. `modern`: stateless, everything is in the request. */
  readonly era: "legacy" | "modern";
  /** Who is calling, when the client said so. */
  readonly clientInfo: Implementation | undefined;
  /** What the client can do; see {@link Context.require}. */
  readonly clientCapabilities: ClientCapabilities;
  /** The request's `_meta`; empty when it has none. */
  readonly meta: MetaObject;
  /** Present when the client wants to hear of progress. */
  readonly progressToken: ProgressToken | undefined;
  /** The least severe level the client wants to hear of. */
  readonly logLevel: LoggingLevel | undefined;
  /** The task that the call runs as, where its client asked for one. */
  readonly taskId: string | undefined;
  /** How the request came; `memory` is a client in this process. */
  readonly transport: "stdio" | "http" | "memory";
  /** The `Mcp-Session-Id` of a legacy HTTP client. */
  readonly sessionId: string | undefined;
  /** The HTTP headers, names in lower case, repeated ones joined by `, `; empty on other transports. */
  readonly headers: { readonly [name: string]: string };
  /** All of it as the engine tells it, with names this version may not know. */
  readonly raw: { readonly [name: string]: unknown };
}

/** How the engine tells it: members without a value are left out. */
type Wire = Partial<Omit<RequestInfo, "id" | "headers" | "raw">> &
  Pick<RequestInfo, "method" | "protocolVersion" | "era" | "transport"> & {
    readonly requestId: RequestId;
    readonly headers?: readonly (readonly [name: string, value: string])[];
  };

/** The state of any server: functions want what their own has, so that no other type stands for all of them. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type AnyState = any;

/** @internal */
export let keyOf: (context: RequestContext) => number;

/** What a handler of either side knows of its request. Good for this one call. */
export class RequestContext {
  readonly #key: number;
  #request: RequestInfo | undefined;
  #controller: AbortController | undefined;
  #cancelled: DOMException | undefined;
  #values: Map<unknown, unknown> | undefined;

  static {
    keyOf = (context) => context.#key;
  }

  /** @internal */
  constructor(key: number) {
    this.#key = key;
  }

  /**
   * Aborted when nobody waits for this call any more: the peer cancelled it or went away.
   * The reason is an `AbortError`. Whatever the handler returns after that is dropped.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.#cancelled);
    }
    return this.#controller.signal;
  }

  /** True once {@link signal} is aborted. */
  get cancelled(): boolean {
    return this.#cancelled !== undefined;
  }

  /**
   * The request behind this call.
   *
   * @throws {Error} when the call has finished and this is the first time anybody asks.
   */
  get request(): RequestInfo {
    this.#request ??= read(this.#key);
    return this.#request;
  }

  /** What middleware and the handler of one request share, by any key. */
  get values(): Map<unknown, unknown> {
    this.#values ??= valuesOf(this.#key);
    return this.#values;
  }

  /**
   * Tells the peer how far this call is. Progress should grow with every report.
   *
   * @param total where progress ends, when known
   * @returns false when the call is over
   */
  progress(progress: number, total?: number, message?: string): boolean {
    return bridge.progress(this.#key, progress, total, message);
  }

  /**
   * Says what this call is doing, for who looks at its task; without one nobody does.
   *
   * @returns false when the call is over
   */
  setStatus(message: string): boolean {
    return bridge.setStatus(this.#key, message);
  }

  /** @internal */
  cancel(reason: string | null): void {
    if (this.#cancelled) return;
    this.#cancelled = new DOMException(reason ?? "the request was cancelled", "AbortError");
    this.#controller?.abort(this.#cancelled);
  }
}

/**
 * The optional second argument of every handler of a server. Good for this one call. `State` is what the server's
 * lifespan started.
 *
 * What asks the client rejects with `UnsupportedError` when the client does not declare that it answers,
 * with `RpcError` when it refuses, and with the reason of {@link signal} when this call is cancelled.
 */
export class Context<State = unknown> extends RequestContext {
  readonly #key: number;
  readonly #home: Home;
  /** What the server's lifespan started, or its option `state`. */
  readonly state: State;
  #logger: Logger | undefined;

  /** @internal */
  constructor(key: number, home: Home) {
    super(key);
    this.#key = key;
    this.#home = home;
    this.state = home.state as State;
  }

  /** What this client has that others have not: tools, resources and prompts of its session alone. */
  get session(): Session<State> {
    return this.#home.session?.(this.#key) as Session<State>;
  }

  /**
   * Sends a log message to the client, if it wants to hear of that level.
   *
   * @param data any JSON value, usually a string or an object; what is none is sent as the text that Node shows
   * @param logger the part of the program it comes from
   * @returns false when the client does not want it or the call is over
   */
  log(level: LoggingLevel, data: unknown, logger?: string): boolean {
    return native(() => bridge.log(this.#key, level, logger, loggable(data)));
  }

  /** {@link log} in the shape of `console` and of pino. */
  get logger(): Logger {
    this.#logger ??= logger((level, data, name) => this.log(level, data, name));
    return this.#logger;
  }

  /**
   * Checks that the client has a capability, such as `sampling`, `elicitation` or `elicitation.url`.
   *
   * @throws {RpcError} when it has not. Let it pass: it is the answer the client understands.
   */
  require(capability: string): void {
    native(() => bridge.require(this.#key, capability));
  }

  /**
   * Asks the user to fill in a form.
   *
   * ```ts
   * const answer = await ctx.elicit("Which size?", z.object({ size: z.enum(["S", "M", "L"]) }));
   * if (answer.action === "accept") order(answer.content.size);
   * ```
   *
   * @param schema an object of text, numbers, booleans and choices, nothing within something; of a schema library
   *   also one of these alone. What else the library wants is checked when the answer is here. A {@link Form} is made of
   *   the same, and checked before anybody is asked.
   * @throws {MisuseError} for a schema that no form can be made of
   * @throws {PeerMisbehavedError} when the answer does not fit the schema
   */
  async elicit<const S extends Schema>(
    message: string,
    schema: S | Form<S>,
    options?: RequestOptions,
  ): Promise<Elicited<Arguments<S>>> {
    const form = asked(schema as Schema | Form);
    const params = { mode: "form", message, requestedSchema: form.schema };
    return elicited(form, (await this.ask("elicitation/create", params, options)) as unknown as ElicitResult);
  }

  /**
   * Asks the user to visit a page, such as one to sign in. `accept` means that they will; when they are done there,
   * tell the client by {@link elicitationComplete} with the id.
   *
   * @param elicitationId names the question
   */
  async elicitUrl(
    message: string,
    url: string | URL,
    elicitationId: string,
    options?: RequestOptions,
  ): Promise<ElicitResult["action"]> {
    const params = { mode: "url", message, url: String(url), elicitationId };
    const { action } = (await this.ask("elicitation/create", params, options)) as unknown as ElicitResult;
    return action;
  }

  /**
   * Tells the client that the visit to a page is over (2025-11-25), so that it need not ask the user.
   *
   * @param elicitationId what the page was asked for with, by {@link elicitUrl} or a {@link UrlElicitationRequiredError}
   * @returns false when the call is over
   */
  elicitationComplete(elicitationId: string): boolean {
    return this.notify("notifications/elicitation/complete", { elicitationId });
  }

  /**
   * Lets the client's model write a message.
   *
   * ```ts
   * const { text } = await ctx.sample("Sum this up: …", { maxTokens: 200 });
   * ```
   *
   * @param messages text, which the user says, a message such as `user(…)`, or the conversation so far
   */
  async sample(
    messages: SampleMessage | readonly SampleMessage[],
    how: SampleOptions,
    options?: RequestOptions,
  ): Promise<CreateMessageResult> {
    return new CreateMessageResult(await this.ask("sampling/createMessage", sampling(messages, how), options));
  }

  /** Asks which folders and files this server may look at. */
  async listRoots(options?: RequestOptions): Promise<Root[]> {
    const { roots } = await this.ask("roots/list", undefined, options);
    if (!Array.isArray(roots)) throw new PeerMisbehavedError("roots/list: the result has no list of roots");
    return roots as Root[];
  }

  /**
   * Sends any request to the client, as part of this call, and returns its result object.
   *
   * @throws {UnsupportedError} when the client does not declare that it answers it, or the revision does not have it
   * @throws {RpcError} when the client answered with an error
   * @throws {TimeoutError} when no answer came; the client has been told
   */
  async ask(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    const { signal } = options;
    const either = signal ? AbortSignal.any([signal, this.signal]) : this.signal;
    try {
      return await requested({ ...options, signal: either }, params, (op, text, engine) =>
        bridge.ask(this.#key, op, method, text, engine),
      );
    } catch (error) {
      own(error, this.#key);
      throw error;
    }
  }

  /**
   * Sends a notification to the client, as part of this call.
   *
   * @returns false when the call is over
   * @throws {MisuseError} when a server has no such notification in this revision
   */
  notify(method: string, params?: Readonly<Record<string, unknown>>): boolean {
    return native(() => bridge.notify(this.#key, method, params && JSON.stringify(params)));
  }

  /**
   * Ends the event stream that the answer goes on, to free its connection while a long call runs. The client asks for
   * the rest after the server's `sseRetry`; what is sent meanwhile is kept for it. Where a client would not come back,
   * or there is no such stream, nothing happens.
   *
   * @returns false when the call is over
   */
  closeStream(): boolean {
    return bridge.closeStream(this.#key);
  }

  /**
   * Shows or hides something from this client alone, for as long as its session lives.
   *
   * @param name the name; of a resource the URI, of a template the URI template
   * @returns whether that changed anything
   * @throws {UnsupportedError} when the revision has no sessions
   */
  setEnabled(kind: Kind, name: string, enabled: boolean): boolean {
    return native(() => bridge.setEnabled(this.#key, kind, name, enabled));
  }
}

function read(key: number): RequestInfo {
  const text = bridge.context(key);
  if (text === null) throw new Error("the call has finished: read ctx.request while it runs");
  const wire = JSON.parse(text) as Wire;
  return {
    id: wire.requestId,
    method: wire.method,
    protocolVersion: wire.protocolVersion,
    era: wire.era,
    clientInfo: wire.clientInfo,
    clientCapabilities: wire.clientCapabilities ?? {},
    meta: wire.meta ?? {},
    progressToken: wire.progressToken,
    logLevel: wire.logLevel,
    taskId: wire.taskId,
    transport: wire.transport,
    sessionId: wire.sessionId,
    headers: joined(wire.headers ?? []),
    raw: wire,
  };
}

function joined(pairs: NonNullable<Wire["headers"]>): RequestInfo["headers"] {
  const headers = new Map<string, string>();
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    const before = headers.get(key);
    headers.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(headers);
}
