/** One tool: what users say about it, and what happens when it is called. */

import { type CompleteResult, completeResult } from "./content.js";
import type { Context } from "./context.js";
import { type InputRequired, ToolError } from "./errors.js";
import { type AnyFunction, type Home, Runner, validated } from "./handler.js";
import { addon, handle } from "./host.js";
import { toJson } from "./json.js";
import { checkNames } from "./options.js";
import { CallToolResult } from "./result.js";
import { type Infer, type JsonSchema, type Schema, toJsonSchema } from "./schema.js";
import type { TaskSupport } from "./tasks.js";
import type { Icon, MetaObject, ToolAnnotations } from "./types.js";
import { stringify } from "./unicode.js";

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
  /**
   * Whether it may or must be called as a task, where the server has the option `tasks`. In 2026-07-28 both make it one for
   * every client that declares the extension; others call what is `optional` plainly. Default `forbidden`.
   */
  readonly taskSupport?: TaskSupport;
  /** The tool's `_meta`. */
  readonly meta?: MetaObject;
  /**
   * What the caller's access token needs, all of them: who lacks one neither sees it in a list nor may use it, which is
   * nobody's over HTTP where the server has no `auth`. In one process and over standard streams nobody is asked. Default:
   * nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[];
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean;
  /** True puts it in the place of the tool of this name, if there is one; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean;
}

/** The handler's first argument for an input schema. */
export type Arguments<Input> = [Input] extends [Schema]
  ? unknown extends Infer<Input>
    ? Record<string, unknown>
    : Infer<Input>
  : Record<string, unknown>;

/** What a handler may return for an output schema: without one, anything that is JSON. */
export type Returns<Output> = [Output] extends [Schema] ? Infer<Output> | CompleteResult | InputRequired : unknown;

/** A plain function: typed arguments in, plain value out, now or later. */
export type ToolHandler<Input, Output, State = unknown> = (
  args: Arguments<Input>,
  ctx: Context<State>,
) => Returns<Output> | Promise<Returns<Output>>;

export type AnyOptions = ToolOptions<Schema | undefined, Schema | undefined>;

const OPTIONS: Readonly<Record<keyof AnyOptions, true>> = {
  description: true,
  title: true,
  input: true,
  output: true,
  inputSchema: true,
  outputSchema: true,
  annotations: true,
  icons: true,
  taskSupport: true,
  meta: true,
  enabled: true,
  replace: true,
  scopes: true,
};

/** A registered tool: validates what the engine cannot, runs the handler, answers. */
export class Tool extends Runner {
  readonly #typed: boolean;

  constructor(name: string, options: AnyOptions, handler: AnyFunction, home: Home) {
    const call = validated(options.input, handler, (message) => new ToolError(message));
    super(name, `tool "${name}"`, call, home);
    this.#typed = options.output !== undefined || options.outputSchema !== undefined;
  }

  protected override answer(key: number, value: unknown): void {
    if (typeof value === "string" && !this.#typed) {
      addon.answerText(handle, key, value);
    } else if (value === undefined || (value === null && !this.#typed)) {
      addon.answerResult(handle, key, '{"content":[]}');
    } else if (value instanceof CallToolResult) {
      addon.answerResult(handle, key, toJson(value.raw));
    } else {
      const complete = typeof value === "object" && value !== null && completeResult(value, this.#typed);
      if (complete) addon.answerResult(handle, key, toJson(complete));
      else addon.answerValue(handle, key, toJson(value));
    }
  }
}

/** The `Tool` object of the schema as JSON text. */
export function define(name: string, options: AnyOptions): string {
  checkNames(`tool "${name}"`, options, OPTIONS);
  const { title, description, annotations, icons, taskSupport, meta: _meta } = options;
  const execution = taskSupport && { taskSupport };
  const head = stringify({ name, title, description, annotations, icons, execution, _meta });
  const input = options.inputSchema ?? options.input ?? { type: "object" };
  const output = options.outputSchema ?? options.output;
  let text = `${head.slice(0, -1)},"inputSchema":${toJsonSchema(input, "input", `tool "${name}" input`)}`;
  if (output) text += `,"outputSchema":${toJsonSchema(output, "output", `tool "${name}" output`)}`;
  return `${text}}`;
}
