/** The server: tools, resources and prompts in, serving out. */

import { AsyncResource } from "node:async_hooks";
import type * as Addon from "../bridge/addon.js";
import { native } from "../bridge/errors.js";
import {
  addon,
  bridge,
  type Handler,
  keepReplaced,
  newSource,
  type OpListener,
  register,
  say,
  wait,
} from "../bridge/host.js";
import { setNativeServer } from "../bridge/local-server.js";
import { withOptions } from "../bridge/options.js";
import { type Home, logError } from "../bridge/scope.js";
import { type AnyState, type Context, Offer } from "../call/context.js";
import { type Runner, Values, Whose } from "../call/handler.js";
import { type BuiltinMiddleware, type Middleware, wrap } from "../call/middleware.js";
import type { AnyFunction } from "../call/signature.js";
import { ClosedError, MisuseError } from "../errors/errors.js";
import { checkFunctions, checkTypes, shown } from "../json/checks.js";
import { deprecated, warnOptions } from "../json/deprecation.js";
import { paramsJson } from "../json/encoding.js";
import { toEngine } from "../json/options.js";
import type { Kind } from "../model/definitions.js";
import { userPackage } from "../model/identity.js";
import type { CacheHints } from "../model/options.js";
import { serverAuth } from "./auth.js";
import { address, askedFor, closeOnSignal, DRAIN } from "./cli.js";
import type { Fallback } from "./completion.js";
import { serverStore } from "./document-store.js";
import { forgotten, type Heard, hear } from "./events.js";
import { Extension, registered } from "./extension.js";
import { type ExchangeOptions, type HttpMount, type Listener, mount, type NodeListener } from "./http.js";
import { isWithin, liveBy } from "./lifespan.js";
import type { Metrics } from "./metrics.js";
import { type HttpOptions, type MountOptions, OWN, type ServerOptions } from "./options.js";
import { Registration } from "./registration.js";
import { sessionOf } from "./session.js";
import { patiently } from "./shutdown.js";
import { type Source, sourceOf } from "./sources.js";
import { giveBackStreams, takeStreams } from "./streams.js";

const TASKS = "io.modelcontextprotocol/tasks";

/** Refuses what other SDKs take, with what to write. */
function checkArguments(name: unknown, options: unknown): void {
  const shown = (value: unknown): string => JSON.stringify(value) ?? "…";
  if (typeof name === "object" && name !== null) {
    const info = name as { name?: unknown; version?: unknown };
    const more = info.version === undefined ? "" : `, { version: ${shown(info.version)} }`;
    throw new MisuseError(`Server: expected a name, got an object: give new Server(${shown(info.name)}${more})`);
  }
  if (typeof options === "string") {
    throw new MisuseError(`Server: expected options, got ${shown(options)}: give { version: ${shown(options)} }`);
  }
}

/** Servers that serve refer to themselves: nobody else need. */
const serving = new Set<Server<AnyState>>();

/**
 * A server, for any number of connections at once.
 *
 * ```ts
 * const app = new Server("demo");
 * app.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
 * await app.run();
 * ```
 */
export class Server<State = unknown> extends Offer<State> {
  /** As clients see it. */
  readonly name: string;
  readonly #native: Addon.Server;
  readonly #source: number;
  /** The engine refers to handlers weakly: this keeps them, by kind and name. */
  readonly #kept: Map<string, readonly object[]>;
  readonly #middleware: object[] = [];
  readonly #heard: Heard;
  readonly #home: Home;
  readonly #maxMessageBytes: number;
  #mount: HttpMount | undefined;
  #serves = new Set<Promise<unknown>>();
  #closed = false;

