/** Tricorn: Model Context Protocol servers and clients. */

import { addon } from "./bridge/host.js";

export * as apps from "./apps.js";
export type { AskedOptions } from "./bridge/callouts.js";
export { Context } from "./call/context.js";
export type { Log, Logger } from "./call/logger.js";
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
} from "./call/middleware.js";
export { RequestContext } from "./call/request-context.js";
export type { CallOptions, Progress, RequestOptions } from "./call/request-options.js";
export type { AuthStep, ClientAuth, Identity, Secrets, Wanted } from "./client/auth.js";
export type { CacheHints, CacheStore, CacheUsage, ClientCache, ServerCache } from "./client/cache-store.js";
export { Client, connect } from "./client/client.js";
export {
  ClientGroup,
  connectMany,
  type Entry,
  type GroupOptions,
  type Listed,
  type Listing,
  type Targets,
} from "./client/group.js";
export type {
  Answered,
  Answers,
  ElicitationHandler,
  Listeners,
  Rooted,
  RootLike,
  Sampled,
  SamplingHandler,
} from "./client/handlers.js";
export type { Fetch, FetchInit, FetchResponse } from "./client/http-transport.js";
export type {
  Change,
  ExtensionNotification,
  Honoured,
  ListChanged,
  Listening,
  ListenOptions,
  ResourceUpdated,
  TaskChanged,
} from "./client/listening.js";
export type { ClientOptions, Policy, ServerPolicy } from "./client/options.js";
export type { PromptPage, ResourcePage, ResourceTemplatePage, ToolPage } from "./client/pages.js";
export type { CommandTarget, ConfigTarget, HttpTarget, Target } from "./client/targets.js";
export { TaskHandle, type TaskOptions, type TaskSupport } from "./client/tasks.js";
export type { StoredLogin, TokenKey, TokenStore } from "./client/token-store.js";
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
} from "./errors/errors.js";
export {
  type Infer,
  type InferInput,
  type JsonSchema,
  jsonSchema,
  type Schema,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "./json/schema.js";
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
} from "./model/content.js";
export type { Kind } from "./model/definitions.js";
export { Form } from "./model/forms.js";
export { Principal, type PrincipalDetails } from "./model/principal.js";
export { type Asked, Question } from "./model/questions.js";
export type { RequestInfo } from "./model/request-info.js";
export { CallToolResult, ReadResourceResult, type Whole } from "./model/results.js";
export { CreateMessageResult, type Elicited, type SampleMessage, type SampleOptions } from "./model/sampling.js";
export type { StoreOptions } from "./model/store-options.js";
export type { TraceContext, TraceSource } from "./model/trace.js";
export type {
  IntrospectionProtection,
  IssuerProtection,
  Protection,
  ServerAuth,
  Verifier,
  VerifierProtection,
} from "./server/auth.js";
export type { Completer, Completes, Completion, Fallback, Suggestions } from "./server/completion.js";
export type { Document, DocumentStore, DocumentStoreOptions, DocumentWrite } from "./server/document-store.js";
export { Extension, type MethodHandler, type MethodOptions } from "./server/extension.js";
export type {
  ExchangeOptions,
  HttpMount,
  HttpOptions,
  Listener,
  MountOptions,
  NodeListener,
  ResourceMetadata,
} from "./server/http.js";
export type { Lifespan } from "./server/lifespan.js";
export type { Metrics, ServerOptions } from "./server/options.js";
export type { Message, PromptArguments, PromptHandler, PromptOptions, PromptValue } from "./server/prompts.js";
export type {
  Contents,
  ResourceArguments,
  ResourceHandler,
  ResourceOptions,
  ResourceValue,
  Variables,
} from "./server/resources.js";
export { Server } from "./server/server.js";
export type { Session } from "./server/session.js";
export type { Source } from "./server/sources.js";
export type { Arguments, Returns, ToolHandler, ToolOptions } from "./server/tools.js";
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
