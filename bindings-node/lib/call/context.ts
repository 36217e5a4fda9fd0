/**
 * The running call as its handler sees it, and the handlers themselves: a context leads to the session of its client, and
 * what is added there has handlers, which get a context.
 */

import { native } from "../bridge/errors.js";
import { bridge } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { own } from "../errors/origin.js";
import { checkNames, checkTypes } from "../json/checks.js";
import { deprecated } from "../json/deprecation.js";
import { paramsJson, stringify } from "../json/encoding.js";
import type { Arguments, JsonSchema, Schema } from "../json/schema.js";
import type { Kind } from "../model/definitions.js";
import type { Elicited, Form } from "../model/forms.js";
import { InputRequired } from "../model/input-required.js";
import type { CacheHints } from "../model/options.js";
import type { Principal } from "../model/principal.js";
import { type Asked, Question } from "../model/questions.js";
import type { Completion, Whole } from "../model/results.js";
import type { CreateMessageResult, SampleMessage, SampleOptions } from "../model/sampling.js";
import type { Annotations, ElicitResult, Icon, LoggingLevel, MetaObject, PromptArgument, Root } from "../types.js";
import { type Logger, loggable, logger } from "./logger.js";
import { REQUEST_OPTIONS, type RequestOptions } from "./options.js";
import { RequestContext } from "./request-context.js";
import { requested } from "./request-options.js";
import type {
  AnyFunction,
  AnyOptions,
  PromptArguments,
  PromptValue,
  ResourceArguments,
  ResourceValue,
  Returns,
} from "./signature.js";
import { type Given, given, heardOf, stepped, workOnce } from "./steps.js";
import type { ToolOptions } from "./tool-options.js";

/** The state of any server: functions want what their own has, so that no other type stands for all of them. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type AnyState = any;

/** Data of any web framework for a request: functions say which they want. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type AnyHost = any;

/**
 * The optional second argument of every handler of a server. Good for this one call. `State` is what the server's
 * lifespan started.
 *
 * What asks the client rejects with `UnsupportedError` when the client does not declare that it answers,
 * with `RpcError` when it refuses, and with the reason of {@link signal} when this call is cancelled. In revision
 * 2026-07-28 it rejects with `InputRequired` when the client has not answered yet: the handler runs again when it has.
 */
export class Context<State = unknown, Host = AnyHost> extends RequestContext {
  readonly #key: number;
  readonly #home: Home;
  /** The value that the server's lifespan started, or its option `state`. */
  readonly state: State;
  /**
   * The web framework's own data of the request, for a mounted server: the `context` given with it to `fetch` or
   * `listener`. Undefined where none was, as over standard streams and in memory.
   */
  readonly host: Host | undefined;
  #logger: Logger | undefined;
  #input: Given | undefined;

  /** @internal */
  constructor(key: number, home: Home, host?: unknown) {
    super(key);
    this.host = host as Host | undefined;
    this.#key = key;
    this.#home = home;
    this.state = home.state as State;
  }

  /**
   * The principal that sent the request, where the server has `auth`; undefined where it has not, and over other
   * transports than HTTP.
   *
   * @throws {Error} when the call has finished and this is the first time anybody asks for its request
   */
  get principal(): Principal | undefined {
    return this.request.principal;
  }

  /** The session of this client: tools, resources and prompts for it alone. */
  get session(): Session<State> {
    return this.#home.session?.(this.#key) as Session<State>;
  }

