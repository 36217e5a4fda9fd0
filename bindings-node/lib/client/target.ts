/** Targets that a client can connect to. */

import { isServer } from "../bridge/local-server.js";
import type { AnyState, Offer } from "../call/context.js";
import { MisuseError } from "../errors/errors.js";
import { shown, typeOf } from "../json/checks.js";
import { stringify } from "../json/encoding.js";

/** A server behind a URL. */
export interface HttpTarget {
  /** `http:` or `https:`, with the path of the endpoint. */
  readonly url: string | URL;
  /** Sent with every request; each wins over one of that name in {@link ClientOptions.headers}. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A server that is a program; it is started, and stopped on close with everything it started. */
export interface CommandTarget {
  /** A path, or a name to be found on PATH. No shell reads it. */
  readonly command: string;
  /** Default: none. */
  readonly args?: readonly string[] | undefined;
  /** Added to this program's environment; null removes a variable. */
  readonly env?: Readonly<Record<string, string | null>> | undefined;
  /** Default: this program's working directory. */
  readonly cwd?: string | undefined;
  /** The destination of its stderr: ours (default), nowhere, or line by line a function. */
  readonly stderr?: "inherit" | "discard" | ((line: string) => void) | undefined;
}

/** The contents of an `mcp.json`. */
export interface ConfigTarget {
  /** By name; see {@link ClientOptions.server}. What hosts keep beside the members of a target is ignored. */
  readonly mcpServers: Readonly<
    Record<
      string,
      HttpTarget | (Omit<CommandTarget, "stderr"> & { readonly stderr?: "inherit" | "discard" | undefined })
    >
  >;
}

/** A server in this process: a `Server`, whatever its state is. Nothing else offers something under a name. */
export interface LocalServer extends Offer<AnyState> {
  /** As clients see it. */
  readonly name: string;
}

/**
 * A URL, a command line or its words, the path of an `mcp.json`, a cassette (`replay:FILE`, `replay:FILE?strict`), a server
 * in this process, or one of these spelt out.
 */
export type Target =
  | string
  | URL
  | readonly [program: string, ...args: string[]]
  | LocalServer
  | HttpTarget
  | CommandTarget
  | ConfigTarget;

interface Resolved {
  readonly wire: string;
  readonly stderr?: ((line: string) => void) | undefined;
}

/** True if a target is a server in this process. */
export function isLocal(target: Target): target is LocalServer {
  return isServer(target);
}

/** Returns what the engine connects to, and who listens to a program's stderr; `heard`: the client's options do. */
export function resolve(target: Exclude<Target, LocalServer>, server: string | undefined, heard: boolean): Resolved {
  const mode = heard ? "event" : undefined;
  if (typeof target !== "string" && (typeof target !== "object" || target === null)) {
    throw new MisuseError(`cannot connect to ${shown(target)}: expected a URL, a path, a command line or an object`);
  }
  if (typeof target === "string") return { wire: stringify({ text: target, server, stderr: mode }) };
  if (isWords(target)) {
    const [command, ...args] = target;
    if (typeof command !== "string" || !args.every((word) => typeof word === "string")) {
      throw new MisuseError("target: expected a program and its arguments, a list of strings");
    }
    return { wire: stringify({ command, args, server, stderr: mode }) };
  }
  if (target instanceof URL) return { wire: stringify({ text: target.href, server }) };
  if ("url" in target) return { wire: stringify({ ...target, url: String(target.url), server }) };
  if ("mcpServers" in target) {
    if (typeof target.mcpServers !== "object" || target.mcpServers === null || Array.isArray(target.mcpServers)) {
      throw new MisuseError(`target "mcpServers": expected an object, got ${typeOf(target.mcpServers)}`);
    }
    const deaf = Object.keys(target.mcpServers).find((name) => typeof stderrOf(target.mcpServers[name]) === "function");
    if (deaf !== undefined) {
      throw new MisuseError(`server "${deaf}": stderr: a function is for the option onStderr`);
    }
    return { wire: stringify({ ...target, server, stderr: mode }) };
  }
  const { stderr = mode, ...rest } = target;
  if (typeof stderr === "function") return { wire: stringify({ args: [], ...rest, server, stderr: "event" }), stderr };
  return { wire: stringify({ args: [], ...rest, server, stderr }) };
}

function isWords(target: object): target is readonly unknown[] {
  return Array.isArray(target);
}

function stderrOf(entry: unknown): unknown {
  return (entry as { readonly stderr?: unknown } | null)?.stderr;
}
