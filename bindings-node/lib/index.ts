/** Tricorn: Model Context Protocol servers and clients. */

import { addon } from "./host.js";

export {
  type CallOptions,
  CallToolResult,
  Client,
  type ClientOptions,
  type CommandTarget,
  type ConfigTarget,
  connect,
  type HttpTarget,
  type Progress,
  type RequestOptions,
  type ServerInfo,
  type Target,
  type ToolDescription,
  type ToolPage,
} from "./client.js";
export {
  type Annotations,
  type AudioContent,
  audio,
  type CompleteResult,
  type ContentBlock,
  type ContentOptions,
  type EmbeddedResource,
  type Icon,
  type ImageContent,
  image,
  type ResourceLink,
  resource,
  resourceLink,
  result,
  type TextContent,
  type ToolResult,
  text,
} from "./content.js";
export { Context, type LogLevel, type RequestInfo } from "./context.js";
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
export {
  type Arguments,
  type Metrics,
  type Returns,
  Server,
  type ServerOptions,
  type ToolAnnotations,
  type ToolHandler,
  type ToolOptions,
} from "./server.js";

/** The version of the engine. */
export const version: string = addon.version();
