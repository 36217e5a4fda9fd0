/** Listening to changes at the server, in every revision. */

import { inspect } from "node:util";
import { onAbort } from "../bridge/abort.js";
import type * as Addon from "../bridge/addon.js";
import { nextNumber, wait } from "../bridge/host.js";
import { CancelledError, MisuseError, TricornError } from "../errors/errors.js";
import { checkNames, checkTypes, shown, typeOf } from "../json/checks.js";
import { stringify } from "../json/encoding.js";
import type { SubscriptionFilter, Task } from "../types.js";
import type { TaskHandle } from "./tasks.js";

/** A change at the server. */
export type Change = ListChanged | ResourceUpdated | TaskChanged | ExtensionNotification;

/** A list has changed; that of resource templates changes with that of resources. */
export interface ListChanged {
  readonly type: "toolsListChanged" | "promptsListChanged" | "resourcesListChanged";
}

/** A resource has changed that is listened to, or a part of one. */
export interface ResourceUpdated {
  readonly type: "resourceUpdated";
  /** Its URI. Read it to see what is new. */
  readonly uri: string;
}

/** A task has changed; of what is not taken yet the last of each is there. */
export interface TaskChanged {
  readonly type: "taskChanged";
  /** Its state, with all that the server says of it: also `result`, `error` or `inputRequests`. */
  readonly task: Task & Readonly<Record<string, unknown>>;
}

/**
 * A notification of an extension that the client declares. After the stream broke off and was opened again, the server's
 * acknowledgement is one, too (`notifications/subscriptions/acknowledged`): others, and changes of tasks, may have been missed.
 */
export interface ExtensionNotification {
  readonly type: "extensionNotification";
  /** The notification's method. */
  readonly method: string;
  /** Its parameters; empty when it has none. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** Options of listening: at least one of these. */
export interface ListenOptions {
  /** Changes of the list of tools. Default false. */
  readonly tools?: boolean | undefined;
  /** Changes of the list of prompts. Default false. */
  readonly prompts?: boolean | undefined;
  /** Changes of the lists of resources and resource templates. Default false. */
  readonly resources?: boolean | undefined;
  /** Changes of the resources with these URIs, and of what is a part of them. Default: of none. */
  readonly uris?: readonly (string | URL)[] | undefined;
  /**
   * Changes of these tasks, by id or as handles: the client's option `tasks`; in 2025-11-25 where the server tells of
   * them. Default: of none.
   */
  readonly tasks?: readonly (string | TaskHandle)[] | undefined;
  /**
   * Members of the filter that belong to extensions that the client declares, each true, or the keys of what is wanted:
   * `{ "com.example/queries": ["a"] }`. Older revisions have no filters: there all notifications of these extensions come.
   * Default: none.
   */
  readonly extensions?: Readonly<Record<string, boolean | readonly string[]>> | undefined;
  /** Aborting it ends the loop, with its reason, and the stream at the server. */
  readonly signal?: AbortSignal | undefined;
}

/** The changes that a server reports, of all that was asked for. */
export interface Honoured {
  /** Changes of the list of tools. */
  readonly tools: boolean;
  /** Changes of the list of prompts. */
  readonly prompts: boolean;
  /** Changes of the lists of resources and resource templates. */
  readonly resources: boolean;
  /** Changes of these resources. */
  readonly uris: readonly string[];
  /** Changes of the tasks with these ids. */
  readonly tasks: readonly string[];
  /**
   * Changes that extensions report, by the member of the filter: true is everything, a list what is about these keys.
   */
  readonly extensions: Readonly<Record<string, true | readonly string[]>>;
}

/** A change as the engine tells it. */
interface Told {
  readonly method: string;
  readonly uri?: string | undefined;
  /** The params of a task's change, and of an extension's notification. */
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

const TYPES: Readonly<Record<string, ListChanged["type"]>> = {
  "notifications/tools/list_changed": "toolsListChanged",
  "notifications/prompts/list_changed": "promptsListChanged",
  "notifications/resources/list_changed": "resourcesListChanged",
};

/** A listener as the engine has it. */
class Listener {
  readonly honoured: Promise<Honoured>;
  readonly #engine: Addon.Client;
  readonly #number = nextNumber();
  /** Aborted, nothing is waited for any more. */
  readonly #over = new AbortController();
  #off: (() => void) | undefined;
  #done = false;

