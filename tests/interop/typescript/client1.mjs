// A client on the official TypeScript SDK before 2.0: client1.mjs PLAN
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { elicited, logged, plan, play, rooted, sampled, updated } from "./steps.mjs";

const { target, sse } = plan;

function transport() {
  if (Array.isArray(target)) {
    const [command, ...args] = target;
    return new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  }
  return sse ? new SSEClientTransport(new URL(target)) : new StreamableHTTPClientTransport(new URL(target));
}

const capabilities = { sampling: {}, elicitation: { form: {} }, roots: {} };
const client = new Client({ name: "interop", version: "1.0.0" }, { capabilities });
client.setRequestHandler(CreateMessageRequestSchema, sampled);
client.setRequestHandler(ElicitRequestSchema, elicited);
client.setRequestHandler(ListRootsRequestSchema, rooted);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
client.setNotificationHandler(LoggingMessageNotificationSchema, logged);
const used = transport();
// The SDK tells the transport alone what was agreed on.
let revision;
const tell = used.setProtocolVersion?.bind(used);
used.setProtocolVersion = (agreed) => {
  revision = agreed;
  tell?.(agreed);
};
await client.connect(used);
await play(client, revision, (params, options) => client.callTool(params, undefined, options));
await client.close();
