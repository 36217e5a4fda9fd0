/** HTTP over a function of the program's own, in place of the engine's connections. */

import { onAbort } from "../bridge/abort.js";
import { type AskedOptions, Numbered } from "../bridge/callouts.js";
import { typeName } from "../bridge/errors.js";
import { keepNumbered, letGo } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError, TransportError } from "../errors/errors.js";
import { typeOf } from "../json/checks.js";

/** A request without its URL, as the `init` of the global `fetch`. */
export interface FetchInit {
  /** `POST`, `GET` or `DELETE`. */
  readonly method: string;
  /** Values by names in small letters: a plain object, which can be spread. */
  readonly headers: Readonly<Record<string, string>>;
  /** Not there where the request has none. */
  readonly body?: string;
  /** Redirects are the client's to follow. */
  readonly redirect: "manual";
  /** Aborted when the client needs the answer no more: its head, or the rest of its body. */
  readonly signal: AbortSignal;
}

/** The part of a `Response` that is looked at. */
export interface FetchResponse {
  /** The HTTP status. */
  readonly status: number;
  /** `Headers`, or anything else that gives names and values in pairs. */
  readonly headers: object;
  /** A stream of bytes; null where there is none. */
  readonly body: unknown;
}

/**
 * Sends one HTTP request, as the global `fetch` does, and gives the answer as soon as its head is there. The `fetch` of
 * undici and of other libraries is one, and so is a mock:
 *
 * ```ts
 * const fetch: Fetch = (url, init) => globalThis.fetch(url, { ...init, headers: { ...init.headers, "x-app": "7" } });
 * ```
 */
export type Fetch = (url: string, init: FetchInit) => PromiseLike<FetchResponse>;

/** Something that the engine asks about one exchange, which is a request and its answer. */
interface Asking {
  readonly op: "request" | "read" | "close";
  readonly exchange: number;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly Header[];
  readonly body?: string;
}

type Header = readonly [name: string, value: string];

/** The head of an answer. */
interface Head {
  readonly status: number;
  readonly headers: readonly Header[];
}

/** A piece of its body; without a text there is no more of it. */
interface Piece {
  readonly text?: string;
  readonly end?: true;
}

/** The most bytes of a body that are handed on at once. */
const PIECE = 64 * 1024;

/** The most errors that are looked at, to say what has caused one. */
const CAUSES = 16;

/** An option as the engine takes it, and what keeps the function alive that is in it. */
interface WireTransport {
  readonly wire: object | undefined;
  readonly kept: readonly object[];
}

/**
 * The option `fetch` of a client.
 *
 * @param home hears of what it throws
 * @throws {MisuseError} for what is no function
 */
export function httpTransport(given: Fetch | undefined, home: Home): WireTransport {
  if (given === undefined) return { wire: undefined, kept: [] };
  if (typeof given !== "function") throw new MisuseError(`fetch: expected a function, got ${typeOf(given)}`);
  const exchanges = new Map<number, Exchange>();
  const forget = (number: number): void => {
    if (exchanges.delete(number) && exchanges.size === 0) letGo(handler);
  };
  const giveUp = (number: number, reason: unknown): void => {
    const exchange = exchanges.get(number);
    forget(number);
    exchange?.giveUp(reason);
  };
  /** An exchange that fails is over. */
  const lasting = async <T>(number: number, step: Promise<T>): Promise<T> => {
    try {
      return await step;
    } catch (error) {
      giveUp(number, error);
      throw error;
    }
  };
  // It throws what is for the caller, who hears of it.
  const functions = new Numbered({ ...home, onError: () => {} });
  const handler = functions.number("fetch", async (asked: Asking, { signal }: AskedOptions): Promise<object> => {
    const number = asked.exchange;
    switch (asked.op) {
      case "request": {
        const exchange = new Exchange();
        exchanges.set(number, exchange);
        // The engine closes them all, also those of a client that nobody refers to any more.
        keepNumbered(handler);
        const off = onAbort(signal, () => giveUp(number, signal.reason));
        const sent = exchange.send(given, asked, (error) => home.onError(error, "fetch", "the fetch"));
        return lasting(number, sent).finally(off);
      }
      case "read": {
        const exchange = exchanges.get(number);
        if (!exchange) throw new TransportError("the exchange is over");
        const piece = await lasting(number, exchange.read());
        if (piece.text === undefined || piece.end) forget(number);
        return piece;
      }
      case "close":
        giveUp(number, new DOMException("nobody needs the answer any more", "AbortError"));
        return {};
    }
  });
  return { wire: { handler }, kept: functions.kept };
}

