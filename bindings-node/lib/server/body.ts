/** The body of a request that somebody else's HTTP server took in, whatever state its stream is in. */

import type { IncomingMessage } from "node:http";
import { MisuseError } from "../errors/errors.js";
import { stringify } from "../json/encoding.js";

/** A request of `node:http`, with what frameworks leave on it. */
export type NodeRequest = IncomingMessage & { readonly body?: unknown; readonly rawBody?: unknown };

/**
 * A body, as far as it matters: what is larger than the engine accepts is not read to its end, but
 * read so far that the engine sees it and says so.
 */
class Body {
  readonly #parts: Uint8Array[] = [];
  readonly #maxBytes: number;
  size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False when that was more than enough. */
  add(part: Uint8Array): boolean {
    this.#parts.push(part);
    this.size += part.byteLength;
    return this.size <= this.#maxBytes;
  }

  get bytes(): Uint8Array {
    return this.#parts.length === 1 ? (this.#parts[0] as Uint8Array) : Buffer.concat(this.#parts);
  }
}

/** A body that somebody has read already, and as a rule parsed: bytes and text as they are, anything else as JSON. */
export function givenBody(body: unknown): Uint8Array {
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  return Buffer.from(typeof body === "string" ? body : stringify(body));
}

/** The advice for a body that was read, and that nobody left. */
const GIVE = "mount the server before what reads bodies, or give what was read as the option `body`";

/** The body of a request of `fetch`. */
export async function fetchedBody(request: Request, maxBytes: number, given?: unknown): Promise<Uint8Array> {
  if (given !== undefined) return givenBody(given);
  if (request.bodyUsed || request.body?.locked) {
    throw new MisuseError(`the body was read before the request came here: ${GIVE}: fetch(request, { body })`);
  }
  const body = new Body(maxBytes);
  for await (const part of (request.body ?? []) as AsyncIterable<unknown>) {
    // Streams made by hand give text as well.
    const bytes = typeof part === "string" ? Buffer.from(part) : (part as Uint8Array);
    if (!body.add(bytes)) break;
  }
  return body.bytes;
}

/** The body of a request of `node:http`, also when a framework has read (and parsed) it already. */
export async function bodyOf(request: NodeRequest, maxBytes: number, given?: unknown): Promise<Uint8Array> {
  if (given !== undefined) return givenBody(given);
  const { rawBody } = request;
  if (rawBody instanceof Uint8Array || typeof rawBody === "string") return givenBody(rawBody);
  if (request.readableEnded) return bodyLeft(request, 0);
  // Neither `end` nor `close` would come any more.
  if (request.destroyed) throw gone();
  return stream(request, maxBytes);
}

/** Reads a stream that may be paused, decoded, read in part or read by others as well. */
function stream(request: NodeRequest, maxBytes: number): Promise<Uint8Array> {
  // Nothing that was read before comes again.
  const isWhole = !request.readableDidRead;
  return new Promise((resolve, reject) => {
    const body = new Body(maxBytes);
    // Each chunk that `read` returns is an event, too, whoever has read it.
    const onData = (part: Uint8Array | string): void => {
      const bytes = typeof part === "string" ? Buffer.from(part, request.readableEncoding ?? "utf8") : part;
      if (body.add(bytes)) return;
      done();
      // Not to its end: the socket is closed once the answer is off.
      request.pause();
      resolve(body.bytes);
    };
    const onReadable = (): void => {
      while (request.read() !== null);
    };
    // A pause that comes later lasts no longer than this.
    const onPause = (): void => void setImmediate(flow);
    const flow = (): void => {
      if (isOver) return;
      // With such a listener, nothing else makes it flow.
      if (request.listenerCount("readable") > (isListening ? 1 : 0)) {
        if (!isListening) request.on("readable", onReadable);
        isListening = true;
        onReadable();
      } else request.resume();
    };
    const onEnd = (): void => {
      done();
      try {
        resolve(isWhole || body.size === lengthOf(request) ? body.bytes : bodyLeft(request, body.size));
      } catch (error) {
        reject(error);
      }
    };
    const onClose = (): void => onError(gone());
    const onError = (error: unknown): void => {
      done();
      reject(error);
    };
    const listeners = { data: onData, pause: onPause, end: onEnd, close: onClose, error: onError };
    let isListening = false;
    let isOver = false;
    const done = (): void => {
      isOver = true;
      for (const [name, listener] of Object.entries(listeners)) request.off(name, listener);
      if (isListening) request.off("readable", onReadable);
      // An error after that is nobody's.
      request.on("error", () => {});
    };
    // Not `for await`: leaving that early would close the socket before anything is answered.
    for (const [name, listener] of Object.entries(listeners)) request.on(name, listener);
    flow();
  });
}

/** The length that a request announces, if it does. */
function lengthOf({ headers }: IncomingMessage): number | undefined {
  const { "content-length": length, "transfer-encoding": coding } = headers;
  return coding === undefined ? Number(length ?? 0) : undefined;
}

/** The body that a framework has left, of a stream at its end. */
function bodyLeft(request: NodeRequest, seen: number): Uint8Array {
  const { body } = request;
  if (lengthOf(request) === 0) return new Uint8Array();
  if (body !== undefined) return givenBody(body);
  const how = seen === 0 ? "was read" : "was read in part";
  throw new MisuseError(
    `the body ${how} before the request came here, and it is not in \`request.body\`: ${GIVE}: ` +
      "listener(request, response, { body })",
  );
}

function gone(): Error {
  return new Error("the client went away in the middle of its request");
}
