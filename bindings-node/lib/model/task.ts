/** Tasks: limits of the side that runs them, and their states in results. */

import { PeerMisbehavedError } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import type { Task } from "../types.js";

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

/** True if nothing more happens to a task. */
export function isFinished({ status }: Task): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The task that a call became. */
export function createdTask(result: Readonly<Record<string, unknown>>): Task {
  const { task } = result as { readonly task?: Record<string, unknown> | undefined };
  if (typeof task === "object" && task !== null) return taskOf("tools/call", task);
  throw received(new PeerMisbehavedError("the server declares tasks, and answered the call without one"));
}

/** The task that a result is. */
export function taskOf(method: string, result: Readonly<Record<string, unknown>>): Task {
  if (typeof result["taskId"] === "string" && typeof result["status"] === "string") return result as unknown as Task;
  throw received(new PeerMisbehavedError(`${method}: the result is no task`));
}
