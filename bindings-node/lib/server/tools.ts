/** One tool: what users say about it, and what happens when it is called. */

import { addon, handle } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { isThenable, Runner, validated, WrongResult } from "../call/handler.js";
import type { AnyFunction, AnyOptions } from "../call/signature.js";
import { TOOL_OPTIONS } from "../call/tool-options.js";
import { ToolError } from "../errors/errors.js";
import { checkNames } from "../json/checks.js";
import { stringify, toJson } from "../json/encoding.js";
import {
  describe,
  isStandard,
  judge,
  judgeSent,
  type Schema,
  type StandardSchema,
  toJsonSchema,
} from "../json/schema.js";
import { completeResult, result } from "../model/content.js";
import { InputRequired } from "../model/input-required.js";
import { CallToolResult } from "../model/results.js";

/** A registered tool: validates what the engine cannot, runs the handler, answers. */
export class Tool extends Runner {
  readonly #typed: boolean;

  constructor(name: string, options: AnyOptions, handler: AnyFunction, home: Home) {
    const call = validated(options.input, handler, (message) => new ToolError(message));
    super(name, `tool "${name}"`, checkedResult(options.output, call), home);
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

/** `call` with what it returns judged by the library of the output schema: what that strips does not leave. */
function checkedResult(schema: Schema | undefined, call: AnyFunction): AnyFunction {
  if (schema === undefined || !isStandard(schema)) return call;
  return (args, ctx) => {
    const value = call(args, ctx);
    return isThenable(value) ? value.then((settled) => sent(schema, settled)) : sent(schema, value);
  };
}

/** The value that is sent for a result. Questions, and answers without structured content, are not judged. */
function sent(schema: StandardSchema, value: unknown): unknown {
  if (value instanceof InputRequired) return value;
  if (value instanceof CallToolResult) {
    const { raw, structured } = value;
    if (structured === undefined) return value;
    return after(fitting(schema, structured), (structuredContent) => new CallToolResult({ ...raw, structuredContent }));
  }
  const complete = typeof value === "object" && value !== null && completeResult(value, true);
  if (!complete) return fitting(schema, value);
  if (complete.structuredContent === undefined) return value;
  const { structuredContent, ...rest } = complete;
  return after(fitting(schema, structuredContent), (structured) => {
    const { content, isError, _meta: meta } = rest;
    return result({ content, structured, ...(isError !== undefined && { isError }), ...(meta && { meta }) });
  });
}

/**
 * The value as its library gives it.
 *
 * @throws {WrongResult} naming what does not fit
 */
function fitting(schema: StandardSchema, value: unknown): unknown {
  return after(judgeSent(schema, value), (outcome) => {
    if (!outcome.issues) return outcome.value;
    // A date is the text that it is sent as, and so is everything that says what its JSON is.
    const json: unknown = value === undefined ? undefined : JSON.parse(toJson(value));
    return after(judge(schema, json), (second) => {
      if (!second.issues) return second.value;
      throw new WrongResult(describe(outcome.issues, "result", "result"));
    });
  });
}

function after<T>(value: T | PromiseLike<T>, then: (value: T) => unknown): unknown {
  return isThenable(value) ? value.then(then) : then(value);
}

/** The `Tool` object of the schema as JSON text. */
export function define(name: string, options: AnyOptions): string {
  checkNames(`tool "${name}"`, options, TOOL_OPTIONS);
  const { title, description, annotations, icons, taskSupport, meta: _meta } = options;
  const execution = taskSupport && { taskSupport };
  const head = stringify({ name, title, description, annotations, icons, execution, _meta });
  const input = options.inputSchema ?? options.input ?? { type: "object" };
  const output = options.outputSchema ?? options.output;
  let text = `${head.slice(0, -1)},"inputSchema":${toJsonSchema(input, "input", `tool "${name}" input`)}`;
  if (output) text += `,"outputSchema":${toJsonSchema(output, "output", `tool "${name}" output`)}`;
  return `${text}}`;
}
