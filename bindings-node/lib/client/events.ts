/** Events of a client's connection, and the listeners they go to. */

import { warn } from "../bridge/host.js";
import type { RequestRecord } from "../call/middleware.js";
import type { Connected } from "./connection.js";
import { heard } from "./handlers.js";
import type { Listeners } from "./options.js";

/** An event that the engine sends to a client. */
export type ClientEvent = RequestRecord & {
  readonly params: { readonly taskId?: string | undefined } | undefined;
  readonly line: string;
  readonly message: string;
  readonly reason: string;
};

/** Listeners for events, besides the client's own. */
interface Ears {
  readonly logs: readonly ((record: RequestRecord) => void)[];
  readonly onStderr: ((line: string) => void) | undefined;
  /** Returns what is known of the server. */
  readonly known: () => Connected | undefined;
  readonly closed: (reason: string) => void;
}

/** Members that a server need not send. */
const UNSAID = { serverInfo: undefined, instructions: undefined };

/** Tells everybody what the engine tells of a client. */
export function hearing(listeners: Listeners, { logs, onStderr, known, closed }: Ears) {
  return (name: string, params: ClientEvent): void => {
    if (name === "notification") {
      heard(listeners, params.method, params.params);
    } else if (name === "request") for (const log of logs) log(params);
    else if (name === "stderr") onStderr?.(params.line);
    else if (name === "warning") warn(params.message);
    else if (name === "reopened") Object.assign(known() ?? {}, UNSAID, params);
    else if (name === "closed") closed(params.reason);
  };
}

/** True if anybody hears of the changes of lists. Servers of newer revisions tell only those who listen. */
export function hearsLists({ onListChanged, onNotification }: Listeners): boolean {
  return onListChanged !== undefined || onNotification !== undefined;
}
