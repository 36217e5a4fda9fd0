/** State that the functions of one server or client share, whatever calls them. */

import type { AsyncResource } from "node:async_hooks";
import { say } from "./host.js";

/** State that the handlers of a server or a client share. */
export interface Home {
  /**
   * The scope in which the server was made, or connecting began: what `AsyncLocalStorage` held there, it holds in what
   * no request causes.
   */
  scope: AsyncResource | undefined;
  /** Handlers that have not settled yet. */
  running: number;
  /** The value that the functions share: {@link Context.state}. */
  state?: unknown;
  /** Makes {@link Context.session}. */
  session?: (key: number) => unknown;
  /** True if an endpoint is mounted somewhere: there nobody here hears why it cannot answer. */
  mounted?: boolean;
  /** Settles when that has been stopped; undefined where there is nothing to stop. */
  life?: { readonly stopped: Promise<void> } | undefined;
  /** The start or stop of the lifespan that is under way. */
  ending?: Promise<void>;
  /** True if a function of the user stands around requests. */
  around?: boolean;
  /** The extensions of the protocol that the server offers, by their identifiers. */
  extensions?: Set<string>;
  /** Hears of what handlers throw that is not for the peer. */
  readonly onError: (error: unknown, name: string, subject: string) => void;
}

/** Writes errors to stderr when nobody asked to hear of them. */
export function logError(error: unknown, _name: string, subject: string): void {
  say(`${subject} failed:`, error);
}