/** One request, and its answer. */
class Exchange {
  readonly #away = new AbortController();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #body: Body | undefined;
  /** Bytes of the body that were not handed on yet. */
  #rest: Uint8Array = new Uint8Array();

  /** @param heard of what `fetch` throws */
  send(fetch: Fetch, asked: Asking, heard: (error: unknown) => void): Promise<Head> {
    return this.#unlessGivenUp(this.#send(fetch, asked, heard));
  }

  /** The next piece of the body. */
  async read(): Promise<Piece> {
    for (;;) {
      while (this.#rest.length > 0) {
        const text = this.#decoder.decode(this.#rest.subarray(0, PIECE), { stream: true });
        this.#rest = this.#rest.subarray(PIECE);
        if (text !== "") return { text };
      }
      const next = this.#body && (await this.#unlessGivenUp(nextOf(this.#body)));
      if (!next || next.done) {
        const text = this.#decoder.decode();
        return text === "" ? {} : { text, end: true };
      }
      this.#rest = bytesOf(next.value);
    }
  }

  /** Nobody needs the rest. */
  giveUp(reason: unknown): void {
    this.#away.abort(reason);
    this.#rest = new Uint8Array();
    if (this.#body) void cancel(this.#body, reason);
  }

  async #send(fetch: Fetch, asked: Asking, heard: (error: unknown) => void): Promise<Head> {
    const { signal } = this.#away;
    const { url, method, body } = asked;
    const init: FetchInit = { method, headers: headersOf(asked.headers), redirect: "manual", signal };
    let response: FetchResponse;
    try {
      response = await fetch(url, body === undefined ? init : { ...init, body });
    } catch (error) {
      if (!signal.aborted) queueMicrotask(() => heard(error));
      throw new TransportError(said(error), { cause: error });
    }
    const head = headOf(response);
    this.#body = bodyOf(response);
    // It took no notice.
    if (signal.aborted && this.#body) void cancel(this.#body, signal.reason);
    return head;
  }

  /** Settles as `step` does, or when nobody needs it any more: what the program waits for may never come. */
  #unlessGivenUp<T>(step: Promise<T>): Promise<T> {
    const { signal } = this.#away;
    return new Promise<T>((resolve, reject) => {
      const off = onAbort(signal, () => reject(signal.reason));
      step.then(resolve, reject).finally(off);
      if (signal.aborted) reject(signal.reason);
    });
  }
}

/** A part of a body, or its end. */
interface Part {
  readonly done?: boolean | undefined;
  readonly value?: unknown;
}

/** The body of an answer, of whatever library. */
interface Body {
  next(): PromiseLike<Part>;
  cancel(reason: unknown): unknown;
}

/** @throws {TransportError} saying why it broke off */
async function nextOf(body: Body): Promise<Part> {
  try {
    return await body.next();
  } catch (error) {
    throw new TransportError(said(error), { cause: error });
  }
}

async function cancel(body: Body, reason: unknown): Promise<void> {
  try {
    await body.cancel(reason);
  } catch {
    // Of a body that has failed, or is over.
  }
}

