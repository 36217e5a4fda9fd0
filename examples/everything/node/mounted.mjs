// The server mounted in somebody else's HTTP server.
import { createServer } from "node:http";
import { Readable } from "node:stream";

/** The kinds of mounts, each a listener of `node:http`. */
const kinds = {
  listener: ({ listener }) => listener,
  express: ({ listener, resourceMetadata }) => below("/mcp", listener, resourceMetadata),
  fetch:
    ({ fetch }) =>
    (request, response) =>
      void passOn(fetch, request, response),
};

/** As Express does it: takes off the prefix that the server is mounted at, and has read the body before. */
function below(prefix, listener, metadata) {
  return async (request, response) => {
    const { pathname } = new URL(request.url, "http://host");
    if (pathname === metadata?.path) return metadata.listener(request, response);
    if (pathname !== prefix) return response.writeHead(404).end();
    request.originalUrl = request.url;
    request.url = request.url.slice(prefix.length) || "/";
    const parts = await request.toArray().catch(() => undefined);
    if (parts === undefined) return;
    if (parts.length > 0) request.body = parsed(Buffer.concat(parts));
    listener(request, response);
  };
}

function parsed(bytes) {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return bytes;
  }
}

/** As adapters for frameworks that know `Request` and `Response` do it. */
async function passOn(answer, request, response) {
  const away = new AbortController();
  response.once("close", () => away.abort());
  let asked;
  try {
    const headers = new Headers();
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      headers.append(request.rawHeaders[at], request.rawHeaders[at + 1]);
    }
    const body = request.method === "GET" || request.method === "HEAD" ? undefined : Readable.toWeb(request);
    const url = `http://${request.headers.host}${request.url}`;
    asked = new Request(url, { method: request.method, headers, body, duplex: "half", signal: away.signal });
  } catch {
    response.writeHead(400).end();
    return;
  }
  try {
    const given = await answer(asked);
    response.writeHead(given.status, [...given.headers].flat());
    response.flushHeaders();
    for await (const chunk of given.body ?? []) response.write(chunk);
    response.end();
  } catch (error) {
    if (!away.signal.aborted) throw error;
  }
}

/** Serves there, and says so as `run` does. */
export function serveMounted(app, kind, host, port, options) {
  const server = createServer(kinds[kind](app.http(options)));
  server.listen(port, host, () => console.error(`ready http://${host}:${server.address().port}/mcp`));
}
