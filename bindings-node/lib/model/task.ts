/** Tasks: their states in results. */

import { PeerMisbehavedError } from "../errors/errors.js";
import { received } from "../errors/origin.js";
import type { Task } from "../types.js";

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