  /**
   * Sends a log message to the client, if it wants to hear of that level.
   *
   * @param data any JSON value, usually a string or an object; what is none is sent as the text that Node shows
   * @param logger the part of the program it comes from
   * @returns false when the client does not want it or the call is over
   * @deprecated MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry
   */
  log(level: LoggingLevel, data: unknown, logger?: string): boolean {
    deprecated("log", "logging");
    checkTypes("log", ["level", level, "string"], ["logger", logger, "string", "optional"]);
    return native(() => bridge.log(this.#key, level, logger, loggable(data)));
  }

  /**
   * {@link log} in the shape of `console` and of pino.
   *
   * @deprecated MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry
   */
  get logger(): Logger {
    this.#logger ??= logger((level, data, name) => this.log(level, data, name));
    return this.#logger;
  }

  /**
   * The settings with which the client declares an extension, such as `com.example/search`, in this request; undefined
   * when it does not, or this server does not offer the extension: then nothing of it may be used.
   *
   * @throws {Error} when the call has finished and this is the first time anybody asks for its request
   */
  extension(id: string): Readonly<Record<string, unknown>> | undefined {
    checkTypes("extension", ["id", id, "string"]);
    return this.#home.extensions?.has(id) ? this.request.clientCapabilities.extensions?.[id] : undefined;
  }

  /**
   * Checks that the client has a capability, such as `sampling`, `elicitation` or `elicitation.url`.
   *
   * @throws {RpcError} when it has not. Let it pass: it is the answer the client understands.
   */
  require(capability: string): void {
    checkTypes("require", ["capability", capability, "string"]);
    native(() => bridge.require(this.#key, capability));
  }

  /**
   * Asks the user to fill in a form. In revision 2026-07-28 the code before a question runs again when its answer is
   * here: {@link step} is for what must not.
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
   * @throws {InputRequired} when this run ends here; let it pass
   */
  elicit<const S extends Schema>(
    message: string,
    schema: S | Form<S>,
    options?: RequestOptions,
  ): Promise<Elicited<Arguments<S>> & Whole> {
    return heardOf(this.#answer(() => Question.elicit(message, schema), options));
  }

  /**
   * Asks the user to visit a page, such as one to sign in. In revision 2026-07-28 the code before a question runs again
   * when its answer is here: {@link step} is for what must not. The action `accept` means that they will visit it; when
   * they are done, tell the client by {@link elicitationComplete} with the id.
   *
   * @param elicitationId names the question
   * @throws {InputRequired} when this run ends here; let it pass
   */
  elicitUrl(
    message: string,
    url: string | URL,
    elicitationId: string,
    options?: RequestOptions,
  ): Promise<Pick<ElicitResult, "action"> & Whole> {
    return heardOf(this.#answer(() => Question.elicitUrl(message, url, elicitationId), options));
  }

  /**
   * Tells the client that the visit to a page is over (2025-11-25), so that it need not ask the user.
   *
   * @param elicitationId what the page was asked for with, by {@link elicitUrl} or a {@link UrlElicitationRequiredError}
   * @returns false when the call is over: {@link Server.elicitationComplete} tells it then
   */
  elicitationComplete(elicitationId: string): boolean {
    return this.notify("notifications/elicitation/complete", { elicitationId });
  }

  /**
   * Lets the client's model write a message. In revision 2026-07-28 the code before a question runs again when its
   * answer is here: {@link step} is for what must not.
   *
   * ```ts
   * const { text } = await ctx.sample("Sum this up: …", { maxTokens: 200 });
   * ```
   *
   * @param messages text, which the user says, a message such as `user(…)`, or the conversation so far
   * @throws {InputRequired} when this run ends here; let it pass
   * @deprecated MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider
   */
  sample(
    messages: SampleMessage | readonly SampleMessage[],
    how: SampleOptions,
    options?: RequestOptions,
  ): Promise<CreateMessageResult> {
    return heardOf(this.#answer(() => Question.sample(messages, how), options));
  }

  /**
   * Asks which folders and files this server may look at. In revision 2026-07-28 the code before a question runs again
   * when its answer is here: {@link step} is for what must not.
   *
   * @throws {InputRequired} when this run ends here; let it pass
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  listRoots(options?: RequestOptions): Promise<Root[] & Whole> {
    return heardOf(this.#answer(() => Question.listRoots(), options));
  }

  /**
   * Asks several questions at once; in revision 2026-07-28, where code before them runs again, in one round. When one of
   * them fails, so does this, and the others are cancelled.
   *
   * ```ts
   * const [name, roots] = await ctx.askAll([Question.elicit("Your name?", form), Question.listRoots()]);
   * ```
   *
   * @param options hold for each of them
   * @returns the answers, in the order of the questions
   * @throws as {@link elicit} and its like
   */
  askAll<const Questions extends readonly Question[]>(
    questions: Questions,
    options: RequestOptions = {},
  ): Promise<Asked<Questions>> {
    return heardOf(this.#all(questions, options) as Promise<Asked<Questions>>);
  }

  async #all(questions: readonly Question[], options: RequestOptions): Promise<unknown[]> {
    if (!Array.isArray(questions) || !questions.every((one) => one instanceof Question)) {
      throw new MisuseError("askAll: expected a list of questions, such as Question.elicit(…)");
    }
    const failed = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, failed.signal]) : failed.signal;
    const together = questions.map(({ method, params = {} }) => `[${stringify(method)},${paramsJson(method, params)}]`);
    const answers = questions.map((question) => this.#answer(() => question, { ...options, signal }, together));
    try {
      return await Promise.all(answers);
    } catch (error) {
      // The others end their run as well.
      if (!(error instanceof InputRequired)) failed.abort(error);
      await Promise.allSettled(answers);
      throw error;
    }
  }

  /** @param together all that are asked at the same time, as JSON: the engine sends none when one cannot be asked */
  async #answer<T>(
    question: () => Question<T>,
    options: RequestOptions | undefined,
    together: readonly string[] = [],
  ): Promise<T> {
    const { method, params, read, judged } = question();
    return read(await heardOf(this.#ask(method, params, options ?? {}, together, judged)));
  }

  /**
   * Does something once, in whichever round the handler comes to it first, and gives its result in every round: what must
   * not happen again when the handler runs again, after a question of revision 2026-07-28 (specification, "Multi
   * Round-Trip Requests"). In other revisions a handler runs once, unless it throws an {@link InputRequired} of its own.
   *
   * ```ts
   * const { id } = await ctx.step("reserve", () => reserve(seat));
   * const answer = await ctx.elicit("Book it?", form);
   * ```
   *
   * @param name one of its own for each step of a handler
   * @param work what it returns, now or later, has to be JSON, and comes back as what JSON makes of it: a date as text.
   *   It travels in the request's sealed state, so it has to be small. What fails is not done: the next round does it.
   *   What is at work when a question ends the run is waited for. It asks no questions itself. Of one that returns
   *   nothing the result is null
   * @throws {MisuseError} for a second step of this name in one run, and a result that is no JSON
   */
  async step<T>(name: string, work: () => T | PromiseLike<T>): Promise<T> {
    checkTypes("step", ["name", name, "string"]);
    if (typeof work !== "function") throw new MisuseError(`step "${name}": expected a function`);
    const before = stepped<T>(this.#key, name);
    if (before) return before.result;
    const working = workOnce(this.#key, name, work);
    this.atWork ??= new Set();
    this.atWork.add(working);
    try {
      return await working;
    } finally {
      this.atWork.delete(working);
    }
  }

  /**
   * Answers to the questions of this handler's own {@link InputRequired} in the last round: by its keys, results
   * as the client sent them, unchecked. Empty in the first round; what is missing or wrong is to be asked again.
   *
   * @throws {RpcError} (-32602) when the request's state is not this server's: let it pass
   * @throws {Error} when the call has finished and this is the first time anybody asks
   */
  get inputResponses(): { readonly [key: string]: unknown } {
    return this.#given().inputResponses;
  }

  /**
   * State that this handler kept with its own {@link InputRequired} in the last round; undefined when there is nothing.
   *
   * @throws as {@link inputResponses}
   */
  get requestState(): unknown {
    return this.#given().state;
  }

  #given(): Given {
    this.#input ??= given(this.#key);
    return this.#input;
  }

  /**
   * Sends any request to the client, as part of this call, and returns its result object. In revision 2026-07-28 there
   * are questions only, and the code before one runs again: {@link step} is for what must not.
   *
   * @throws {UnsupportedError} when the client does not declare that it answers it, or the revision does not have it
   * @throws {RpcError} when the client answered with an error
   * @throws {TimeoutError} when no answer came; the client has been told
   * @throws {InputRequired} when this run ends here; let it pass
   */
  ask(
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    return heardOf(this.#ask(method, params, options));
  }

  async #ask(
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
    options: RequestOptions,
    together: readonly string[] = [],
    judged = false,
  ): Promise<Record<string, unknown>> {
    checkNames(method, options, REQUEST_OPTIONS);
    const { signal } = options;
    const either = signal ? AbortSignal.any([signal, this.signal]) : this.signal;
    try {
      return await requested(method, { ...options, signal: either }, params, (op, text, engine) =>
        bridge.ask(this.#key, op, method, text, questionOptions(engine, together, judged)),
      );
    } catch (error) {
      own(error, this.#key);
      if (error instanceof InputRequired) this.stopped = true;
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
    checkTypes("notify", ["method", method, "string"]);
    return native(() => bridge.notify(this.#key, method, paramsJson(method, params)));
  }

  /**
   * Goes on as a task (revision 2026-07-28, extension `io.modelcontextprotocol/tasks`): the client is answered with the
   * task at once, may go away, and comes back for the result; what is asked from now on waits in the task until then. A
   * tool that is always to do so says `taskSupport`.
   *
   * @returns false when the client does not declare the extension, or the server has no tasks (option `tasks`): nothing
   *   has changed then
   * @throws {RpcError} when too many tasks are being worked on
   * @throws {MisuseError} while questions of the request wait for their answers
   * @throws {CancelledError} when the call is over
   */
  runAsTask(): boolean {
    return native(() => bridge.runAsTask(this.#key));
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
    checkTypes("setEnabled", ["kind", kind, "string"], ["name", name, "string"], ["enabled", enabled, "boolean"]);
    return native(() => bridge.setEnabled(this.#key, kind, name, enabled));
  }
}

/** The options of a question, with all that are asked at the same time, and that a schema library judges its answer. */
function questionOptions(engine: string, together: readonly string[], judged: boolean): string {
  const members = [engine.slice(1, -1), together.length > 1 && `"together":[${together.join(",")}]`];
  if (judged) members.push('"judged":true');
  return members.some(Boolean) ? `{${members.filter(Boolean).join(",")}}` : engine;
}

/** A plain function: typed arguments in, plain value out, now or later. */
export type ToolHandler<Input, Output, State = unknown> = (
  args: Arguments<Input>,
  ctx: Context<State>,
) => Returns<Output> | Promise<Returns<Output>>;

/** Options of a prompt, beside its name and its function. All optional. */
export interface PromptOptions<Input extends Schema | undefined = undefined, State = unknown> {
  /** A description of its purpose. */
  readonly description?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** The arguments: they come as text, and what the schema wants otherwise is converted. */
  readonly input?: Input | undefined;
  /** The JSON Schema of the arguments, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** The arguments as clients see them. Default: made of the schema. */
  readonly arguments?: readonly PromptArgument[] | undefined;
  /** Suggestions for the arguments: functions, or all values that there are. */
  readonly complete?: { readonly [Name in keyof Arguments<Input> & string]?: Completes<State> | undefined } | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /** The prompt's `_meta`. */
  readonly meta?: MetaObject | undefined;
  /**
   * Scopes that the caller's access token needs, all of them: a caller without them neither sees it in a list nor may
   * use it. Over HTTP nobody may where the server has no `auth`; in one process and over standard streams nobody is
   * asked. Default: nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[] | undefined;
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean | undefined;
  /** True puts it in the place of the prompt of this name, if there is one; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean | undefined;
}

/** A plain function: typed arguments in, text or messages out, now or later. */
export type PromptHandler<Input, State = unknown> = (
  args: PromptArguments<Input>,
  ctx: Context<State>,
) => PromptValue | Promise<PromptValue>;

/** Options of a resource or a template, beside its URI and its function. All optional. */
export interface ResourceOptions<
  Input extends Schema | undefined = undefined,
  Names extends string = string,
  State = unknown,
> {
  /** Default: the function's name, else the URI. */
  readonly name?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** A description for the model. */
  readonly description?: string | undefined;
  /** The MIME type of the contents: `text/plain`, `image/png`, … */
  readonly mimeType?: string | undefined;
  /** Bytes, when known. Not of a template. */
  readonly size?: number | undefined;
  /** The audience, the importance, and the time of the last change. */
  readonly annotations?: Annotations | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /** The resource's `_meta`. */
  readonly meta?: MetaObject | undefined;
  /**
   * Scopes that the caller's access token needs, all of them: a caller without them neither sees it in a list nor may
   * use it. Over HTTP nobody may where the server has no `auth`; in one process and over standard streams nobody is
   * asked. Default: nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[] | undefined;
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean | undefined;
  /** True puts it in the place of what has this URI, if there is something; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean | undefined;
  /** Lifetime and audience of what is read, in caches. Default: what the server's option `cache` says. */
  readonly cache?: CacheHints | undefined;
  /** The variables of a template: they come as text, and what the schema wants otherwise is converted. Default: text. */
  readonly input?: Input | undefined;
  /** The JSON Schema of the variables, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** Suggestions for the variables of a template: functions, or all values that there are. */
  readonly complete?: { readonly [Name in Names]?: Completes<State> | undefined } | undefined;
}

/** Reads a resource: returns text, bytes, {@link Contents}, several of those, or anything that is JSON. */
export type ResourceHandler<Args, State = unknown> = (args: Args, ctx: Context<State>) => unknown;

/**
 * Suggests values for one argument.
 *
 * @param value what has been typed so far
 * @param args the other arguments, as far as they are known
 */
export type Completer<State = unknown> = (
  value: string,
  args: Readonly<Record<string, string>>,
  ctx: Context<State>,
) => Completion | Promise<Completion>;

/** A source of suggestions for one argument: a function, or all values that there are. */
export type Completes<State = unknown> = Completer<State> | readonly string[];

export type AnyPromptOptions = PromptOptions<Schema | undefined, AnyState>;

/** Adds tools, resources and prompts, and takes them away: a server does, for all clients or for one. */
export interface Registry {
  tool(name: string, first: AnyOptions | AnyFunction, second?: AnyFunction): void;
  resource(uri: string, ...rest: [unknown, unknown?]): void;
  prompt(name: string, first: AnyPromptOptions | AnyFunction, second?: AnyFunction): void;
  remove(kind: Kind, name: string): boolean;
}

/** Tools, resources and prompts that come and go. */
export abstract class Offer<State> {
  readonly #registry: Registry;

  /** @internal */
  constructor(registry: Registry) {
    this.#registry = registry;
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
    handler: ToolHandler<Input, Output, State>,
  ): this;
  /** Adds a tool that takes any object and says nothing about itself. */
  tool(name: string, handler: ToolHandler<undefined, undefined, State>): this;
  tool(name: string, first: AnyOptions | AnyFunction, second?: AnyFunction): this {
    this.#registry.tool(name, first, second);
    return this;
  }

  /**
   * Adds a resource, or, when the URI has `{variables}`, a template of resources (RFC 6570).
   *
   * ```ts
   * app.resource("config://app", { mimeType: "application/json" }, () => ({ debug: true }));
   * app.resource("notes://{day}", ({ day }) => notes.get(day) ?? "nothing");
   * ```
   *
   * The function gets the variables, else `{ uri }`. It returns text, bytes, `{ text | blob, mimeType }`, several of
   * those, or anything that is JSON. It throws `ResourceNotFoundError` where there is nothing. What does not change
   * may stand in place of the function. Variables are what a client says: check them before they become a path.
   *
   * @throws {MisuseError} for a URI that is taken, or none
   */
  resource<const Uri extends string, const Input extends Schema | undefined = undefined>(
    uri: Uri,
    options: ResourceOptions<Input, keyof ResourceArguments<Uri, Input> & string, State>,
    body: ResourceHandler<ResourceArguments<Uri, Input>, State> | ResourceValue,
  ): this;
  /** Adds a resource that says nothing about itself. */
  resource<const Uri extends string>(
    uri: Uri,
    body: ResourceHandler<ResourceArguments<Uri, undefined>, State> | string | Uint8Array,
  ): this;
  resource(uri: string, ...rest: [unknown, unknown?]): this {
    this.#registry.resource(uri, ...rest);
    return this;
  }

  /**
   * Adds a prompt.
   *
   * ```ts
   * app.prompt("greet", { input: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}.`);
   * ```
   *
   * It returns text, which the user says, messages made by `user(…)` and `assistant(…)`, content blocks, or a whole
   * `GetPromptResult`.
   *
   * @throws {MisuseError} for a name that is taken or a schema that cannot be JSON Schema
   */
  prompt<const Input extends Schema | undefined = undefined>(
    name: string,
    options: PromptOptions<Input, State>,
    handler: PromptHandler<Input, State>,
  ): this;
  /** Adds a prompt that says nothing about itself. */
  prompt(name: string, handler: PromptHandler<undefined, State>): this;
  prompt(name: string, first: AnyPromptOptions | AnyFunction, second?: AnyFunction): this {
    this.#registry.prompt(name, first, second);
    return this;
  }

  /** Removes a tool. Returns false when there is none of that name. */
  removeTool(name: string): boolean {
    return this.#registry.remove("tool", name);
  }

  /** Removes a resource. Returns false when there is none of that URI. */
  removeResource(uri: string): boolean {
    return this.#registry.remove("resource", uri);
  }

  /** Removes a resource template. Returns false when there is none. */
  removeResourceTemplate(uriTemplate: string): boolean {
    return this.#registry.remove("resource_template", uriTemplate);
  }

  /** Removes a prompt. Returns false when there is none of that name. */
  removePrompt(name: string): boolean {
    return this.#registry.remove("prompt", name);
  }
}

/**
 * The session that a call belongs to: what is added here only its client sees, for as long as the session lives. Its
 * list is told to have changed.
 *
 * All of it throws `UnsupportedError` in revisions without sessions, and for what the client was not told of as it
 * connected: see {@link ServerOptions.capabilities}. It can be used as long as the call runs.
 */
export class Session<State = unknown> extends Offer<State> {
  readonly #key: number;

  /** @internal */
  constructor(key: number, registry: Registry) {
    super(registry);
    this.#key = key;
  }

  /**
   * Shows or hides something from this client alone.
   *
   * @param name the name; of a resource the URI, of a template the URI template
   * @returns whether that changed anything
   */
  setEnabled(kind: Kind, name: string, enabled: boolean): boolean {
    return native(() => bridge.setEnabled(this.#key, kind, name, enabled));
  }
}
