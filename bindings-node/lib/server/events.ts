/** Events that the engine tells of a server. */

import { listen, warn } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import type { RequestRecord } from "../call/middleware.js";
import { MisuseError } from "../errors/errors.js";

/** Listeners of a server while it lives. */
export interface Heard {
  readonly logs: ((record: RequestRecord) => void)[];
  /** Weakly: what it has of the user's may refer to the server. */
  readonly home: WeakRef<Home>;
}

/** Nobody hears of a server any more that is gone. */
export const forgotten = new FinalizationRegistry<number>((source) => listen(source, undefined));

export function hear(source: number, heard: Heard): void {
  type Event = RequestRecord & { readonly message: string; readonly name: string };
  listen(source, (name: string, params: Event) => {
    if (name === "request") for (const log of heard.logs) log(params);
    else if (name === "failed") {
      const { message, name: subject } = params;
      heard.home.deref()?.onError(new MisuseError(message), subject, subject);
    } else if (name === "warning") warn(params.message);
  });
}
