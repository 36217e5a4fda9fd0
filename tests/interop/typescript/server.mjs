// A server on the official TypeScript SDK: server.mjs --stdio | --http HOST:PORT
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest,
} from "@modelcontextprotocol/node";
import {
  completable,
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { SSEServerTransport } from "@modelcontextprotocol/server-legacy/sse";
import { capabilities, offer } from "./fixture.mjs";
import * as newest from "./newest.mjs";
import { listen } from "./serving.mjs";

const sdk = {
  completable,
  ResourceTemplate,
  kept: newest.kept,
  notify: (ctx, method, params) => ctx.mcpReq.notify({ method, params }),
  token: (ctx) => ctx.mcpReq._meta?.progressToken,
};
const once = { ask: async (ctx, method, params, say) => say(await ctx.mcpReq.send({ method, params })) };
const again = {
  ask: newest.rerun,
  // Over HTTP a server object has one request, and no stream of those who listen.
  updated: (server, uri) => (modern ? modern.notify.resourceUpdated(uri) : server.server.sendResourceUpdated({ uri })),
};

function build({ era } = {}) {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" }, { capabilities, ...newest.options });
  const watching = offer(server, { ...sdk, ...(era === "modern" ? again : once) });
  newest.offer(server, () => (modern ? modern.notify.toolsChanged() : server.server.sendToolListChanged()));
  server.server.setRequestHandler("resources/subscribe", ({ params }) => watching.subscribe(params.uri));
  server.server.setRequestHandler("resources/unsubscribe", ({ params }) => watching.unsubscribe(params.uri));
  return server;
}

const [how, address] = process.argv.slice(2);
const modern = how === "--http" ? createMcpHandler(build, { legacy: "reject" }) : undefined;
if (how === "--stdio") {
  serveStdio(build);
} else if (how === "--http") {
  const answer = toNodeHandler(modern);
  const checks = [localhostHostValidation(), localhostOriginValidation()];
  listen(address, {
    build,
    StreamableTransport: NodeStreamableHTTPServerTransport,
    SSETransport: SSEServerTransport,
    first: async (request, response, body) => {
      if (!checks.every((check) => check(request, response))) return true;
      if (await isLegacyRequest(await toWebRequest(request, body), body)) return false;
      await answer(request, response, body);
      return true;
    },
  });
} else {
  console.error("server.mjs --stdio | --http HOST:PORT");
  process.exit(2);
}
