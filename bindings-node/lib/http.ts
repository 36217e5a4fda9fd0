/** Mounting a server in an HTTP server somebody else runs: `fetch` style and `node:http` style. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type * as Addon from "./addon.js";
import { MisuseError } from "./errors.js";
import { wait } from "./host.js";
import { stringify } from "./unicode.js";

/** What may reach an endpoint. All optional. */
export interface MountOptions {
  /** Host names accepted in the Host header. Default: the loopback names. */
  readonly allowedHosts?: readonly string[];
  /** Origins accepted in the Origin header of browsers. Default: the loopback ones. */
  readonly allowedOrigins?: readonly string[];
  /** Legacy sessions kept; then an idle one of whoever has the most goes. Default 10,000. */
  readonly maxSessions?: number;
  /** Milliseconds until an idle legacy session goes. Default 30 minutes. */
  readonly sessionIdleTimeout?: number;
  /** Milliseconds between signs of life on a silent stream. Default 15 seconds. */
  readonly keepAliveInterval?: number;
  /** Events of one session kept for clients that lose a stream. Default 256; 0 keeps none. */
  readonly maxEvents?: number;
  /** Bytes of them. Default 1 MiB. */
  readonly maxEventBytes?: number;
  /** Milliseconds after which a client that lost a stream asks for the rest. Default 1000. */
  readonly sseRetry?: number;
  /**
   * Whether the oldest transport, HTTP+SSE, is served, too. Default false.
   *
   * @deprecated MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP
   */
  readonly sse?: boolean;
  /** Sockets at once, and stateless requests running at once. Default 4096. */
  readonly maxConnections?: number;
}

/** Where to listen, and what may reach it. All optional. */
export interface HttpOptions extends MountOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 8000; 0 takes any that is free. */
  readonly port?: number;
  /** Default `/mcp`. */
  readonly path?: string;
  /**
   * Where the stream of HTTP+SSE is. Default `/sse`.
   *
   * @deprecated MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP
   */
  readonly ssePath?: string;
  /**
   * Where its messages are posted. Default `/messages`.
   *
   * @deprecated MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP
   */
  readonly sseMessagePath?: string;
  /** Hears the URL once connections are accepted. */
  readonly onListening?: (url: string) => void;
}

/** A listener as `node:http` and Express know it. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/** The protected-resource metadata (RFC 9728) of a mounted server, for everybody to read: where tokens are to be had. */
export interface ResourceMetadata {
  /** The path of its URL, from the root of the host. */
  readonly path: string;
  /** What is there: JSON, of the media type `application/json`. */
  readonly text: string;
  /** Answers a request for it, whatever its path is. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same for `node:http`. */
  readonly listener: NodeListener;
}

/** An endpoint without a socket. Which paths lead to it is for its host to decide. */
export interface HttpMount {
  /** Answers one request. Aborting its signal or cancelling the body cancels what runs for it. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same for `node:http`. Mount it before what reads bodies, or leave the body in `request.body`. */
  readonly listener: NodeListener;
  /**
   * Of a server with `auth` that says its `resource`. Both functions above answer requests for its path themselves, when
   * these reach them; what is mounted below a prefix has to have it at the root, too:
   *
   * ```ts
   * app.use("/mcp", mount.listener);
   * if (mount.resourceMetadata) app.use(mount.resourceMetadata.path, mount.resourceMetadata.listener);
   * ```
   */
  readonly resourceMetadata: ResourceMetadata | undefined;
}

interface Head {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
}

/** Where the answer to an exchange goes. `written` asks for the next chunk: not before this one is off. */
interface Sink {
  head(head: Head): void;
  chunk(text: string, written: () => void): void;
}

/** @param owner is kept as long as the endpoint: its handlers are only weakly referred to */
export function mount(endpoint: Addon.HttpEndpoint, maxBytes: number, owner: object): HttpMount {
  const exchange = (head: object, body: Uint8Array, sink: Sink, signal: AbortSignal): Promise<unknown> =>
    wait(
      (op) => endpoint.exchange(op, stringify(head), body),
      signal,
      (name, params: Head & { readonly op: number; readonly text: string }) => {
        if (name === "http_head") sink.head(params);
        else if (name === "http_chunk") sink.chunk(params.text, () => endpoint.written(params.op));
      },
    );
  const document = endpoint.resourceMetadata();
  const kept = { owner, exchange, maxBytes, isProtected: document !== null };
  const at = (target?: string): Pick<HttpMount, "fetch" | "listener"> => ({
    fetch: (request) => answerFetch(kept, request, target),
    listener: (request, response) => void answerNode(kept, request, response, target),
  });
  if (document === null) return { ...at(), resourceMetadata: undefined };
  const { path, text } = JSON.parse(document) as Pick<ResourceMetadata, "path" | "text">;
  return { ...at(), resourceMetadata: { path, text, ...at(path) } };
}

interface Kept {
  readonly exchange: (head: object, body: Uint8Array, sink: Sink, signal: AbortSignal) => Promise<unknown>;
  readonly maxBytes: number;
  /** The server has `auth`. */
  readonly isProtected: boolean;
}

/** Whether the body matters: what a protected server refuses without reading it is not waited for. */
function isRead({ isProtected }: Kept, headers: readonly [string, string][]): boolean {
  if (!isProtected) return true;
  const shown = headers.filter(([name]) => name.toLowerCase() === "authorization");
  return shown.length === 1 && /^\s*bearer /i.test(shown[0]?.[1] ?? "");
}

