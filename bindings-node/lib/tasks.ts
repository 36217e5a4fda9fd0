/** Tool calls that go on after their answer: tasks of revision 2025-11-25, and in the same words those of 2026-07-28. */

import { CancelledError, PeerMisbehavedError, RpcError } from "./errors.js";
import { received } from "./received.js";
import type { RequestOptions } from "./requesting.js";
import { CallToolResult } from "./result.js";
import type { Task } from "./types.js";

/** What a side that runs requests as tasks will bear. All optional; times are milliseconds. */
export interface TaskOptions {
  /**
   * Tasks kept, of all sessions. The longest finished make room; when all are being worked on, a request that is to become
   * one is refused. Default 1,000.
   */
  readonly maxTasks?: number;
  /** Tasks kept of one session. Default 250. */
  readonly maxSessionTasks?: number;
  /** Bytes of all results kept; the longest finished tasks make room. Default 16 MiB. */
  readonly maxTaskBytes?: number;
  /** How long a task lives, from its creation, when its request does not say. Default one hour. */
  readonly taskTtl?: number;
  /** The longest that a task lives; after that it is stopped, and gone with its result. Default one day. */
  readonly maxTaskTtl?: number;
  /** How often whoever waits should look. Default one second. */
  readonly taskPollInterval?: number;
}

/** Whether a tool may be called as a task: it must not (the default), it may, it must. */
export type TaskSupport = "forbidden" | "optional" | "required";

/** Milliseconds between two looks when the server does not say, and the least and the most. */
const [USUAL, LEAST, MOST] = [1000, 50, 0x7fffffff];

/** What is said of tasks, for who waits for one. */
export class News {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Something was said of this task. */
  tell(id: string): void {
    for (const hear of this.#waiting.get(id) ?? []) hear();
  }

  /** Calls `hear` at each word of this task. Returns what ends that. */
  of(id: string, hear: () => void): () => void {
    const all = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, all.add(hear));
    return () => {
      if (all.delete(hear) && all.size === 0) this.#waiting.delete(id);
    };
  }
}

/** Sends a request about a task; `untilOver`: answered when the task is finished. */
export type Send = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: RequestOptions | undefined,
  untilOver?: boolean,
) => Promise<Record<string, unknown>>;

/** A tool's call that is a task of the server. Forgetting it does nothing to the task. */
export class TaskHandle<T = unknown> {
  /** Its id: {@link Client.task} comes back to it with this, for as long as the session lives. */
  readonly id: string;
  /**
   * What the server answered the call with, as it came: a `CreateTaskResult`, whose `_meta` may have something for the
   * model meanwhile (`io.modelcontextprotocol/model-immediate-response`). Undefined of what {@link Client.task} gives.
   */
  readonly created: Readonly<Record<string, unknown>> | undefined;
  readonly #send: Send;
  readonly #news: News;

  /** @internal */
  constructor(id: string, created: Readonly<Record<string, unknown>> | undefined, send: Send, news: News) {
    this.id = id;
    this.created = created;
    this.#send = send;
    this.#news = news;
  }

  /**
   * How it is.
   *
   * @throws {RpcError} with -32602 when it has expired, here and below
   */
  async status(options?: RequestOptions): Promise<Task> {
    return taskOf("tasks/get", await this.#send("tasks/get", { taskId: this.id }, options));
  }

  /**
   * Waits until it is finished. Looks as often as the server says, and at once when the server tells of a change; a question
   * of the task is answered meanwhile. The options are for each look.
   */
  async wait(options?: RequestOptions): Promise<Task> {
    return taskOf("tasks/get", await this.#send("tasks/get", { taskId: this.id }, options, true));
  }

  /** How it is now, and each change that is noticed until it is finished. */
  async *changes(options: RequestOptions = {}): AsyncGenerator<Task, void, undefined> {
    let before: string | undefined;
    let heard = false;
    let wake: (() => void) | undefined;
    const forget = this.#news.of(this.id, () => {
      heard = true;
      wake?.();
    });
    try {
      for (;;) {
        heard = false;
        const task = await this.status(options);
        const now = JSON.stringify(task);
        if (now !== before) yield task;
        before = now;
        if (isFinished(task)) return;
        // What was said while the look was on its way, or while nobody listened here, is a reason to look again.
        if (!heard) {
          await pause(task.pollInterval ?? USUAL, options.signal, (resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      forget();
    }
  }

  /**
   * Its result, when it is there: waits without a limit unless the options have one. Giving up does not cancel the task.
   *
   * @throws {RpcError} the error that the call would have had
   * @throws {CancelledError} when the task was cancelled
   */
  async result(options?: RequestOptions): Promise<CallToolResult<T>> {
    try {
      const params = { taskId: this.id };
      return new CallToolResult<T>(await this.#send("tasks/result", params, { timeout: null, ...options }));
    } catch (error) {
      const task = error instanceof RpcError ? await this.status(options).catch(() => undefined) : undefined;
      throw task?.status === "cancelled" ? received(new CancelledError("the task was cancelled")) : error;
    }
  }

  /**
   * Cancels it.
   *
   * @throws {RpcError} with -32602 when it is finished, too, but not in 2026-07-28, where it stays as it is
   */
  async cancel(options?: RequestOptions): Promise<Task> {
    return taskOf("tasks/cancel", await this.#send("tasks/cancel", { taskId: this.id }, options));
  }
}

function isFinished({ status }: Task): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The task that a call became. */
export function createdTask(result: Readonly<Record<string, unknown>>): Task {
  const { task } = result as { readonly task?: Record<string, unknown> };
  if (typeof task === "object" && task !== null) return taskOf("tools/call", task);
  throw received(new PeerMisbehavedError("the server declares tasks, and answered the call without one"));
}

function taskOf(method: string, result: Readonly<Record<string, unknown>>): Task {
  if (typeof result["taskId"] === "string" && typeof result["status"] === "string") return result as unknown as Task;
  throw received(new PeerMisbehavedError(`${method}: the result is no task`));
}

/** Waits for this time, or until `wakes` is called; rejects when the signal is aborted. */
function pause(
  milliseconds: number,
  signal: AbortSignal | undefined,
  wakes: (resolve: () => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    const abort = (): void => {
      reject(signal?.reason as Error);
      end();
    };
    const timer = setTimeout(end, Math.min(Math.max(milliseconds, LEAST), MOST));
    signal?.addEventListener("abort", abort, { once: true });
    wakes(end);
  });
}