/** The headers of a request as a plain object: those of a `Headers` are lost where somebody spreads it. */
function headersOf(given: readonly Header[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of given) {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(headers);
}

/** @throws {MisuseError} for what is no `Response` */
function headOf(given: unknown): Head {
  const got = (what: string): MisuseError => new MisuseError(`fetch: expected a Response, got ${what}`);
  if (typeof given !== "object" || given === null) throw got(typeOf(given));
  const { status, headers } = given as { readonly status?: unknown; readonly headers?: unknown };
  if (typeof status !== "number") throw got(`${typeOf(given)} without a status`);
  if (!isIterable(headers)) throw got(`${typeOf(given)} whose headers cannot be iterated`);
  const pairs = [...headers].map((pair): Header => {
    if (!Array.isArray(pair) || pair.length !== 2) throw got(`${typeOf(given)} whose headers are no names and values`);
    return [String(pair[0]), String(pair[1])];
  });
  return { status, headers: pairs };
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

/** A `Response` as libraries and mocks have it. */
interface AnyResponse {
  readonly body?: Partial<ReadableStream<unknown> & AsyncIterable<unknown> & { destroy(): void }> | null;
  readonly bodyUsed?: boolean;
  readonly text?: unknown;
}

/** @throws {MisuseError} for one that cannot be read, or was */
function bodyOf(response: object): Body | undefined {
  const { body, bodyUsed, text } = response as AnyResponse;
  if (body === null) return undefined;
  if (bodyUsed || body?.locked) {
    throw new MisuseError("fetch: the body of the Response was read already: read that of its clone()");
  }
  if (typeof body?.getReader === "function") {
    const reader = body.getReader();
    return { next: () => reader.read(), cancel: (reason) => reader.cancel(reason) };
  }
  let parts: AsyncIterable<unknown>;
  if (typeof body?.[Symbol.asyncIterator] === "function") parts = body as AsyncIterable<unknown>;
  else if (body === undefined && typeof text === "function") parts = whole(() => text.call(response));
  else throw new MisuseError("fetch: expected a Response, got an object whose body cannot be read");
  const iterator = parts[Symbol.asyncIterator]();
  return {
    next: () => iterator.next(),
    // A stream of Node would wait for its next part first.
    cancel: () => (typeof body?.destroy === "function" ? body.destroy() : iterator.return?.()),
  };
}

async function* whole(text: () => unknown): AsyncGenerator<unknown, void, undefined> {
  yield await text();
}

/** @throws {MisuseError} for a part of a body that is something else */
function bytesOf(part: unknown): Uint8Array {
  // Streams made by hand give text as well.
  if (typeof part === "string") return Buffer.from(part);
  if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
  if (part instanceof ArrayBuffer) return new Uint8Array(part);
  throw new MisuseError(`fetch: expected a Response with a body of bytes, got ${typeOf(part)} in it`);
}

/** The words of an error and of those that have caused it: `fetch failed: connect ECONNREFUSED 127.0.0.1:1`. */
function said(error: unknown): string {
  try {
    const words: string[] = [];
    let reason = error;
    for (let looked = 0; looked < CAUSES && reason !== undefined && reason !== null; looked++) {
      const own = wordsOf(reason);
      // Some quote their cause.
      if (!words.some((one) => one.includes(own))) words.push(own);
      reason = (reason as { readonly cause?: unknown }).cause;
    }
    return words.join(": ") || typeName(error);
  } catch {
    return typeName(error); // A proxy, or a property that throws.
  }
}

function wordsOf(reason: unknown): string {
  if (typeof reason === "string") return reason;
  const { message, code, errors } = reason as { message?: unknown; code?: unknown; errors?: unknown };
  if (typeof message === "string" && message !== "") return message;
  // One for each address of a host; it has no message.
  if (Array.isArray(errors) && errors.length > 0) return errors.slice(0, CAUSES).map(wordsOf).join(", ");
  return typeof code === "string" ? code : typeName(reason);
}
