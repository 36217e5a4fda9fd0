/** The parameters of the requests that a client has methods for, from callers that may not check their types. */

import type { CallOptions } from "../call/options.js";
import { checkTypes } from "../json/checks.js";
import { checkObject, paramsJson, toJson } from "../json/encoding.js";

type Params = Readonly<Record<string, unknown>>;

/** Arguments by name: any object, of an interface as well, but no list. */
export type ArgumentsByName = Params | (object & { readonly [Symbol.iterator]?: never });

/** The parameters with the `_meta` that the options give. */
function withMeta(what: string, params: Params, options: CallOptions | undefined): Params {
  const meta: unknown = options?.meta;
  if (meta === undefined || meta === null) return params;
  checkObject(`${what}: meta`, meta);
  return { ...params, _meta: meta };
}

/**
 * The parameters of `tools/call`.
 *
 * @throws {MisuseError} naming what the protocol does not allow there; so do those below
 */
export function ofCall(what: string, name: string, args: ArgumentsByName, options: CallOptions | undefined): Params {
  checkTypes(what, ["name", name, "string"]);
  checkObject(`${what}: arguments`, args);
  return withMeta(what, { name, arguments: args }, options);
}

/** The parameters of `resources/read`. */
export function ofRead(uri: string | URL, options: CallOptions | undefined): Params {
  return withMeta("readResource", { uri: uriOf("readResource", uri) }, options);
}

/** A URI as text. */
export function uriOf(what: string, uri: string | URL): string {
  if (!(uri instanceof URL)) checkTypes(what, ["uri", uri, "string"]);
  return String(uri);
}

/** The parameters of `prompts/get`. */
export function ofPrompt(name: string, args: ArgumentsByName, options: CallOptions | undefined): Params {
  checkTypes("getPrompt", ["name", name, "string"]);
  checkObject("getPrompt: arguments", args);
  paramsJson("getPrompt", { arguments: args }); // Which names what is no JSON.
  return withMeta("getPrompt", { name, arguments: texts(args) }, options);
}

/** The parameters of `completion/complete`. */
export function ofComplete(ref: object, argument: string, value: string, args: object | undefined): Params {
  checkObject("complete: ref", ref);
  checkTypes("complete", ["argument", argument, "string"], ["value", value, "string"]);
  if (args !== undefined) checkObject("complete: args", args);
  return { ref, argument: { name: argument, value }, ...(args && { context: { arguments: args } }) };
}

/** The arguments of a prompt, which the protocol has as text. */
function texts(args: object): Record<string, string> {
  const given = (Object.entries(args) as [string, unknown][]).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return Object.fromEntries(given.map(([name, value]) => [name, textOf(value)]));
}

/** Text as it is, also that of a date or a URL, and anything else as JSON. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  const json = toJson(value);
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}
