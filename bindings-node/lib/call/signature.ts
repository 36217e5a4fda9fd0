/** Arguments and values of the functions of a server, by the schema, the URI or the prompt that they are for. */

import type { Arguments, Infer, InferInput, JsonSchema, Schema } from "../json/schema.js";
import type { CompleteResult } from "../model/content.js";
import type { TaskSupport } from "../model/definitions.js";
import type { InputRequired } from "../model/input-required.js";
import type { Message } from "../model/messages.js";
import type { GetPromptResult, Icon, MetaObject, ToolAnnotations } from "../types.js";

// biome-ignore lint/suspicious/noExplicitAny: the signatures of the registering methods give functions their types.
export type AnyFunction = (args: any, ctx: any) => unknown;

/** Options of a tool, beside its name and its handler. All optional. */
export interface ToolOptions<Input extends Schema | undefined, Output extends Schema | undefined> {
  /** A description of what the tool does, for the model. */
  readonly description?: string | undefined;
  /** A name for people. */
  readonly title?: string | undefined;
  /** The arguments. Default: any object. */
  readonly input?: Input | undefined;
  /**
   * The type of the result. Results are checked against it and sent as `structuredContent`: after the defaults and
   * transforms of its library, without what that strips.
   */
  readonly output?: Output | undefined;
  /** The JSON Schema of the arguments, for schema libraries that cannot make one. */
  readonly inputSchema?: JsonSchema | undefined;
  /** The JSON Schema of the result, likewise. */
  readonly outputSchema?: JsonSchema | undefined;
  /** Hints about what it does, such as `readOnlyHint`. */
  readonly annotations?: ToolAnnotations | undefined;
  /** Pictures for people, best first. */
  readonly icons?: readonly Icon[] | undefined;
  /**
   * True if it may or must be called as a task, where the server has the option `tasks`. In 2026-07-28 both make it one for
   * every client that declares the extension; others call what is `optional` plainly. Default `forbidden`.
   */
  readonly taskSupport?: TaskSupport | undefined;
  /** The tool's `_meta`. */
  readonly meta?: MetaObject | undefined;
  /**
   * Scopes that the caller's access token needs, all of them: a caller without them neither sees it in a list nor may
   * use it. Over HTTP nobody may where the server has no `auth`; in one process and over standard streams nobody is
   * asked. Default: nothing beyond what every request needs.
   */
  readonly scopes?: readonly string[] | undefined;
  /** False hides it until {@link Server.setEnabled}. Default true. */
  readonly enabled?: boolean | undefined;
  /** True puts it in the place of the tool of this name, if there is one; hidden when that is, unless `enabled` says otherwise. Default false. */
  readonly replace?: boolean | undefined;
}

export type AnyOptions = ToolOptions<Schema | undefined, Schema | undefined>;

/** A handler's return value for an output schema: without one, anything that is JSON. */
export type Returns<Output> = [Output] extends [Schema]
  ? Infer<Output> | InferInput<Output> | CompleteResult | InputRequired
  : unknown;

/** The function's first argument: without a schema, text. */
export type PromptArguments<Input> = [Input] extends [Schema] ? Arguments<Input> : Record<string, string>;

/** A prompt's return value: text, one or more messages, a whole result, or what has to be asked first. */
export type PromptValue = Message | readonly Message[] | GetPromptResult | InputRequired;

/** Contents of a resource; the URI and the MIME type are the resource's unless they say otherwise. */
export type Contents = {
  readonly uri?: string | undefined;
  readonly mimeType?: string | undefined;
  /** The contents' `_meta`. */
  readonly _meta?: MetaObject | undefined;
} & ({ readonly text: string } | { /** Bytes, or base64 text. */ readonly blob: Uint8Array | string });

/** A resource that is not computed: text, bytes, contents, several of those, or anything that is JSON. */
export type ResourceValue =
  | string
  | Uint8Array
  | number
  | boolean
  | null
  | Contents
  | readonly unknown[]
  | { readonly [member: string]: unknown };

/** Arguments of the function of a resource: the variables of a template, else the URI. */
export type ResourceArguments<Uri extends string, Input> = [Input] extends [Schema]
  ? Arguments<Input>
  : string extends Uri
    ? Record<string, string>
    : Uri extends `${string}{${string}`
      ? Variables<Uri>
      : { readonly uri: string };

/** The variables of a URI template (RFC 6570), as its text says: but for the first of `{…}` and `{+…}` they may be missing. */
export type Variables<Template extends string> = Flat<Expressions<Template>>;

type Flat<T> = { [Name in keyof T]: T[Name] };

type Expressions<Text extends string> = Text extends `${string}{${infer Inner}}${infer Rest}`
  ? Expression<Inner> & Expressions<Rest>
  : unknown;

type Expression<Inner extends string> = Inner extends `${"?" | "&" | "#" | "." | "/" | ";"}${infer List}`
  ? Partial<Names<List>>
  : Inner extends `+${infer List}`
    ? First<List>
    : First<Inner>;

type First<List extends string> = List extends `${infer Spec},${infer Rest}`
  ? Name<Spec> & Partial<Names<Rest>>
  : Name<List>;

type Names<List extends string> = List extends `${infer First},${infer Rest}` ? Name<First> & Names<Rest> : Name<List>;

type Name<Spec extends string> = Spec extends `${infer Exploded}*`
  ? { readonly [Key in Exploded]: readonly string[] }
  : Spec extends `${infer Prefix}:${string}`
    ? { readonly [Key in Prefix]: string }
    : { readonly [Key in Spec]: string };
