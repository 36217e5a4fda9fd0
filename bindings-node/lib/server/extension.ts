/** Extensions of the protocol that a server offers: settings, requests, notifications. */

import { inspect } from "node:util";
import { addon, handle, register } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import type { AnyState, Context } from "../call/context.js";
import { invalidParams, Runner, validated } from "../call/handler.js";
import type { AnyFunction } from "../call/signature.js";
import { MisuseError } from "../errors/errors.js";
import { checkNames, checkTypes, shown } from "../json/checks.js";
import { toJson } from "../json/encoding.js";
import { type Arguments, checkSchema, isStandard, type JsonSchema, type Schema, toJsonSchema } from "../json/schema.js";

/** Options of a request of an extension. All optional. */
export interface MethodOptions<Input extends Schema | undefined = undefined> {
  /** It may be sent again when nobody knows whether it was carried out. Default false. */
  readonly idempotent?: boolean | undefined;
  /** The parameters, as the input of a tool. What does not fit is refused (-32602). Default: any object. */
  readonly schema?: Input | undefined;
  /** The JSON Schema of the parameters, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
}

/**
 * Answers a request of an extension: gets its parameters, without `_meta`, and returns the result, an object; nothing is
 * `{}`. A `resultType` of the extension's own is a member of it. The text of a `ToolError` that it throws reaches the
 * client (−32603).
 */
export type MethodHandler<Input, State = unknown> = (
  params: Arguments<Input>,
  ctx: Context<State>,
) => Answered | Promise<Answered>;

/** An object, or nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing may answer.
type Answered = object | null | undefined | void;

/** A request as it was declared. */
interface Row {
  readonly name: string;
  readonly options: MethodOptions<Schema | undefined>;
  readonly handler: AnyFunction;
}

/** @internal */
export let registered: (
  extension: Extension<AnyState>,
  home: Home,
) => { readonly definition: string; readonly runners: readonly object[] };

/**
 * An extension of the protocol (specification, "Extensions"): what it is called, its settings, its requests and
 * notifications. Both sides have to declare it: of a client that does not, requests are refused (-32021, in older revisions
 * -32601), and it hears no notification.
 *
 * ```ts
 * const search = new Extension("com.example/search", { languages: ["en"] })
 *   .method("com.example/search", ({ query }) => ({ found: index.find(query) }), {
 *     schema: z.object({ query: z.string() }),
 *   })
 *   .notification("notifications/com.example/found", "com.example/queries");
 * const app = new Server("library", { extensions: [search] });
 * ```
 */
export class Extension<State = unknown> {
  /** Its identifier, with a prefix: `com.example/search`. */
  readonly id: string;
  /** The settings that clients are told with it. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly #methods: Row[] = [];
  readonly #notifications: { readonly method: string; readonly member: string }[] = [];

  static {
    registered = (extension, home) => extension.#register(home);
  }

  /** @param settings an object; default `{}` */
  constructor(id: string, settings: Readonly<Record<string, unknown>> = {}) {
    const given: unknown = id;
    if (typeof given !== "string") throw new MisuseError(`extension "id": expected a string, got ${shown(given)}`);
    this.id = id;
    this.settings = settings;
  }

  /**
   * Answers a request of the extension.
   *
   * What the handler throws reaches the client as from other handlers: an `RpcError` as it is, the text of a `ToolError`
   * (−32603), of others the type alone.
   *
   * @param name of the request, such as `com.example/search`; none of the protocol's
   * @throws {MisuseError} for what is no function, and unknown options
   */
  method<const Input extends Schema | undefined = undefined>(
    name: string,
    handler: MethodHandler<Input, State>,
    options: MethodOptions<Input> = {},
  ): this {
    checkTypes(`extension "${this.id}"`, ["name", name, "string"]);
    const what = `extension "${this.id}": "${name}"`;
    if (typeof handler !== "function") throw new MisuseError(`${what}: expected the function that answers it`);
    checkNames(what, options, OPTIONS);
    checkTypes(what, ["idempotent", options.idempotent, "boolean", "optional"]);
    this.#methods.push({ name, options, handler });
    return this;
  }

  /**
   * Has this notification for clients that ask for it: `member` of the filter of `subscriptions/listen` is true, or a list
   * of the keys that they want to hear of. {@link Server.notify} sends it.
   *
   * @param method such as `notifications/com.example/found`
   * @param member such as `com.example/queries`
   */
  notification(method: string, member: string): this {
    checkTypes(`extension "${this.id}"`, ["method", method, "string"], ["member", member, "string"]);
    this.#notifications.push({ method, member });
    return this;
  }

  #register(home: Home): { readonly definition: string; readonly runners: readonly object[] } {
    const runners: Method[] = [];
    const methods = this.#methods.map(({ name, options, handler }) => {
      const { schema: given, inputSchema, idempotent = false } = options;
      const what = `extension "${this.id}": "${name}" schema`;
      checkSchema(what, given);
      // Nobody else sees what a library judges: it is not listed anywhere.
      const json = inputSchema ?? (isStandard(given) ? undefined : given);
      const schema = json && (JSON.parse(toJsonSchema(json, "input", what, "schema")) as unknown);
      const runner = new Method(name, validated(given, handler, invalidParams, "parameter"), home);
      runners.push(runner);
      return { name, handler: register(runner), idempotent, schema };
    });
    const { id, settings } = this;
    let definition: string;
    try {
      definition = toJson({ id, settings, methods, notifications: this.#notifications });
    } catch (error) {
      throw new MisuseError(`extension "${id}": ${(error as Error).message}`, { cause: error });
    }
    return { definition, runners };
  }
}

const OPTIONS = { idempotent: true, schema: true, inputSchema: true } as const;

/** The function that answers a request of an extension. */
class Method extends Runner {
  constructor(name: string, call: AnyFunction, home: Home) {
    super(name, `request "${name}"`, call, home);
  }

  protected override answer(key: number, value: unknown): void {
    const text = toJson(value ?? {});
    if (!text.startsWith("{"))
      throw new TypeError(`expected an object as the result, got ${inspect(value, { depth: 0 })}`);
    addon.answerResult(handle, key, text);
  }
}
