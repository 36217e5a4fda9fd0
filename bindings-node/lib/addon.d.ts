/**
 * The compiled addon, as this package sees it. Private: no promise of stability.
 *
 * Written by hand and checked against the compiled module by `test/addon.test.mjs`: the same
 * classes, methods, parameters and types. Keys, ops, handlers and sources are integers whose
 * meaning lives in `host.ts`; `json`, `options`, `target`, `head` and `definition` are JSON texts.
 */
export declare class Bridge {
  constructor(wake: () => void);
  take(): string | null;
  flush(): void;
  text(key: number, text: string): boolean;
  value(key: number, json: string): boolean;
  result(key: number, json: string): boolean;
  failed(key: number, text: string): boolean;
  error(key: number, code: number, message: string, data?: string | undefined | null): boolean;
  context(key: number): string | null;
  progress(
    key: number,
    progress: number,
    total?: number | undefined | null,
    message?: string | undefined | null,
  ): boolean;
  log(key: number, level: string, logger: string | undefined | null, json: string): boolean;
  require(key: number, capability: string): void;
  settle(op: number): void;
  close(): void;
  metrics(): string;
  panic(message: string): void;
}

export declare class Server {
  constructor(bridge: Bridge, source: number, options: string);
  addTool(definition: string, handler: number): void;
  removeTool(name: string): boolean;
  serveStdio(op: number): void;
  serveHttp(options: string, op: number): void;
  http(options: string): HttpEndpoint;
  close(): void;
  metrics(): string;
}

export declare class Client {
  constructor(bridge: Bridge, source: number, target: string, options: string);
  static inMemory(bridge: Bridge, source: number, server: Server, options: string): Client;
  connect(op: number): void;
  request(op: number, method: string, params: string | undefined | null, options: string): void;
  notify(method: string, params?: string | undefined | null): void;
  close(op: number): void;
  metrics(): string;
}

export declare class HttpEndpoint {
  exchange(op: number, head: string, body: Uint8Array): void;
}

export declare function version(): string;
