/**
 * The compiled addon, as this package sees it. Private: no promise of stability.
 *
 * Written by hand and checked against the compiled module by `test/addon.test.mjs`: the same
 * classes, methods, parameters and types. Keys, ops, handlers and sources are integers whose
 * meaning lives in `host.ts`; `json`, `options`, `target`, `head` and `definition` are JSON texts.
 */
/** Handles that the functions below take instead of the object: Node-API is quicker with them. */
export type BridgeHandle = { readonly bridge: symbol };
export type ClientHandle = { readonly client: symbol };

export declare class Bridge {
  constructor(wake: () => void);
  handle(): BridgeHandle;
  context(key: number): string | null;
  progress(
    key: number,
    progress: number,
    total?: number | undefined | null,
    message?: string | undefined | null,
  ): boolean;
  setStatus(key: number, message: string): boolean;
  runAsTask(key: number): boolean;
  inputRequired(key: number, json: string): boolean;
  input(key: number): string | null;
  step(key: number, name: string): string | null;
  stepped(key: number, name: string, json: string): void;
  log(key: number, level: string, logger: string | undefined | null, json: string): boolean;
  require(key: number, capability: string): void;
  ask(key: number, op: number, method: string, params: string | undefined | null, options: string): void;
  next(key: number, op: number, params?: string | undefined | null, trace?: string | undefined | null): void;
  notify(key: number, method: string, params?: string | undefined | null): boolean;
  closeStream(key: number): boolean;
  setEnabled(key: number, kind: string, name: string, enabled: boolean): boolean;
  sessionAdd(key: number, kind: string, definition: string, options: string, handler: number): void;
  sessionRemove(key: number, kind: string, name: string): boolean;
  settle(op: number): boolean;
  close(): void;
  metrics(): string;
  panic(message: string): void;
}

export declare function take(bridge: BridgeHandle): string | null;
export declare function flush(bridge: BridgeHandle): void;
export declare function answerText(bridge: BridgeHandle, key: number, text: string): boolean;
export declare function answerValue(bridge: BridgeHandle, key: number, json: string): boolean;
export declare function answerResult(bridge: BridgeHandle, key: number, json: string): boolean;
export declare function answerFailed(bridge: BridgeHandle, key: number, text: string): boolean;
export declare function answerUnsupported(
  bridge: BridgeHandle,
  key: number,
  message: string,
  refusal?: number | undefined | null,
): boolean;
export declare function answerGone(bridge: BridgeHandle, key: number): boolean;
export declare function answerError(
  bridge: BridgeHandle,
  key: number,
  code: number,
  message: string,
  data?: string | undefined | null,
): boolean;
export declare function answerKind(bridge: BridgeHandle, key: number, kind: string, message: string): boolean;

export declare class Server {
  constructor(bridge: Bridge, source: number, options: string);
  add(kind: string, definition: string, options: string, handler: number): void;
  addFiles(options: string): void;
  remove(kind: string, name: string): boolean;
  setEnabled(kind: string, name: string, enabled: boolean): boolean;
  setSource(kind: string, list?: number | undefined | null, get?: number | undefined | null): void;
  setHook(name: string, handler: number): void;
  setLifespan(start: number, stop: number): void;
  addMiddleware(handler: number): void;
  addBuiltin(options: string): void;
  addExtension(definition: string): void;
  notify(method: string, params?: string | undefined | null, key?: string | undefined | null): void;
  elicitationComplete(elicitationId: string): void;
  resourceUpdated(uri: string): void;
  listChanged(kind: string): void;
  serveStdio(op: number): void;
  serveHttp(options: string, op: number): void;
  endHttp(op: number): void;
  http(options: string): HttpEndpoint;
  drain(op: number): void;
  checkStore(op: number): void;
  close(): void;
  metrics(): string;
}

export declare class Client {
  constructor(bridge: Bridge, source: number, target: string, options: string);
  static inMemory(bridge: Bridge, source: number, server: Server, options: string): Client;
  setHandler(method: string, capability: string, handler: number): void;
  addMiddleware(handler: number): void;
  addBuiltin(options: string): void;
  setRoots(roots: string): void;
  sessionId(): string | null;
  connect(op: number): void;
  handle(): ClientHandle;
  hearChanges(): void;
  listen(op: number, listener: number, filter: string): void;
  nextChange(op: number, listener: number): void;
  endListening(listener: number): void;
  notify(method: string, params?: string | undefined | null): void;
  close(op: number): void;
  authTrace(): string;
  metrics(): string;
}

export declare class ClientGroup {
  constructor(bridge: Bridge, servers: string, options: string);
  names(): Array<string>;
  client(name: string, source: number): Client | null;
  add(name: string, source: number, target: string): Client;
  addServer(name: string, source: number, server: Server): Client;
  connect(op: number): void;
  reconnect(op: number, name: string): void;
  remove(op: number, name: string): void;
  failures(): string;
  list(op: number, kind: string, options: string): void;
  route(op: number, kind: string, name: string): void;
  setLogLevel(op: number, level: string): void;
  close(op: number): void;
}

export declare function request(
  client: ClientHandle,
  op: number,
  method: string,
  params: string | undefined | null,
  options: string,
): void;

export declare class HttpEndpoint {
  exchange(op: number, head: string, body: Uint8Array): void;
  written(op: number): void;
  resourceMetadata(): string | null;
}

export declare function version(): string;

/** Runs the command `tricorn`, and returns the status to end the process with. */
export declare function command(arguments: Array<string>, node: string, script: string): number;

/** Throws what is wrong with the schema of a form. */
export declare function checkForm(schema: string): void;
/** Throws what is wrong with the pages that a user is to visit. */
export declare function checkPages(pages: string): void;

/** Throws the refusal of an option of this package's own. `known` has snake_case names. */
export declare function unknownOption(what: string, name: string, known: Array<string>): void;

/** True if a client may load an icon's `src`. */
export declare function isSafeIcon(src: string): boolean;
export declare function giveBackStreams(): void;
export declare function watchSignals(patience: number, polite: number, streams: boolean): void;
export declare function expectEnd(patience: number): void;
export declare function heardSignal(): void;
export declare function writeStderr(text: string): void;
