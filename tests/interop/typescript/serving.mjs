// The HTTP side of the servers on both versions of the official TypeScript SDK.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Events } from "./fixture.mjs";

/** Milliseconds after which a client that lost a stream asks for the rest: when the server has noticed that it is gone. */
const retryInterval = 1000;

async function json(request) {
  if (request.method !== "POST") return undefined;
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/**
 * Listens: sessions of Streamable HTTP on /mcp, HTTP+SSE on /sse. `build` makes a server; `first`, if there is one, may
 * answer a request for /mcp and then says true.
 */
export function listen(address, { build, StreamableTransport, SSETransport, first }) {
  const sessions = new Map();

  async function streamable(request, response, body) {
    if (await first?.(request, response, body)) return;
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      if (body?.method !== "initialize") {
        response.writeHead(request.headers["mcp-session-id"] ? 404 : 400).end();
        return;
      }
      transport = new StreamableTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(request, response, body);
  }

  const streams = new Map();

  async function pair(request, response, url) {
    if (request.method === "GET" && url.pathname === "/sse") {
      const transport = new SSETransport("/messages", response);
      streams.set(transport.sessionId, transport);
      transport.onclose = () => streams.delete(transport.sessionId);
      await build().connect(transport);
    } else if (request.method === "POST" && url.pathname === "/messages") {
      const transport = streams.get(url.searchParams.get("sessionId"));
      if (transport) await transport.handlePostMessage(request, response);
      else response.writeHead(404).end();
    } else response.writeHead(405).end();
  }

  const [host, port] = address.split(":");
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === "/mcp") await streamable(request, response, await json(request));
    else if (SSETransport) await pair(request, response, url);
    else response.writeHead(404).end();
  });
  server.listen(Number(port), host, () => console.error(`ready http://${host}:${server.address().port}/mcp`));
}
