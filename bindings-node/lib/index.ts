/** Tricorn: Model Context Protocol servers and clients. */

import { addon } from "./host.js";

export type {
  Answered,
  Answers,
  ElicitationHandler,
  Listeners,
  Rooted,
  RootLike,
  Sampled,
  SamplingHandler,
} from "./answering.js";
export * as apps from "./apps.js";
export { CreateMessageResult, type Elicited, type SampleMessage, type SampleOptions } from "./ask.js";
export type { AskedOptions } from "./asked.js";
export type { AuthStep, ClientAuth, Identity, Secrets, Wanted } from "./auth.js";
export type { CacheHints, CacheStore, CacheUsage, ClientCache, ServerCache } from "./cache.js";
export { Client, connect } from "./client.js";
export type { Completer, Completes, Completion, Fallback, Suggestions } from "./completion.js";
export type { ClientOptions, Policy, ServerPolicy } from "./connecting.js";
export {
  assistant,
  audio,
  type CompleteResult,
  type ContentOptions,
  image,
  resource,
  resourceLink,
  result,
  text,
  user,
} from "./content.js";
export { Context } from "./context.js";
export type { Document, DocumentStore, DocumentStoreOptions, DocumentWrite } from "./document-store.js";
export {
  AuthError,
  CancelledError,
  ClosedError,
  type ErrorKind,
  InputRequired,
  MisuseError,
  PeerMisbehavedError,
  ResourceNotFoundError,
  RpcError,
  TimeoutError,
  ToolError,
  TransportError,
  TricornError,
  UnsupportedError,
  type UrlElicitation,
  UrlElicitationRequiredError,
} from "./errors.js";
export { Extension, type MethodHandler, type MethodOptions } from "./extension.js";
export type { Fetch, FetchInit, FetchResponse } from "./fetch.js";
export { Form } from "./form.js";
export {
  ClientGroup,
  connectMany,
  type Entry,
  type GroupOptions,
  type Listed,
  type Listing,
  type Targets,
} from "./group.js";
export type {
  ExchangeOptions,
  HttpMount,
  HttpOptions,
  Listener,
  MountOptions,
  NodeListener,
  ResourceMetadata,
} from "./http.js";
export type { RequestInfo } from "./info.js";
export type { Kind } from "./kind.js";
export type { Lifespan } from "./lifespan.js";
export type {
  Change,
  ExtensionNotification,
  Honoured,
  ListChanged,
  Listening,
  ListenOptions,
  ResourceUpdated,
  TaskChanged,
} from "./listening.js";
export type { Log, Logger } from "./logger.js";
export {
  type BuiltinMiddleware,
  type ClientMetrics,
  concurrencyLimit,
  logging,
  type MethodTiming,
  type Middleware,
  type MiddlewareRequest,
  type Next,
  type RecordLogger,
  type RequestRecord,
  rateLimit,
  timing,
} from "./middleware.js";
export type { PromptPage, ResourcePage, ResourceTemplatePage, ToolPage } from "./pages.js";
export { Principal, type PrincipalDetails } from "./principal.js";
export type { Message, PromptArguments, PromptHandler, PromptOptions, PromptValue } from "./prompts.js";
export type {
  IntrospectionProtection,
  IssuerProtection,
  Protection,
  ServerAuth,
  Verifier,
  VerifierProtection,
} from "./protection.js";
export { type Asked, Question } from "./question.js";
export { RequestContext } from "./request-context.js";
export type { CallOptions, Progress, RequestOptions } from "./requesting.js";
export type {
  Contents,
  ResourceArguments,
  ResourceHandler,
  ResourceOptions,
  ResourceValue,
  Variables,
} from "./resources.js";
export { CallToolResult, ReadResourceResult, type Whole } from "./result.js";
export {
  type Infer,
  type InferInput,
  type JsonSchema,
  jsonSchema,
  type Schema,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "./schema.js";
export { Server } from "./server.js";
export type { Metrics, ServerOptions } from "./serving.js";
export type { Session } from "./session.js";
export type { Source } from "./source.js";
export type { StoredLogin, TokenKey, TokenStore } from "./store.js";
export type { StoreOptions } from "./store-options.js";
export type { CommandTarget, ConfigTarget, HttpTarget, Target } from "./target.js";
export { TaskHandle, type TaskOptions, type TaskSupport } from "./tasks.js";
export type { Arguments, Returns, ToolHandler, ToolOptions } from "./tool.js";
export type { TraceContext, TraceSource } from "./trace.js";
export type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  GetPromptResult,
  Icon,
  ImageContent,
  LoggingLevel,
  Prompt,
  PromptArgument,
  PromptMessage,
  Request,
  Resource,
  ResourceLink,
  ResourceTemplate,
  Result,
  Root,
  SamplingMessage,
  Task,
  TextContent,
  Tool,
  ToolAnnotations,
} from "./types.js";

/** The version of the engine. */
export const version: string = addon.version();

/**
 * True if a client may load an icon's `src`: an `https:` URL with a host, or `data:image/…`. It says nothing of the
 * rest of a client's duties: no credentials, no redirects elsewhere, a limit of size, no scripts in an SVG.
 */
export function isSafeIcon(src: string): boolean {
  return addon.isSafeIcon(src);
}
