/** Functions that answer a server, and what they give. */

import type { RequestContext } from "../call/request-context.js";
import type { CreateMessageResult } from "../model/sampling.js";
import type {
  CreateMessageRequestParams,
  ElicitRequestFormParams,
  ElicitResult,
  ListRootsResult,
  Root,
  CreateMessageResult as WireMessage,
} from "../types.js";

/** A folder or file: a path, a `file://` URL, or one with a name for people. */
export type RootLike = string | URL | Root;

/** Lets a model answer. Text is what the assistant says. */
export type SamplingHandler = (params: CreateMessageRequestParams, ctx: RequestContext) => Sampled | Promise<Sampled>;

/** An answer of a model: text, or a message with more to say of itself. */
export type Sampled =
  | string
  | CreateMessageResult
  | (Partial<Omit<WireMessage, "content">> & { readonly content: WireMessage["content"] | string });

/** Lets the user answer: the values of the form, or what else the user did. Nothing means `decline`. */
export type ElicitationHandler<Params = ElicitRequestFormParams> = (
  params: Params,
  ctx: RequestContext,
) => Answered | Promise<Answered>;

/** An answer of the user: the values of the form accept it; null, undefined and false decline. */
export type Answered =
  | ElicitResult
  | NonNullable<ElicitResult["content"]>
  | ElicitResult["action"]
  | boolean
  | null
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing declines.
  | void;

/** Roots from a function: the roots, or a result that says more. */
export type Rooted = readonly RootLike[] | ListRootsResult;
