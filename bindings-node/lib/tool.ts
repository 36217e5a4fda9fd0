/** One tool: what users say about it, and what happens when it is called. */

import type { AsyncResource } from "node:async_hooks";
import { type CompleteResult, completeResult } from "./content.js";
import { Context } from "./context.js";
import { RpcError, ToolError } from "./errors.js";
import { addon, calls, type Handler, handle } from "./host.js";
import { describe, type Infer, isStandard, type JsonSchema, type Schema, toJsonSchema } from "./schema.js";
import type { Icon, MetaObject, ToolAnnotations } from "./types.js";

/** What a tool is, beside its name and its handler. All optional. */
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
  /** Hints about what it does, such as `readOnlyHint`. */
  readonly annotations?: ToolAnnotations;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[];
  /** The tool's `_meta`. */
  readonly meta?: MetaObject;
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

// biome-ignore lint/suspicious/noExplicitAny: the overloads of `tool` give handlers their types.
export type AnyHandler = (args: any, ctx: Context) => unknown;
export type AnyOptions = ToolOptions<Schema | undefined, Schema | undefined>;

/** What the tools of a server share. */
export interface Home {
  /** Where serving began: what `AsyncLocalStorage` held there, it holds in handlers. */
  scope: AsyncResource | undefined;
  /** Handlers that have not settled yet. */
  running: number;
  readonly onError: (error: unknown, tool: string) => void;
}

/** A registered tool: validates what the engine cannot, runs the handler, answers. */
export class Tool implements Handler {
  readonly #name: string;
  readonly #home: Home;
  readonly #typed: boolean;
  readonly #call: AnyHandler;

  constructor(name: string, options: AnyOptions, handler: AnyHandler, home: Home) {
    this.#name = name;
    this.#home = home;
    this.#typed = options.output !== undefined || options.outputSchema !== undefined;
    this.#call = options.input && isStandard(options.input) ? validated(options.input["~standard"], handler) : handler;
  }

  run(args: unknown, key: number): void {
    const ctx = new Context(key);
    try {
      const { scope } = this.#home;
      const value = scope ? scope.runInAsyncScope(this.#call, undefined, args, ctx) : this.#call(args, ctx);
      if (!isThenable(value)) {
        this.#answer(key, value);
        return;
      }
      calls.set(key, ctx);
      this.#home.running++;
      value.then(
        (settled) => {
          this.#settled(key);
          try {
            this.#answer(key, settled);
          } catch (error) {
            this.#fail(key, ctx, error);
          }
        },
        (error: unknown) => {
          this.#settled(key);
          this.#fail(key, ctx, error);
        },
      );
    } catch (error) {
      this.#fail(key, ctx, error);
    }
  }

  #settled(key: number): void {
    calls.delete(key);
    this.#home.running--;
  }

  #answer(key: number, value: unknown): void {
    if (typeof value === "string" && !this.#typed) {
      addon.answerText(handle, key, value);
    } else if (value === undefined || (value === null && !this.#typed)) {
      addon.answerResult(handle, key, '{"content":[]}');
    } else {
      const complete = typeof value === "object" && value !== null && completeResult(value, this.#typed);
      if (complete) addon.answerResult(handle, key, JSON.stringify(complete));
      else addon.answerValue(handle, key, toJson(value));
    }
  }

  #fail(key: number, ctx: Context, error: unknown): void {
    if (error instanceof ToolError) {
      addon.answerFailed(handle, key, error.message);
    } else if (error instanceof RpcError) {
      const data = error.data === undefined ? undefined : JSON.stringify(error.data);
      addon.answerError(handle, key, error.code, error.message, data);
    } else {
      addon.answerFailed(handle, key, `tool "${this.#name}" failed: ${typeName(error)}`);
      // Giving up after a cancel is what a handler should do: nothing to report.
      if (!ctx.cancelled) this.#home.onError(error, this.#name);
    }
  }
}

/** The engine has checked the JSON Schema; this adds what only the library knows: defaults, transforms, refinements. */
function validated(schema: StandardProperties, handler: AnyHandler): AnyHandler {
  const checked = (outcome: Outcome, ctx: Context): unknown => {
    if (outcome.issues) throw new ToolError(describe(outcome.issues, "argument", "arguments"));
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

/** The `Tool` object of the schema as JSON text. */
export function define(name: string, options: AnyOptions): string {
  const { title, description, annotations, icons, meta: _meta } = options;
  const head = JSON.stringify({ name, title, description, annotations, icons, _meta });
  const input = options.inputSchema ?? options.input ?? { type: "object" };
  const output = options.outputSchema ?? options.output;
  let text = `${head.slice(0, -1)},"inputSchema":${toJsonSchema(input, "input", `tool "${name}" input`)}`;
  if (output) text += `,"outputSchema":${toJsonSchema(output, "output", `tool "${name}" output`)}`;
  return `${text}}`;
}