  /** @param name default: the name in your package.json */
  constructor(name?: string, options: ServerOptions<State> = {}) {
    checkArguments(name, options);
    const { onError, lifespan, state, extensions = [], auth, store, ...rest } = options;
    checkFunctions(options, ["onError"]);
    const user = userPackage();
    const known = name ?? user.name ?? "server";
    const home: Home = { scope: new AsyncResource("tricorn.Server"), running: 0, onError: onError ?? logError, state };
    const { wire, kept: asked } = serverAuth(auth, home);
    // The engine says by itself that a store fails: only who wants to hears each time.
    const own = serverStore(store, { scope: home.scope, running: 0, onError: onError ?? (() => {}) });
    const version = user.version ?? "0.0.0";
    const settings = toEngine({ version, ...rest, auth: wire, store: own.wire, name: known });
    const source = newSource();
    const engine = withOptions(() => new addon.Server(bridge, source, settings), OWN);
    const kept = new Map<string, readonly object[]>([
      ["auth", asked],
      ["store", own.kept],
    ]);
    const offered = new Map<string, ReadonlyMap<number, Handler>>();
    const replaced = new Map<number, Handler>();
    const registration = new Registration(home, {
      add: (kind, name, definition, more, [runner]) => {
        const handlers = new Map<number, Handler>();
        const numbered = (handler: Handler): number => {
          const id = register(handler);
          handlers.set(id, handler);
          return id;
        };
        engine.add(kind, definition, more(numbered), numbered(runner));
        for (const [id, handler] of offered.get(`${kind} ${name}`) ?? []) keepReplaced(id, handler, replaced);
        offered.set(`${kind} ${name}`, handlers);
      },
      remove: (kind, name) => {
        offered.delete(`${kind} ${name}`);
        return engine.remove(kind, name);
      },
    });
    super(registration);
    this.name = known;
    home.extensions = declared(options);
    home.session = (key) => sessionOf<State>(key, home);
    this.#home = home;
    this.#source = source;
    this.#native = engine;
    setNativeServer(this, engine);
    this.#kept = kept;
    this.#maxMessageBytes = options.maxMessageBytes ?? 4 << 20;
    if (lifespan && state !== undefined) throw new MisuseError("lifespan makes the state: leave out one of them");
    if (lifespan) this.#kept.set("lifespan", liveBy(this.#native, lifespan, this.#home));
    this.#heard = { logs: [], home: new WeakRef(home) };
    hear(this.#source, this.#heard);
    forgotten.register(this, this.#source);
    if (!Array.isArray(extensions))
      throw new MisuseError(`extensions: expected a list of extensions, got ${shown(extensions)}`);
    for (const extension of extensions) this.addExtension(extension);
  }

  /**
   * Adds a file as a resource, read when it is asked for.
   *
   * @param options.maxBytes larger files are refused; default 2 MiB
   * @param options.cache how long what is in it keeps, and for whom
   * @param options.scopes what a caller's access token needs, over HTTP
   * @throws {MisuseError} when there is no such file, or the URI is none or is taken
   */
  addFile(
    path: string,
    uri: string,
    options: {
      readonly maxBytes?: number | undefined;
      readonly cache?: CacheHints | undefined;
      readonly scopes?: readonly string[] | undefined;
    } = {},
  ): void {
    withOptions(() => this.#native.addFiles(toEngine({ path, uri, directory: false, ...options })));
  }

  /**
   * Adds the files of a directory, and of those in it, as resources: `uri` with their path behind it. They are listed
   * and read as they are when they are asked for; nothing outside of the directory can be read. The directory is
   * removed, hidden and shown as a resource, by its `uri`.
   *
   * @param options.hidden whether files whose names begin with a dot are there, too; default false
   * @param options.maxFiles the most that are listed; default 10,000
   * @param options.maxBytes larger files are refused; default 2 MiB
   * @param options.cache how long what is in them keeps, and for whom
   * @param options.scopes what a caller's access token needs, over HTTP, to see and read them
   * @throws {MisuseError} when there is no such directory, or the URI is none
   */
  addDirectory(
    path: string,
    uri: string,
    options: {
      readonly hidden?: boolean | undefined;
      readonly maxFiles?: number | undefined;
      readonly maxBytes?: number | undefined;
      readonly cache?: CacheHints | undefined;
      readonly scopes?: readonly string[] | undefined;
    } = {},
  ): void {
    withOptions(() => this.#native.addFiles(toEngine({ path, uri, directory: true, ...options })));
  }

  /**
   * Shows or hides something: what is hidden is not listed and cannot be used. For one client alone:
   * {@link Context.setEnabled}.
   *
   * @param name the name; of a resource the URI, of a template the URI template
   * @returns whether that changed anything
   */
  setEnabled(kind: Kind, name: string, enabled: boolean): boolean {
    return native(() => this.#native.setEnabled(kind, name, enabled));
  }

  /**
   * Sets the source of what is not registered: lists that change by themselves, or another server.
   *
   * ```ts
   * app.setSource("tool", {
   *   list: () => upstream.listTools(),
   *   get: (params) => upstream.callTool(params.name, params.arguments),
   * });
   * ```
   */
  setSource<K extends Kind>(kind: K, source: Source<K, State>): this {
    const { list, get } = sourceOf(kind, source as unknown as Source<Kind>, this.#home);
    native(() => this.#native.setSource(kind, list && register(list), get && register(get)));
    this.#kept.set(`source ${kind}`, [list ?? {}, get ?? {}]);
    return this;
  }

  /** Suggests values for all arguments that have no function of their own (`complete`). */
  onComplete(complete: Fallback<State>): this {
    return this.#hook("complete", new Values("completion", "the completion", complete, this.#home));
  }

  /** Hears of clients that subscribe or listen to resources, and of the end of that. What it throws refuses it. */
  onSubscribe(
    heard: (change: { readonly uri: string; readonly subscribed: boolean }, ctx: Context<State>) => unknown,
  ): this {
    const call: AnyFunction = async (change, ctx) => {
      await heard(change, ctx);
    };
    return this.#hook("subscribe", new Values("subscription", "the subscription", call, this.#home));
  }

  /**
   * Says whose a request is, where users are known by something else than `auth`.
   *
   * ```ts
   * app.principal(({ request }) => request.headers["x-user"]);
   * ```
   *
   * In 2026-07-28 the state between rounds of questions, and over HTTP a task, belong to who that is, and are refused to all
   * others. Undefined or null: nobody's in particular, and anybody of whom this says the same may go on. It is called inside
   * of all middleware, whose `values` it sees, of requests that may ask or are about tasks; neither it nor middleware may ask
   * the client then. When it throws, the request fails. Default: `ctx.principal`, else the issuer and subject of a JSON Web
   * Token in `Authorization`, which is not verified here, else that header as it is.
   */
  principal(of: (ctx: Context<State>) => string | null | undefined | Promise<string | null | undefined>): this {
    if (typeof of !== "function") throw new MisuseError(`principal: expected a function, got ${shown(of)}`);
    const call: AnyFunction = (_, ctx) => of(ctx);
    return this.#hook("principal", new Whose("principal", "the principal", call, this.#home));
  }

  /**
   * Hears that a client's roots have changed. The context belongs to no request, and can ask: `ctx.listRoots()`.
   *
   * @deprecated MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration
   */
  onRootsChanged(heard: (ctx: Context<State>) => unknown): this {
    deprecated("onRootsChanged", "roots");
    const call: AnyFunction = async (_, ctx) => {
      await heard(ctx);
    };
    return this.#hook("roots_changed", new Values("roots_changed", "what hears of roots", call, this.#home));
  }

  /**
   * Offers an extension of the protocol: its requests are answered, its notifications can be sent. Clients have to declare
   * it, too. Connections that are open do not learn of it, and what is added to the extension later is not offered.
   *
   * @throws {MisuseError} naming what is wrong with it: an identifier without a prefix, a name that is the protocol's or
   *   taken, settings that are no object
   */
  addExtension(extension: Extension<AnyState>): this {
    if (!(extension instanceof Extension)) throw new MisuseError("extension: expected an Extension");
    const { definition, runners } = registered(extension, this.#home);
    native(() => this.#native.addExtension(definition));
    this.#kept.set(`extension ${extension.id}`, runners);
    this.#home.extensions?.add(extension.id);
    return this;
  }

  /**
   * Sends a notification of an extension to the clients that asked for it: those with `true` in its member of their filter,
   * and those with `key` in that. Clients of older revisions, which cannot ask, hear of it when they declare the extension.
   *
   * ```ts
   * app.notify("notifications/com.example/found", { query, title }, query);
   * ```
   *
   * @param key what it is about. Without one it is for those with `true` alone
   * @throws {MisuseError} when no extension of this server has the notification, and for parameters that are no object
   */
  notify(method: string, params?: Readonly<Record<string, unknown>>, key?: string): void {
    checkTypes("notify", ["method", method, "string"], ["key", key, "string", "optional"]);
    native(() => this.#native.notify(method, paramsJson(method, params), key));
  }

  /**
   * Puts a function around every request that a handler answers, or what the engine has: `logging()`, `timing()`,
   * `rateLimit(5)`, `concurrencyLimit(10)`. The first is the outermost.
   *
   * ```ts
   * app.middleware(async (request, context, next) => {
   *   if (!allowed(context.request, request.method)) throw new RpcError(-32003, "not allowed");
   *   return next(request, context);
   * });
   * ```
   */
  middleware(middleware: Middleware<Context<State>> | BuiltinMiddleware): this {
    this.#middleware.push(...wrap(this.#native, middleware, this.#home, this.#heard.logs, false));
    return this;
  }

  /**
   * Tells the client that the visit to a page is over (2025-11-25): the one that was asked for it, by
   * {@link Context.elicitUrl} or a {@link UrlElicitationRequiredError}, also after the call. Of one client the last 256
   * visits are known; nothing happens with others.
   */
  elicitationComplete(elicitationId: string): void {
    this.#native.elicitationComplete(elicitationId);
  }

  /** Tells clients that a resource has changed: those that subscribed or listen to it, or to what it is a part of. */
  resourceUpdated(uri: string | URL): void {
    this.#native.resourceUpdated(String(uri));
  }

  /** Tells clients that the list of a source has changed. Of what is registered they are told anyway. */
  listChanged(kind: Kind): void {
    native(() => this.#native.listChanged(kind));
  }

  /**
   * Serves until the client or the user ends it: over stdin and stdout, unless HTTP is asked for.
   *
   * HTTP is asked for here (true, a port, `"host:port"`, `"unix:/run/mcp.sock"`, options) or on the command line by
   * `--http [HOST:PORT|unix:PATH]`; `ready <url>` then appears on stderr. Ctrl-C closes the server,
   * SIGTERM {@link drain | drains} it, and this settles; the exit status after Ctrl-C is 130. A handler that goes on although it was
   * cancelled keeps the program for half a second only, and whatever else of it is alive for a
   * second: after these signals, and when stdin has ended. A program whose event loop is blocked is
   * killed five seconds after a signal or the end of its streams, after SIGTERM `drainTimeout` later. On Windows Ctrl-Break counts as SIGTERM, and nothing ends a blocked event loop.
   */
  async run(http: boolean | number | string | HttpOptions = askedFor(process.argv.slice(2))): Promise<void> {
    const options = http === false ? undefined : address("run", http);
    const patience = options === undefined ? 0 : (options.drainTimeout ?? DRAIN);
    const server = { close: () => this.close(), drained: () => this.#drained() };
    const signals = closeOnSignal(
      server,
      this.#home,
      typeof patience === "number" ? patience : DRAIN,
      options === undefined,
    );
    try {
      if (options === undefined) await this.serveStdio();
      else await this.serveHttp({ onListening: (url) => say(`ready ${url}`), ...options });
    } finally {
      signals.done(http === false && !this.#closed);
    }
  }

  /**
   * Serves one client over stdin and stdout, which belong to the protocol meanwhile: what the program
   * prints goes to stderr, and there is nothing to read. Settles when stdin has ended, or nobody reads
   * stdout any more, and all answers are written.
   *
   * On Windows this holds for `console` and the streams of `process`. Children of handlers must not have them either
   * there: `stdio: "inherit"` gives a child those of the protocol. Pipes, which are the default, do not.
   */
  async serveStdio(): Promise<void> {
    takeStreams();
    try {
      await this.#serve((op) => this.#native.serveStdio(op));
    } finally {
      giveBackStreams();
    }
  }

  /** Serves Streamable HTTP, legacy and modern clients alike. Settles after {@link close}. */
  async serveHttp(http: number | string | HttpOptions = {}): Promise<void> {
    const options = address("serveHttp", http);
    warnOptions(options);
    checkFunctions(options, ["onListening"]);
    const { onListening, ...rest } = options;
    await this.#serve(
      (op) => withOptions(() => this.#native.serveHttp(toEngine(rest), op)),
      (_event, { url }: { readonly url: string }) => onListening?.(url),
    );
  }

  /**
   * Serves Streamable HTTP, and says where as soon as clients can come:
   *
   * ```ts
   * const { url, close } = await app.listen({ port: 8000 });
   * ```
   *
   * A port alone, `"host:port"` or `"unix:/run/mcp.sock"` will do: `app.listen(8000)`.
   *
   * The program goes on as long as it listens. The signals are the program's: {@link run} sees to them by itself.
   *
   * @throws {TransportError} for a port that is taken, or an address that is not this machine's
   * @throws {MisuseError} naming an option that is unknown or wrong
   * @throws {ClosedError} when the server was closed
   * @throws what the lifespan's `start` throws
   */
  async listen(http: number | string | Omit<HttpOptions, "onListening"> = {}, ...callback: never[]): Promise<Listener> {
    if (callback.length > 0) throw new MisuseError("listen: takes one argument, and no callback: await it");
    const options = address("listen", http);
    warnOptions(options);
    return new Promise<Listener>((resolve, reject) => {
      let number = 0;
      const served = this.#serve(
        (op) => {
          number = op;
          withOptions(() => this.#native.serveHttp(toEngine(options), op));
        },
        (_event, { url }: { readonly url: string }) => {
          const close = async (): Promise<void> => {
            this.#native.endHttp(number);
            await this.#ended(served);
          };
          resolve({ url, close, [Symbol.asyncDispose]: close });
        },
      );
      // Once it listens, this changes nothing.
      served.then(() => reject(new ClosedError("the server was closed before it listened")), reject);
    });
  }

  /** An HTTP endpoint without a socket, to be mounted in a server you already have, at any path. */
  http(options: MountOptions = {}): HttpMount {
    this.#home.mounted = true;
    warnOptions(options);
    const endpoint = withOptions(() => this.#native.http(toEngine(options)));
    return mount(endpoint, this.#maxMessageBytes, this);
  }

  /** Answers one HTTP request: for Hono, Deno, Bun and everything else that speaks `fetch`. */
  readonly fetch = (request: Request, given?: ExchangeOptions): Promise<Response> => {
    this.#mount ??= this.http();
    return this.#mount.fetch(request, given);
  };

  /** A listener for `node:http`, Express and others that speak `(req, res)`. */
  listener(options: MountOptions = {}): NodeListener {
    return this.http(options).listener;
  }

  /**
   * Stops serving everywhere: cancels what runs, answers what has an answer, settles what serves. Waits for what the
   * lifespan stops, for ten seconds at most; called by the lifespan itself, for nothing.
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#native.close();
    await this.#ended(...this.#serves, this.#home.life?.stopped);
  }

  /**
   * Closes gently: over HTTP no connection is taken any more, `/readyz` says 503, streams that wait for news end, and
   * requests have `drainTimeout` to be answered. Then it is a {@link close}. SIGTERM does the same in {@link run}.
   */
  async drain(): Promise<void> {
    await this.#drained();
    await this.close();
  }

  async #drained(): Promise<void> {
    this.#closed = true;
    await wait((op) => this.#native.drain(op));
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Gauges of this server: connections, sessions, requests in flight, and so on. */
  metrics(): Metrics {
    return JSON.parse(this.#native.metrics()) as Metrics;
  }

  /** Waits for what ends with the lifespan, unless that is who waits. */
  async #ended(...ends: (Promise<unknown> | undefined)[]): Promise<void> {
    if (!isWithin(this.#home)) await patiently(Promise.allSettled(ends));
  }

  async #serve(start: (op: number) => void, onListening?: OpListener): Promise<void> {
    const done = wait(start, undefined, onListening);
    this.#serves.add(done);
    serving.add(this);
    try {
      await done;
    } finally {
      this.#serves.delete(done);
      if (this.#serves.size === 0) serving.delete(this);
    }
  }

  #hook(name: "complete" | "subscribe" | "roots_changed" | "principal", runner: Runner): this {
    native(() => this.#native.setHook(name, register(runner)));
    this.#kept.set(`hook ${name}`, [runner]);
    return this;
  }
}

/** The extensions that the options declare by themselves. */
function declared({ tasks, capabilities }: ServerOptions<AnyState>): Set<string> {
  const { extensions = {} } = (Array.isArray(capabilities) ? {} : (capabilities ?? {})) as {
    readonly extensions?: object | undefined;
  };
  return new Set([...Object.keys(extensions), ...(tasks ? [TASKS] : [])]);
}
