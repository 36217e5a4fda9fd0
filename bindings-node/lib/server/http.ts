/** Mounting a server in an HTTP server somebody else runs: `fetch` style and `node:http` style. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type * as Addon from "../bridge/addon.js";
import { say, wait } from "../bridge/host.js";
import { stringify } from "../json/encoding.js";
import { bodyOf, fetchedBody, givenBody, type NodeRequest } from "./body.js";

/** A port that a server listens on: {@link Server.listen}. */
export interface Listener extends AsyncDisposable {
  /** The URL of the endpoint, such as `http://127.0.0.1:8000/mcp`. */
  readonly url: string;
  /** Stops listening and ends what runs over HTTP; the server goes on elsewhere. */
  readonly close: () => Promise<void>;
}

/** Values that may be given with a request. */
export interface ExchangeOptions {
  /** Data of the web framework for it, such as who is signed in: `ctx.host` of all functions that run for it. */
  readonly context?: unknown;
  /** Its body, where that was read before: text, bytes, or what was parsed of it. */
  readonly body?: unknown;
}

/** A listener as `node:http`, `node:http2` and Express know it. What Express gives as the third argument means nothing here. */
export type NodeListener = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  given?: ExchangeOptions | ((...of: never[]) => unknown),
) => void;

/** The protected-resource metadata (RFC 9728) of a mounted server, for everybody to read: where tokens are to be had. */
export interface ResourceMetadata {
  /** The path of its URL, from the root of the host. */
  readonly path: string;
  /** The document: JSON, of the media type `application/json`. */
  readonly text: string;
  /** Answers a request for it, whatever its path is. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same for `node:http`. */
  readonly listener: NodeListener;
}

