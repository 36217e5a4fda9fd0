// A server on the official TypeScript SDK before 2.0: server1.mjs --stdio | --http HOST:PORT
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ResultSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { capabilities, offer } from "./fixture.mjs";
import { listen } from "./serving.mjs";

const sdk = {
  completable,
  ResourceTemplate,
  shapes: true,
  notify: (ctx, method, params) => ctx.sendNotification({ method, params }),
  ask: async (ctx, method, params, say) => say(await ctx.sendRequest({ method, params }, ResultSchema)),
  token: (ctx) => ctx._meta?.progressToken,
};

function build() {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" }, { capabilities });
  const watching = offer(server, sdk);
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => watching.subscribe(params.uri));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => watching.unsubscribe(params.uri));
  return server;
}

const [how, address] = process.argv.slice(2);
if (how === "--stdio") {
  await build().connect(new StdioServerTransport());
} else if (how === "--http") {
  listen(address, { build, StreamableTransport: StreamableHTTPServerTransport, SSETransport: SSEServerTransport });
} else {
  console.error("server1.mjs --stdio | --http HOST:PORT");
  process.exit(2);
}
