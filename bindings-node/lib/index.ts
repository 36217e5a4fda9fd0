/** Tricorn: Model Context Protocol servers and clients. */

import { addon } from "./host.js";

export {
  type CallOptions,
  Client,
  type ClientOptions,
  type CommandTarget,
  type ConfigTarget,
  connect,
  type HttpTarget,
  type Progress,
  type RequestOptions,
  type Target,
  type ToolPage,
} from "./client.js";
export {
  audio,
  type CompleteResult,
  type ContentOptions,
  image,
  resource,
  resourceLink,
  result,
  text,
} from "./content.js";
export { Context, type RequestInfo } from "./context.js";
export {
  AuthError,
  CancelledError,
  ClosedError,
  type ErrorKind,
  MisuseError,
  PeerMisbehavedError,
  RpcError,
  TimeoutError,
  ToolError,
  TransportError,
  TricornError,
  UnsupportedError,
} from "./errors.js";
export type { HttpMount, HttpOptions, MountOptions, NodeListener } from "./http.js";
export { CallToolResult } from "./result.js";
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
export { type Metrics, Server, type ServerOptions } from "./server.js";
export type { Arguments, Returns, ToolHandler, ToolOptions } from "./tool.js";
export type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  Icon,
  ImageContent,
  LoggingLevel,
  ResourceLink,
  TextContent,
  Tool,
  ToolAnnotations,
} from "./types.js";

/** The version of the engine. */
export const version: string = addon.version();
