/** Tools, resources and prompts offered to clients, of a whole server or in one session. */

import { type Handler, warn } from "../bridge/host.js";
import type { AnyState } from "../call/context.js";
import { type AnyFunction, addOptions, type Home, type Runner } from "../call/handler.js";
import type { CacheHints } from "../client/cache-store.js";
import { MisuseError, native } from "../errors/errors.js";
import { shown } from "../json/checks.js";
import { judged, type Schema, toJsonSchema, withSchemas } from "../json/schema.js";
import type { Kind } from "../model/definitions.js";
import { type Completes, completersOf } from "./completion.js";
import { type AnyPromptOptions, definePrompt, Prompt, type PromptHandler, type PromptOptions } from "./prompts.js";
import {
  type AnyResourceOptions,
  defineResource,
  isTemplate,
  Resource,
  type ResourceArguments,
  type ResourceHandler,
  type ResourceOptions,
  type ResourceValue,
  resourceSubject,
} from "./resources.js";
import { type AnyOptions, define, Tool, type ToolHandler, type ToolOptions } from "./tools.js";

/** A place to which things are added. */
export interface Place {
  /** `more` makes the options beside the definition, once its completion functions are registered. */
  add(
    kind: Kind,
    name: string,
    definition: string,
    more: (register: (handler: Handler) => number) => string,
    runners: readonly [Runner, ...Runner[]],
  ): void;
  remove(kind: Kind, name: string): boolean;
}

/** Tools, resources and prompts that come and go. */
export abstract class Offer<State> {
  readonly #home: Home;
  readonly #place: Place;

  /** @internal */
  constructor(home: Home, place: Place) {
    this.#home = home;
    this.#place = place;
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
    const [given, run] = withoutOptions(first, second) ? [{} as AnyOptions, first] : [first as AnyOptions, second];
    const options = withSchemas(`tool "${name}"`, given);
    if (typeof run !== "function") {
      throw new MisuseError(`tool "${name}": the last argument must be the function that runs it`);
    }
    checkToolName(name);
    const { enabled, replace, scopes } = options;
    const definition = define(name, options);
    const runner = new Tool(name, options, run as AnyFunction, this.#home);
    return this.#add("tool", name, definition, runner, { enabled, replace, scopes, judged: judged(options) });
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
    const where: unknown = uri;
    if (typeof where !== "string" || where === "") {
      throw new MisuseError(`resource "uri": expected a string that is not empty, got ${shown(where)}`);
    }
    const [given, body] = rest.length >= 2 ? (rest as [AnyResourceOptions, unknown]) : [{}, rest[0]];
    const second: unknown = given;
    if (typeof second === "string" && !uri.includes(":") && second.includes(":")) {
      throw new MisuseError(
        `resource "${uri}": the URI comes first, the name is an option: ("${second}", { name: "${uri}" }, …)`,
      );
    }
    const of = resourceSubject(uri);
    const options = withSchemas(of, given);
    if (body === undefined || (rest.length === 1 && !isBody(body))) {
      throw new MisuseError(`${of}: the last argument must be the function that reads it, or what it holds`);
    }
    const definition = defineResource(uri, options, body);
    const kind = isTemplate(uri) ? "resource_template" : "resource";
    const runner = new Resource(uri, options, body, this.#home);
    return this.#add(kind, uri, definition, runner, { ...options, judged: judged(options) });
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
    const [given, run] = withoutOptions(first, second)
      ? [{} as AnyPromptOptions, first]
      : [first as AnyPromptOptions, second];
    const options = withSchemas(`prompt "${name}"`, given);
    if (typeof run !== "function") {
      throw new MisuseError(`prompt "${name}": the last argument must be the function that makes it`);
    }
    const definition = definePrompt(name, options);
    const runner = new Prompt(name, options, run as AnyFunction, this.#home);
    return this.#add("prompt", name, definition, runner, { ...options, judged: judged(options) });
  }

  /** Removes a tool. Returns false when there is none of that name. */
  removeTool(name: string): boolean {
    return this.#remove("tool", name);
  }

  /** Removes a resource. Returns false when there is none of that URI. */
  removeResource(uri: string): boolean {
    return this.#remove("resource", uri);
  }

  /** Removes a resource template. Returns false when there is none. */
  removeResourceTemplate(uriTemplate: string): boolean {
    return this.#remove("resource_template", uriTemplate);
  }

  /** Removes a prompt. Returns false when there is none of that name. */
  removePrompt(name: string): boolean {
    return this.#remove("prompt", name);
  }

  #add(kind: Kind, name: string, definition: string, runner: Runner, options: Added): this {
    const of = `${kind.replace("_", " ")} "${name}"`;
    const completers = completersOf(of, options.complete, this.#home);
    const schema = options.inputSchema ?? options.input;
    const parameters = schema && toJsonSchema(schema, "input", `${of} input`);
    const more = (register: (handler: Handler) => number): string => {
      const numbers = completers.map(([argument, completer]) => [argument, register(completer)]);
      const completions = numbers.length > 0 ? (Object.fromEntries(numbers) as Record<string, number>) : undefined;
      const { enabled, replace, cache, scopes, judged } = options;
      return addOptions({ parameters, completions, enabled, replace, cache, scopes, judged });
    };
    const runners = [runner, ...completers.map(([, completer]) => completer)] as const;
    native(() => this.#place.add(kind, name, definition, more, runners));
    return this;
  }

  #remove(kind: Kind, name: string): boolean {
    return native(() => this.#place.remove(kind, name));
  }
}

/** Options that the engine gets beside a definition. */
interface Added {
  readonly enabled?: boolean | undefined;
  readonly replace?: boolean | undefined;
  readonly cache?: CacheHints | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly judged?: readonly string[] | undefined;
  readonly input?: Schema | undefined;
  readonly inputSchema?: Schema | undefined;
  readonly complete?: Readonly<Record<string, Completes<AnyState> | undefined>> | undefined;
}

/** True if the function is all there is. A schema that is a function has something behind it. */
function withoutOptions(first: unknown, second: unknown): boolean {
  return typeof first === "function" && second === undefined;
}

/** Names that all clients take (specification 2025-11-25, "Tool Names"). */
const TOOL_NAME = /^[\w.-]{1,128}$/;

function checkToolName(name: string): void {
  if (typeof name !== "string" || TOOL_NAME.test(name)) return;
  warn(
    `tool "${name.slice(0, 150)}": some clients refuse names other than 1 to 128 letters, digits, "_", "-" and "." ` +
      "(specification, Tool Names)",
  );
}

/** True if something without options is what a resource holds, and not options without a function. */
function isBody(value: unknown): boolean {
  return typeof value === "function" || typeof value === "string" || value instanceof Uint8Array;
}