/** An endpoint without a socket. Which paths lead to it is for its host to decide. */
export interface HttpMount {
  /** Answers one request. Aborting its signal or cancelling the body cancels what runs for it. */
  readonly fetch: (request: Request, given?: ExchangeOptions) => Promise<Response>;
  /** The same for `node:http`. Mount it before what reads bodies, or leave the body in `request.body`. */
  readonly listener: NodeListener;
  /**
   * The metadata of a server with `auth` that says its `resource`. Both functions above answer requests for its path
   * themselves, when these reach them; what is mounted below a prefix has to have it at the root, too:
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

/** The receiver of the answer to an exchange. `written` asks for the next chunk: not before this one is off. */
interface Sink {
  head(head: Head): void;
  chunk(text: string, written: () => void): void;
}

/** @param owner is kept as long as the endpoint: its handlers are only weakly referred to */
export function mount(endpoint: Addon.HttpEndpoint, maxBytes: number, owner: object): HttpMount {
  const exchange: Kept["exchange"] = (head, body, sink, signal, host) =>
    wait(
      (op) => endpoint.exchange(op, stringify(head), body),
      signal,
      (name, params: Head & { readonly op: number; readonly text: string }) => {
        if (name === "http_head") sink.head(params);
        else if (name === "http_chunk") sink.chunk(params.text, () => endpoint.written(params.op));
      },
      host,
      // Nobody else may refer to the server while it answers.
    ).finally(() => void owner);
  const document = endpoint.resourceMetadata();
  const kept = { owner, exchange, maxBytes, isProtected: document !== null };
  const at = (target?: string): Pick<HttpMount, "fetch" | "listener"> => ({
    fetch: (request, given) => answerFetch(kept, request, target, given),
    listener: (request, response, given) =>
      void answerNode(
        kept,
        request as IncomingMessage,
        // It has what is used here.
        response as ServerResponse,
        target,
        typeof given === "object" ? given : undefined,
      ),
  });
  if (document === null) return { ...at(), resourceMetadata: undefined };
  const { path, text } = JSON.parse(document) as Pick<ResourceMetadata, "path" | "text">;
  return { ...at(), resourceMetadata: { path, text, ...at(path) } };
}

interface Kept {
  readonly exchange: (
    head: object,
    body: Uint8Array,
    sink: Sink,
    signal: AbortSignal,
    host: unknown,
  ) => Promise<unknown>;
  readonly maxBytes: number;
  /** The server has `auth`. */
  readonly isProtected: boolean;
}

/** True if the body matters: what a protected server refuses without reading it is not waited for. */
function isRead({ isProtected }: Kept, headers: readonly [string, string][]): boolean {
  if (!isProtected) return true;
  const shown = headers.filter(([name]) => name.toLowerCase() === "authorization");
  return shown.length === 1 && /^\s*bearer /i.test(shown[0]?.[1] ?? "");
}

/** @param target what is asked for, when that is not what the request says */
async function answerFetch(
  kept: Kept,
  request: Request,
  target: string | undefined,
  given: ExchangeOptions | undefined,
): Promise<Response> {
  const url = new URL(request.url);
  const headers: [string, string][] = [...request.headers];
  // `Request` objects made by hand have no Host header; the URL says what it would have been.
  if (!request.headers.has("host")) headers.push(["host", url.host]);
  const body = isRead(kept, headers)
    ? await bodyGiven(given, () => fetchedBody(request, kept.maxBytes))
    : new Uint8Array();
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
      .exchange(head, body, sink, away.signal, given?.context)
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

/** Returns the body that was read before, else what `read` reads. */
function bodyGiven(
  given: ExchangeOptions | undefined,
  read: () => Promise<Uint8Array>,
): Promise<Uint8Array> | Uint8Array {
  return given?.body === undefined ? read() : givenBody(given.body);
}

async function answerNode(
  kept: Kept,
  request: NodeRequest & { readonly originalUrl?: unknown },
  response: ServerResponse,
  target: string | undefined,
  given: ExchangeOptions | undefined,
): Promise<void> {
  const away = new AbortController();
  const onClose = (): void => away.abort(new DOMException("the client went away", "AbortError"));
  if (response.destroyed) onClose();
  else response.once("close", onClose);
  const headers = headersOf(request);
  try {
    const body = isRead(kept, headers)
      ? await bodyGiven(given, () => bodyOf(request, kept.maxBytes))
      : new Uint8Array();
    // Frameworks take the prefix off that they mount at.
    const asked = typeof request.originalUrl === "string" ? request.originalUrl : (request.url ?? "/");
    const head = { method: request.method ?? "GET", headers, target: target ?? asked };
    const sink: Sink = {
      head({ status, headers }) {
        // Not all at once: session and compression middleware that wraps `writeHead` misreads an array.
        for (const [name, values] of byName(headers))
          response.setHeader(name, values.length === 1 ? values[0] : values);
        response.writeHead(status);
        response.flushHeaders();
      },
      chunk(text, written) {
        if (response.write(text)) written();
        else response.once("drain", written);
      },
    };
    await kept.exchange(head, body, sink, away.signal, given?.context);
    response.end();
  } catch (error) {
    if (response.destroyed) return;
    if (!response.headersSent) response.writeHead(500);
    response.end();
    if (!away.signal.aborted) say("tricorn: an HTTP exchange failed:", error);
  }
}
/** Headers with all the values of each name. */
function byName(headers: readonly (readonly [string, string])[]): Map<string, [string, ...string[]]> {
  const all = new Map<string, [string, ...string[]]>();
  for (const [name, value] of headers) {
    const values = all.get(name);
    if (values === undefined) all.set(name, [value]);
    else values.push(value);
  }
  return all;
}

/** Headers of which Node keeps the first where one comes twice. */
const ONCE = new Set(
  (
    "age authorization content-length content-type etag expires from host if-modified-since if-unmodified-since " +
    "last-modified location max-forwards proxy-authorization referer retry-after server user-agent"
  ).split(" "),
);

/** The headers as they came; where what stands before has changed them, as they are now. */
function headersOf(request: IncomingMessage): [string, string][] {
  const raw = new Map<string, string[]>();
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = (request.rawHeaders[index] as string).toLowerCase();
    const values = raw.get(name) ?? [];
    values.push(request.rawHeaders[index + 1] as string);
    raw.set(name, values);
  }
  const headers: [string, string][] = [];
  for (const [name, now] of Object.entries(request.headers)) {
    if (now === undefined) continue;
    // What HTTP/2 has in place of a request line and of `Host`.
    if (name.startsWith(":")) {
      if (name === ":authority" && request.headers.host === undefined) headers.push(["host", `${now}`]);
      continue;
    }
    const came = raw.get(name.toLowerCase()) ?? [];
    const values = isAsCame(name, now, came) ? came : Array.isArray(now) ? now : [now];
    for (const value of values) headers.push([name, readable(`${value}`)]);
  }
  return headers;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** A header's value: Node shows each byte as a character, and proxies write names in UTF-8. */
function readable(value: string): string {
  if (!/[\u0080-\u{10ffff}]/u.test(value) || /[\u0100-\u{10ffff}]/u.test(value)) return value;
  try {
    return UTF8.decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}

function isAsCame(name: string, now: string | string[], came: readonly string[]): boolean {
  if (Array.isArray(now)) return now.length === came.length && now.every((value, index) => value === came[index]);
  return now === came.join(name === "cookie" ? "; " : ", ") || (ONCE.has(name) && now === came[0]);
}