/**
 * A body, as far as it matters: what is larger than the engine accepts is not read to its end, but
 * read so far that the engine sees it and says so.
 */
class Body {
  readonly #parts: Uint8Array[] = [];
  readonly #maxBytes: number;
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False when that was more than enough. */
  add(part: Uint8Array): boolean {
    this.#parts.push(part);
    this.#size += part.byteLength;
    return this.#size <= this.#maxBytes;
  }

  get bytes(): Uint8Array {
    return this.#parts.length === 1 ? (this.#parts[0] as Uint8Array) : Buffer.concat(this.#parts);
  }
}

/** @param target what is asked for, when that is not what the request says */
async function answerFetch(kept: Kept, request: Request, target: string | undefined): Promise<Response> {
  const url = new URL(request.url);
  const headers: [string, string][] = [...request.headers];
  // `Request` objects made by hand have no Host header; the URL says what it would have been.
  if (!request.headers.has("host")) headers.push(["host", url.host]);
  const body = new Body(kept.maxBytes);
  if (isRead(kept, headers)) for await (const part of request.body ?? []) if (!body.add(part)) break;
  const away = new AbortController();
  const onAbort = (): void => away.abort(request.signal.reason);
  request.signal.addEventListener("abort", onAbort, { once: true });
  if (request.signal.aborted) onAbort();
  const encoder = new TextEncoder();
  return new Promise<Response>((resolve, reject) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    let pending: (() => void) | undefined;
    const sink: Sink = {
      head({ status, headers }) {
        const stream = new ReadableStream<Uint8Array>({
          start(started) {
            controller = started;
          },
          pull() {
            const written = pending;
            pending = undefined;
            written?.();
          },
          cancel(reason) {
            controller = undefined;
            away.abort(reason ?? new DOMException("the body was cancelled", "AbortError"));
          },
        });
        // These have no body, and `Response` insists.
        const empty = status === 204 || status === 205 || status === 304;
        resolve(new Response(empty ? null : stream, { status, headers: headers as [string, string][] }));
      },
      chunk(text, written) {
        pending = written;
        controller?.enqueue(encoder.encode(text));
      },
    };
    const head = { method: request.method, headers, target: target ?? url.pathname + url.search };
    kept
      .exchange(head, body.bytes, sink, away.signal)
      .then(
        () => controller?.close(),
        (error: unknown) => {
          controller?.error(error);
          // Without an answer yet this is the answer; after it, it changes nothing.
          reject(error);
        },
      )
      .finally(() => request.signal.removeEventListener("abort", onAbort));
  });
}

async function answerNode(
  kept: Kept,
  request: IncomingMessage & { readonly body?: unknown; readonly originalUrl?: unknown },
  response: ServerResponse,
  target: string | undefined,
): Promise<void> {
  const away = new AbortController();
  const onClose = (): void => away.abort(new DOMException("the client went away", "AbortError"));
  if (response.destroyed) onClose();
  else response.once("close", onClose);
  const headers: [string, string][] = [];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    headers.push([request.rawHeaders[index] as string, request.rawHeaders[index + 1] as string]);
  }
  try {
    const body = isRead(kept, headers) ? await bodyOf(request, kept.maxBytes) : new Uint8Array();
    // Frameworks take the prefix off that they mount at.
    const asked = typeof request.originalUrl === "string" ? request.originalUrl : (request.url ?? "/");
    const head = { method: request.method ?? "GET", headers, target: target ?? asked };
    const sink: Sink = {
      head({ status, headers }) {
        response.writeHead(status, headers.flat());
        response.flushHeaders();
      },
      chunk(text, written) {
        if (response.write(text)) written();
        else response.once("drain", written);
      },
    };
    await kept.exchange(head, body, sink, away.signal);
    response.end();
  } catch (error) {
    if (response.destroyed) return;
    if (!response.headersSent) response.writeHead(500);
    response.end();
    if (!away.signal.aborted) console.error("tricorn: an HTTP exchange failed:", error);
  }
}

/** The body, also when a framework has read (and parsed) it already. */
async function bodyOf(request: IncomingMessage & { readonly body?: unknown }, maxBytes: number): Promise<Uint8Array> {
  if (request.readableEnded) return bodyRead(request);
  // Neither `end` nor `close` would come any more.
  if (request.destroyed) throw gone();
  return new Promise((resolve, reject) => {
    const read = new Body(maxBytes);
    // Not `for await`: leaving that early would close the socket before anything is answered.
    request.on("data", (part: Uint8Array) => {
      if (read.add(part)) return;
      request.pause();
      resolve(read.bytes);
    });
    request.once("end", () => resolve(read.bytes));
    request.once("close", () => reject(gone()));
    request.once("error", reject);
  });
}

function bodyRead({ body, headers }: IncomingMessage & { readonly body?: unknown }): Uint8Array {
  if (body instanceof Uint8Array) return body;
  if (body !== undefined) return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const { "content-length": length = "0", "transfer-encoding": coding } = headers;
  if (coding === undefined && Number(length) === 0) return new Uint8Array();
  throw new MisuseError(
    "the body was read before the request came here, and it is not in `request.body`: mount the listener before what reads bodies",
  );
}

function gone(): Error {
  return new Error("the client went away in the middle of its request");
}
