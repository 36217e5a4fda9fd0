// A client on the official TypeScript SDK: client.mjs PLAN
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { changed, elicited, logged, plan, play, rooted, sampled, updated, wait } from "./steps.mjs";

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
client.setNotificationHandler("notifications/tools/list_changed", () => changed("tools"));

const used = transport();
let sent = 0;
const send = used.send.bind(used);
used.send = (...message) => {
  sent += 1;
  return send(...message);
};

let listening;
const newest = {
  listen: async ({ tools, uris }) => {
    listening = await client.listen({ toolsListChanged: tools, resourceSubscriptions: uris });
    const { toolsListChanged = false, resourceSubscriptions = [] } = listening.honoredFilter;
    return { tools: toolsListChanged, uris: resourceSubscriptions };
  },
  changes: ({ count }) => wait("changes", count),
  unlisten: async () => {
    await listening.close();
    return {};
  },
  cached: async ({ uri }) => {
    const ask = () => (uri ? client.readResource({ uri }) : client.listTools());
    await ask();
    const before = sent;
    const { ttlMs, cacheScope } = await ask();
    return { ttlMs, cacheScope, kept: sent === before };
  },
};
await client.connect(used);
const call = (params, options) => client.callTool(params, options);
await play(client, client.getNegotiatedProtocolVersion(), call, newest);
await client.close();
