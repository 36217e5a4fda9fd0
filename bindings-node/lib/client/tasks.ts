/** Tool calls that go on after their answer: tasks of revision 2025-11-25, and in the same words those of 2026-07-28. */

import type { Looks, RequestOptions } from "../call/request-options.js";
import { PeerMisbehavedError } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import { CallToolResult } from "../model/results.js";
import type { Task } from "../types.js";
import { nextNumber } from "./listening.js";

/** Limits of a side that runs requests as tasks. All optional; times are milliseconds. */
export interface TaskOptions {
  /**
   * Tasks kept, of all sessions. The longest finished make room; when all are being worked on, a request that is to become
   * one is refused. Default 1,000.
   */
  readonly maxTasks?: number | undefined;
  /** Tasks kept of one session. Default 250. */
  readonly maxSessionTasks?: number | undefined;
  /** Bytes of all results kept; the longest finished tasks make room. Default 16 MiB. */
  readonly maxTaskBytes?: number | undefined;
  /** Lifetime of a task, from its creation, when its request does not say. Default one hour. */
  readonly taskTtl?: number | undefined;
  /** The longest that a task lives; after that it is stopped, and gone with its result. Default one day. */
  readonly maxTaskTtl?: number | undefined;
  /** Interval at which a client should look. Default one second. */
  readonly taskPollInterval?: number | undefined;
}

/** True if a tool may be called as a task: it must not (the default), it may, it must. */
export type TaskSupport = "forbidden" | "optional" | "required";

/** Sends a request about a task. */
export type Send = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: RequestOptions | undefined,
  looks?: Looks,
) => Promise<Record<string, unknown>>;

/** A tool's call that is a task of the server. Forgetting it does nothing to the task. */
export class TaskHandle<T = unknown> {
  /** Its id: {@link Client.task} comes back to it with this, for as long as the session lives. */
  readonly id: string;
  /**
   * The server's answer to the call, as it came: a `CreateTaskResult`, whose `_meta` may have something for the
   * model meanwhile (`io.modelcontextprotocol/model-immediate-response`). Undefined of what {@link Client.task} gives.
   */
  readonly created: Readonly<Record<string, unknown>> | undefined;
  readonly #send: Send;
  readonly #leave: (number: number) => void;

  /** @internal */
  constructor(
    id: string,
    created: Readonly<Record<string, unknown>> | undefined,
    send: Send,
    leave: (number: number) => void,
  ) {
    this.id = id;
    this.created = created;
    this.#send = send;
    this.#leave = leave;
  }

  /**
   * Returns its state.
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
    return taskOf("tasks/get", await this.#send("tasks/get", { taskId: this.id }, options, { wait: true }));
  }

  /**
   * Yields its state now, and each change that is noticed until it is finished. Looks as often as the server says, and
   * at once when the server tells of a change; a question of the task is answered meanwhile. The options are for each
   * look.
   */
  async *changes(options?: RequestOptions): AsyncGenerator<Task, void, undefined> {
    const follow = nextNumber();
    try {
      for (;;) {
        const task = taskOf("tasks/get", await this.#send("tasks/get", { taskId: this.id }, options, { follow }));
        yield task;
        if (isFinished(task)) return;
      }
    } finally {
      this.#leave(follow);
    }
  }

  /**
   * Its result, when it is there: waits without a limit unless the options have one. A connection that breaks off meanwhile
   * is nothing to the task. Giving up does not cancel the task.
   *
   * @throws {RpcError} the error that the call would have had
   * @throws {CancelledError} when the task was cancelled
   */
  async result(options?: RequestOptions): Promise<CallToolResult<T>> {
    return new CallToolResult<T>(await this.#send("tasks/result", { taskId: this.id }, options, { wait: true }));
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
  const { task } = result as { readonly task?: Record<string, unknown> | undefined };
  if (typeof task === "object" && task !== null) return taskOf("tools/call", task);
  throw received(new PeerMisbehavedError("the server declares tasks, and answered the call without one"));
}

function taskOf(method: string, result: Readonly<Record<string, unknown>>): Task {
  if (typeof result["taskId"] === "string" && typeof result["status"] === "string") return result as unknown as Task;
  throw received(new PeerMisbehavedError(`${method}: the result is no task`));
}
