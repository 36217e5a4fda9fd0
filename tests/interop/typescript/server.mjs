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
import { listen } from "./serving.mjs";

const sdk = {
  completable,
  ResourceTemplate,
  notify: (ctx, method, params) => ctx.mcpReq.notify({ method, params }),
  ask: (ctx, method, params) => ctx.mcpReq.send({ method, params }),
  token: (ctx) => ctx.mcpReq._meta?.progressToken,
};

function build() {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" }, { capabilities });
  const watching = offer(server, sdk);
  server.server.setRequestHandler("resources/subscribe", ({ params }) => watching.subscribe(params.uri));
  server.server.setRequestHandler("resources/unsubscribe", ({ params }) => watching.unsubscribe(params.uri));
  return server;
}

const [how, address] = process.argv.slice(2);
if (how === "--stdio") {
  serveStdio(build);
} else if (how === "--http") {
  const modern = toNodeHandler(createMcpHandler(build, { legacy: "reject" }));
  const checks = [localhostHostValidation(), localhostOriginValidation()];
  listen(address, {
    build,
    StreamableTransport: NodeStreamableHTTPServerTransport,
    SSETransport: SSEServerTransport,
    first: async (request, response, body) => {
      if (!checks.every((check) => check(request, response))) return true;
      if (await isLegacyRequest(await toWebRequest(request, body), body)) return false;
      await modern(request, response, body);
      return true;
    },
  });
} else {
  console.error("server.mjs --stdio | --http HOST:PORT");
  process.exit(2);
}