  /** @param asked is where it was asked for. */
  constructor(engine: Addon.Client, filter: object, signal: AbortSignal | undefined, asked: Error) {
    this.#engine = engine;
    if (signal?.aborted) this.#over.abort(signal.reason);
    else if (signal) this.#off = onAbort(signal, () => this.#end(signal.reason));
    this.honoured = this.#begin(stringify(filter), asked);
    // Whoever takes the changes is told as well.
    this.honoured.catch(() => {});
  }

  async #begin(filter: string, asked: Error): Promise<Honoured> {
    const start = (op: number): void => this.#engine.listen(op, this.#number, filter);
    try {
      const told = await wait<Filter>(start, this.#over.signal);
      const {
        toolsListChanged: tools = false,
        promptsListChanged: prompts = false,
        resourcesListChanged: resources = false,
        resourceSubscriptions: uris = [],
        taskIds: tasks = [],
        ...extensions
      } = told;
      return { tools, prompts, resources, uris, tasks, extensions };
    } catch (error) {
      // The error was made where the answer arrived; show where the question was asked.
      if (error instanceof TricornError) error.stack = `${asked.stack?.replace("Error", () => String(error))}`;
      this.#end(error);
      throw error;
    }
  }

  /** The next change; undefined after the last one. An error is the last one, too. */
  async take(): Promise<Change | undefined> {
    if (this.#done) return undefined;
    try {
      await this.honoured;
      const start = (op: number): void => this.#engine.nextChange(op, this.#number);
      const told = await wait<Told | null>(start, this.#over.signal);
      if (told) return change(told);
    } catch (error) {
      if (!this.#done) {
        this.leave();
        if (error instanceof TricornError) Error.captureStackTrace(error);
        throw error;
      }
    }
    this.leave();
    return undefined;
  }

  /** Listens no more. Whoever waits for a change gets none. */
  leave(): void {
    this.#done = true;
    this.#end(new CancelledError("nobody listens any more"));
  }

  #end(why: unknown): void {
    // The reason has a stack, which refers to what is on it: that could be who listens.
    forgotten.unregister(this);
    this.#off?.();
    this.#over.abort(why);
    this.#engine.endListening(this.#number);
  }
}

function change({ method, uri, params }: Told): Change {
  // The engine has read it.
  if (method === "notifications/tasks") return { type: "taskChanged", task: params as TaskChanged["task"] };
  if (params) return { type: "extensionNotification", method, params };
  const type = TYPES[method];
  return type ? { type } : { type: "resourceUpdated", uri: uri ?? "" };
}

/** Those that nobody refers to any more are not listened to. */
const forgotten = new FinalizationRegistry<Listener>((listener) => listener.leave());

/**
 * The changes at a server, for `for await`, in the order in which they came; made by {@link Client.listen}. Of what was not
 * taken yet, each is there once, but every notification of an extension: the loop fails with `ClosedError` rather than lose one
 * when about a thousand wait. Leaving the loop, or {@link close}, ends it, at the server, too.
 *
 * The loop ends when the server ends the stream in order. When it broke off, the client listens again, and everything that is
 * listened to is said to have changed, once. The loop fails with `UnsupportedError` when the server does not declare to tell
 * of what is asked for, with `MisuseError` when nothing is, with `ClosedError` when the connection ends, and with why it could
 * not be listened again. A client may have 1,000 at once.
 */
export class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
  readonly #listener: Listener;
  /** Until whoever asked before is answered. */
  #turn: Promise<void> | undefined;

