/** Tool calls that go on after their answer: tasks of revision 2025-11-25, and in the same words those of 2026-07-28. */

import { nextNumber } from "../bridge/host.js";
import type { RequestOptions } from "../call/options.js";
import type { Looks } from "../call/request-options.js";
import { CallToolResult } from "../model/results.js";
import { isFinished, taskOf } from "../model/task.js";
import type { Task } from "../types.js";

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
