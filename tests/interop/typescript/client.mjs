// A client on the official TypeScript SDK: client.mjs PLAN
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { elicited, logged, plan, play, rooted, sampled, updated } from "./steps.mjs";

const { target, revision, sse } = plan;
const mode = !revision ? "auto" : revision >= "2026" ? { pin: revision } : "legacy";

function transport() {
  if (Array.isArray(target)) {
    const [command, ...args] = target;
    return new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  }
  return sse ? new SSEClientTransport(new URL(target)) : new StreamableHTTPClientTransport(new URL(target));
}

const capabilities = { sampling: {}, elicitation: { form: {} }, roots: {} };
const client = new Client({ name: "interop", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
client.setRequestHandler("sampling/createMessage", sampled);
client.setRequestHandler("elicitation/create", elicited);
client.setRequestHandler("roots/list", rooted);
client.setNotificationHandler("notifications/resources/updated", updated);
client.setNotificationHandler("notifications/message", logged);
await client.connect(transport());
await play(client, client.getNegotiatedProtocolVersion(), (params, options) => client.callTool(params, options));
await client.close();
