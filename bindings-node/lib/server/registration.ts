/** Tools, resources and prompts offered to clients, of a whole server or in one session. */

import { native } from "../bridge/errors.js";
import { type Handler, warn } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import type { AnyPromptOptions, AnyState, Completes, Registry } from "../call/context.js";
import type { Runner } from "../call/handler.js";
import type { AnyFunction, AnyOptions } from "../call/signature.js";
import { MisuseError } from "../errors/errors.js";
import { shown, typeOf } from "../json/checks.js";
import { stringify } from "../json/encoding.js";
import { toEngine } from "../json/options.js";
import { judged, type Schema, toJsonSchema, withSchemas } from "../json/schema.js";
import type { Kind } from "../model/definitions.js";
import type { CacheHints } from "../model/options.js";
import { completersOf } from "./completion.js";
import { definePrompt, Prompt } from "./prompts.js";
import { type AnyResourceOptions, defineResource, isTemplate, Resource, resourceSubject } from "./resources.js";
import { define, Tool } from "./tools.js";

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

/** Adds to a place what an {@link Offer} is given. */
export class Registration implements Registry {
  readonly #home: Home;
  readonly #place: Place;

  constructor(home: Home, place: Place) {
    this.#home = home;
    this.#place = place;
  }

  tool(name: string, first: AnyOptions | AnyFunction, second?: AnyFunction): void {
    const [given, run] = withoutOptions(first, second) ? [{} as AnyOptions, first] : [first as AnyOptions, second];
    const options = withSchemas(`tool "${name}"`, given);
    if (typeof run !== "function") {
      throw new MisuseError(`tool "${name}": the last argument must be the function that runs it`);
    }
    checkToolName(name);
    const { enabled, replace, scopes } = options;
    const definition = define(name, options);
    const runner = new Tool(name, options, run as AnyFunction, this.#home);
    this.#add("tool", name, definition, runner, { enabled, replace, scopes, judged: judged(options) });
  }

  resource(uri: string, ...rest: [unknown, unknown?]): void {
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
    this.#add(kind, uri, definition, runner, { ...options, judged: judged(options) });
  }

  prompt(name: string, first: AnyPromptOptions | AnyFunction, second?: AnyFunction): void {
    const [given, run] = withoutOptions(first, second)
      ? [{} as AnyPromptOptions, first]
      : [first as AnyPromptOptions, second];
    const options = withSchemas(`prompt "${name}"`, given);
    if (typeof run !== "function") {
      throw new MisuseError(`prompt "${name}": the last argument must be the function that makes it`);
    }
    const definition = definePrompt(name, options);
    const runner = new Prompt(name, options, run as AnyFunction, this.#home);
    this.#add("prompt", name, definition, runner, { ...options, judged: judged(options) });
  }

  remove(kind: Kind, name: string): boolean {
    return native(() => this.#place.remove(kind, name));
  }

  #add(kind: Kind, name: string, definition: string, runner: Runner, options: Added): void {
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

/** The numbers of `completions`, and more, as the engine wants them beside a definition. */
function addOptions(parts: {
  readonly parameters?: string | undefined;
  readonly completions?: Readonly<Record<string, number>> | undefined;
  readonly enabled?: boolean | undefined;
  readonly replace?: boolean | undefined;
  readonly cache?: CacheHints | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly judged?: readonly string[] | undefined;
}): string {
  const members: string[] = [];
  if (parts.parameters !== undefined) members.push(`"parameters":${parts.parameters}`);
  if (parts.completions !== undefined) members.push(`"completions":${stringify(parts.completions)}`);
  if (parts.enabled !== undefined) members.push(`"enabled":${plain(parts.enabled)}`);
  if (parts.replace !== undefined) members.push(`"replace":${plain(parts.replace)}`);
  if (parts.cache !== undefined) members.push(toEngine({ cache: parts.cache }).slice(1, -1));
  if (parts.scopes !== undefined) members.push(`"scopes":${plain(parts.scopes)}`);
  if (parts.judged?.length) members.push(`"judged":${stringify(parts.judged)}`);
  return members.length > 0 ? `{${members.join()}}` : "";
}

/** JSON of an option, also of one that JSON has not: the engine says that it is wrong. */
function plain(value: unknown): string {
  return typeof value === "function" || typeof value === "bigint" ? `"${typeOf(value)}"` : stringify(value);
}
