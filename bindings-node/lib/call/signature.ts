/** Arguments and values of the functions of a server, by the schema, the URI or the prompt that they are for. */

import type { Arguments, Infer, InferInput, Schema } from "../json/schema.js";
import type { CompleteResult } from "../model/content.js";
import type { InputRequired } from "../model/input-required.js";
import type { Message } from "../model/messages.js";
import type { GetPromptResult, MetaObject } from "../types.js";
import type { ToolOptions } from "./tool-options.js";

// biome-ignore lint/suspicious/noExplicitAny: the signatures of the registering methods give functions their types.
export type AnyFunction = (args: any, ctx: any) => unknown;

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
