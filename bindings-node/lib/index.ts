/** Tricorn: Model Context Protocol servers and clients. */

import { addon } from "./bridge/host.js";

export * as apps from "./apps.js";
export type { AskedOptions } from "./bridge/callouts.js";
export {
  type Completer,
  type Completes,
  Context,
  type PromptHandler,
  type PromptOptions,
  type ResourceHandler,
  type ResourceOptions,
  type Session,
  type ToolHandler,
} from "./call/context.js";
export type { Log, Logger } from "./call/logger.js";
export {
  type BuiltinMiddleware,
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
export type { CallOptions, Progress, RequestOptions } from "./call/options.js";
export { RequestContext } from "./call/request-context.js";
export type {
  Contents,
  PromptArguments,
  PromptValue,
  ResourceArguments,
  ResourceValue,
  Returns,
  Variables,
} from "./call/signature.js";
export type { ToolOptions } from "./call/tool-options.js";
export type { Answered, ElicitationHandler, Rooted, RootLike, Sampled, SamplingHandler } from "./client/answers.js";
export type { ClientAuth, Identity, Secrets, Wanted } from "./client/auth-options.js";
export type { CacheStore, CacheUsage } from "./client/cache-store.js";
export { Client, connect } from "./client/client.js";
export {
  ClientGroup,
  connectMany,
  type Entry,
  type Listed,
  type Listing,
  type Targets,
} from "./client/group.js";
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
export type {
  Answers,
  ClientCache,
  ClientOptions,
  GroupOptions,
  Listeners,
  Policy,
  ServerPolicy,
} from "./client/options.js";
export type { ClientMetrics } from "./client/settings.js";
export type { CommandTarget, ConfigTarget, HttpTarget, Target } from "./client/target.js";
export { TaskHandle } from "./client/tasks.js";
export type { StoredLogin, TokenKey, TokenStore } from "./client/token-store.js";
export type { AuthStep } from "./errors/auth-step.js";
export {
  AuthError,
  CancelledError,
  ClosedError,
  type ErrorKind,
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
  type Arguments,
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
  audio,
  type CompleteResult,
  type ContentOptions,
  image,
  resource,
  resourceLink,
  result,
  text,
} from "./model/content.js";
export type { Kind, TaskSupport } from "./model/definitions.js";
export { type Elicited, Form } from "./model/forms.js";
export { InputRequired } from "./model/input-required.js";
export { assistant, type Message, user } from "./model/messages.js";
export type { CacheHints, StoreOptions, TaskOptions } from "./model/options.js";
export { Principal, type PrincipalDetails } from "./model/principal.js";
export { type Asked, Question } from "./model/questions.js";
export type { RequestInfo } from "./model/request-info.js";
export {
  CallToolResult,
  type Completion,
  type PromptPage,
  ReadResourceResult,
  type ResourcePage,
  type ResourceTemplatePage,
  type Suggestions,
  type ToolPage,
  type Whole,
} from "./model/results.js";
export { CreateMessageResult, type SampleMessage, type SampleOptions } from "./model/sampling.js";
export type { TraceContext, TraceSource } from "./model/trace.js";
export type {
  IntrospectionProtection,
  IssuerProtection,
  ServerAuth,
  Verifier,
  VerifierProtection,
} from "./server/auth.js";
export type { Protection } from "./server/auth-options.js";
export type { Fallback } from "./server/completion.js";
export type { Document, DocumentStore, DocumentStoreOptions, DocumentWrite } from "./server/document-store.js";
export { Extension, type MethodHandler, type MethodOptions } from "./server/extension.js";
export type {
  ExchangeOptions,
  HttpMount,
  Listener,
  NodeListener,
  ResourceMetadata,
} from "./server/http.js";
export type { Lifespan } from "./server/lifespan.js";
export type { Metrics } from "./server/metrics.js";
export type { HttpOptions, MountOptions, ServerCache, ServerOptions } from "./server/options.js";
export { Server } from "./server/server.js";
export type { Source } from "./server/sources.js";
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