  /** @internal */
  constructor(engine: Addon.Client, { signal, ...asked }: ListenOptions = {}) {
    const filter = filterOf(asked);
    // Kept until the server has answered: a stack refers to what is on it.
    this.#listener = new Listener(engine, filter, signal, new Error());
    forgotten.register(this, this.#listener, this.#listener);
  }

  /**
   * The changes that the server reports, once it has said so: changes from then on are not missed. It may be less than
   * what was asked for, as resources that the server does not know are left out. Fails as the loop does, and with
   * `CancelledError` when that is left before.
   */
  get honoured(): Promise<Honoured> {
    return this.#listener.honoured;
  }

  /** The next change, when there is one. Whoever asks several times is answered in that order. */
  next(): Promise<IteratorResult<Change, undefined>> {
    const before = this.#turn;
    // Not of the promise that is returned: V8 follows one to who waits for it, as long as nobody else does.
    let over!: () => void;
    this.#turn = new Promise((resolve) => {
      over = resolve;
    });
    return this.#next(before, over);
  }

  /** Listens no more, which the server is told: whoever waits for a change gets none. */
  close(): void {
    this.#listener.leave();
  }

  /** {@link close}, as a loop does it that is left. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #next(before: Promise<void> | undefined, over: () => void): Promise<IteratorResult<Change, undefined>> {
    await before;
    try {
      const value = await this.#listener.take();
      return value ? { done: false, value } : { done: true, value };
    } finally {
      over();
    }
  }
}

const FILTER = { tools: true, prompts: true, resources: true, uris: true, tasks: true, extensions: true } as const;

/** The filter of the protocol, with the member of the tasks' extension. */
type Filter = SubscriptionFilter & { taskIds?: string[] };

/** Returns the filter that is asked for, as the protocol has it. */
function filterOf(asked: Omit<ListenOptions, "signal">): object {
  checkNames("listen", asked, FILTER);
  const { tools = false, prompts = false, resources = false, uris = [], tasks = [], extensions = {} } = asked;
  checkTypes(
    "listen",
    ["tools", tools, "boolean"],
    ["prompts", prompts, "boolean"],
    ["resources", resources, "boolean"],
  );
  if (!Array.isArray(uris)) throw new MisuseError(`listen: uris: expected a list of URIs, got ${shown(uris)}`);
  for (const uri of uris) if (!(uri instanceof URL)) checkTypes("listen", ["uris", uri, "string"]);
  if (!Array.isArray(tasks)) throw new MisuseError(`listen: tasks: expected a list of ids, got ${shown(tasks)}`);
  const own: Filter = {
    toolsListChanged: tools,
    promptsListChanged: prompts,
    resourcesListChanged: resources,
    resourceSubscriptions: uris.map(String),
    taskIds: tasks.map(idOf),
  };
  return { ...own, ...othersOf(extensions, own) };
}

function idOf(task: string | TaskHandle): string {
  const id: unknown = typeof task === "object" && task !== null ? task.id : task;
  if (typeof id !== "string") throw new MisuseError(`listen: tasks: expected a task's id, got ${shown(id)}`);
  return id;
}

/** The members of extensions of which anything is wanted. */
function othersOf(extensions: NonNullable<ListenOptions["extensions"]>, own: object): object {
  if (typeof extensions !== "object" || extensions === null || Array.isArray(extensions)) {
    throw new MisuseError(
      `listen: extensions: expected an object, such as {"com.example/queries": true}, got ${typeOf(extensions)}`,
    );
  }
  const others = Object.entries(extensions).filter(([member, wanted]) => {
    if (Object.hasOwn(own, member)) {
      throw new MisuseError(
        `listen: extensions: "${member}" is the protocol's: say tools, prompts, resources, uris or tasks`,
      );
    }
    if (Array.isArray(wanted) && wanted.every((key) => typeof key === "string")) return wanted.length > 0;
    if (typeof wanted === "boolean") return wanted;
    const got = inspect(wanted, { depth: 0 });
    throw new MisuseError(
      `listen: extensions: "${member}": expected true or a list of keys, which are text, got ${got}`,
    );
  });
  return Object.fromEntries(others);
}
