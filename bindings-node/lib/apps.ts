/**
 * MCP Apps, the extension `io.modelcontextprotocol/ui` (revision 2026-01-26): tools with a user interface of their own,
 * which the host shows.
 *
 * ```ts
 * import { apps, Server } from "tricorn";
 *
 * const app = new Server("weather", { extensions: [apps.uiExtension()] });
 * app.tool("forecast", { meta: apps.toolMeta({ resourceUri: "ui://weather/map" }) }, (_, ctx) => {
 *   return apps.supportsUi(ctx) ? "Sunny." : "Sunny on all days from Monday to Sunday, 21 to 25 degrees.";
 * });
 * apps.addUiResource(app, "ui://weather/map", html);
 * ```
 *
 * What a tool answers has to make sense without its user interface, too: not every client shows one.
 */

import type { AnyState, Context, Offer, ResourceOptions } from "./call/context.js";
import type { ResourceArguments } from "./call/signature.js";
import { MisuseError } from "./errors/errors.js";
import { checkNames, checkTypes, shown } from "./json/checks.js";
import { Extension } from "./server/extension.js";
import type { MetaObject, Tool } from "./types.js";

/** The extension's identifier. */
export const UI_EXTENSION = "io.modelcontextprotocol/ui";

/** The MIME type of a user interface. */
export const UI_MIME_TYPE = "text/html;profile=mcp-app";

const SCHEME = "ui://";

/** Key under which a tool's definition had the URI of its user interface before. */
const FLAT = "ui/resourceUri";

/** A caller of a tool: the model, or a user interface of its server. */
export type Visibility = "model" | "app";

const EVERYBODY: readonly Visibility[] = ["model", "app"];

/** The user interface of a tool: `_meta.ui` of its definition. */
export interface ToolUi {
  /** Its address, a `ui://` URI. Without one the tool has none, and `visibility` alone counts. */
  readonly resourceUri?: string | undefined;
  /** The callers that may use the tool. Default: both. Hosts keep tools without `model` from the model. */
  readonly visibility?: readonly Visibility[] | undefined;
}

/** The origins that a user interface may use, such as `https://api.example.com`. The host blocks all others. */
export interface UiCsp {
  /** Origins of requests and WebSockets. Default: none. */
  readonly connectDomains?: readonly string[] | undefined;
  /** Origins of images, scripts, styles, fonts and media. Default: none. */
  readonly resourceDomains?: readonly string[] | undefined;
  /** Origins of frames. Default: none. */
  readonly frameDomains?: readonly string[] | undefined;
  /** Origins of base URIs. Default: its own. */
  readonly baseUriDomains?: readonly string[] | undefined;
}

/** Permissions that a user interface would like to have; the host may refuse. All false by default. */
export interface UiPermissions {
  /** The camera. */
  readonly camera?: boolean | undefined;
  /** The microphone. */
  readonly microphone?: boolean | undefined;
  /** The position of the device. */
  readonly geolocation?: boolean | undefined;
  /** Writing to the clipboard. */
  readonly clipboardWrite?: boolean | undefined;
}

/** Display settings of a user interface for the host: `_meta.ui` of its contents. All optional. */
export interface ResourceUi {
  /** The origins that it may use. Default: none. */
  readonly csp?: UiCsp | undefined;
  /** The permissions it would like to have. Default: none. */
  readonly permissions?: UiPermissions | undefined;
  /** The origin that it is to have, in the host's own form. Default: the host's choice. */
  readonly domain?: string | undefined;
  /** True if a border around it is wanted. Default: the host's choice. */
  readonly prefersBorder?: boolean | undefined;
}

/** Options of a user interface: those of a resource, and its display. All optional. */
export interface UiResourceOptions<Names extends string = string, State = unknown>
  extends Omit<ResourceOptions<undefined, Names, State>, "mimeType" | "input" | "inputSchema"> {
  /** Its display settings. */
  readonly ui?: ResourceUi | undefined;
}

/** Makes a user interface when it is read: HTML. Gets the variables of a URI template, else `{ uri }`. */
export type UiHandler<Args, State = unknown> = (
  args: Args,
  ctx: Context<State>,
) => string | Uint8Array | Promise<string | Uint8Array>;

/** The extension, for a server: `new Server(name, { extensions: [uiExtension()] })`. */
export function uiExtension(): Extension {
  return new Extension(UI_EXTENSION);
}

/**
 * Returns the settings of a client that shows user interfaces. It declares them so:
 * `connect(target, { extensions: { [UI_EXTENSION]: uiClientSettings() } })`.
 *
 * @param mimeTypes those that it shows
 * @throws {MisuseError} for none
 */
export function uiClientSettings(mimeTypes: readonly string[] = [UI_MIME_TYPE]): {
  readonly mimeTypes: readonly string[];
} {
  if (!isTexts(mimeTypes) || mimeTypes.length === 0) {
    throw new MisuseError(`mimeTypes: expected a list of at least one MIME type, got ${shown(mimeTypes)}`);
  }
  return { mimeTypes: [...mimeTypes] };
}

/**
 * True if the client of this request shows user interfaces of this MIME type: where it does not, text has to do. False,
 * too, when the server does not offer the extension.
 */
export function supportsUi(ctx: Context<AnyState>, mimeType: string = UI_MIME_TYPE): boolean {
  const types = ctx.extension(UI_EXTENSION)?.["mimeTypes"];
  return Array.isArray(types) && types.includes(mimeType);
}

/**
 * The `_meta` of a tool with a user interface: `app.tool(name, { meta: toolMeta({ resourceUri: "ui://weather/map" }) }, …)`.
 *
 * @param meta other members of it
 * @throws {MisuseError} for a URI that does not begin with `ui://`, and a visibility that there is not
 */
export function toolMeta({ resourceUri, visibility, ...rest }: ToolUi, meta: MetaObject = {}): MetaObject {
  checkNames("toolMeta", rest, { resourceUri: true, visibility: true });
  if (resourceUri !== undefined) checkUri("toolMeta: resourceUri", resourceUri);
  if (visibility !== undefined && !isVisibility(visibility)) {
    throw new MisuseError(`toolMeta: visibility: expected a list of "model" and "app", got ${shown(visibility)}`);
  }
  const ui = { ...(resourceUri !== undefined && { resourceUri }), ...(visibility && { visibility: [...visibility] }) };
  return { ...meta, ui };
}

/**
 * The user interface of a listed tool, its visibility filled in, also from the flat member of older servers
 * (`ui/resourceUri`). Undefined when there is none, and for what is no such thing.
 */
export function toolUi(
  tool: Pick<Tool, "_meta">,
): (ToolUi & { readonly visibility: readonly Visibility[] }) | undefined {
  const { [FLAT]: flat, ui = {} } = tool._meta ?? {};
  const visibility = visibilityOf(tool);
  if (!isObject(ui) || visibility === undefined) return undefined;
  const { resourceUri = flat } = ui;
  if (resourceUri === undefined) return tool._meta?.["ui"] === undefined ? undefined : { visibility };
  return isUiUri(resourceUri) ? { resourceUri, visibility } : undefined;
}

/** For hosts: whether the model may be told of this tool, and call it. Not when its visibility is no list. */
export function visibleToModel(tool: Pick<Tool, "_meta">): boolean {
  return allows(tool, "model");
}

/** For hosts: whether user interfaces of the same server may call this tool. Not when its visibility is no list. */
export function callableByApp(tool: Pick<Tool, "_meta">): boolean {
  return allows(tool, "app");
}

function allows(tool: Pick<Tool, "_meta">, who: Visibility): boolean {
  return visibilityOf(tool)?.includes(who) ?? false;
}

/** Returns the callers that may use it, those we know; undefined when its visibility is no list. */
function visibilityOf(tool: Pick<Tool, "_meta">): readonly Visibility[] | undefined {
  const ui = tool._meta?.["ui"];
  const { visibility = EVERYBODY } = isObject(ui) ? ui : {};
  return Array.isArray(visibility) ? visibility.filter((who) => isVisibility([who])) : undefined;
}

const RESOURCE_UI = { csp: true, permissions: true, domain: true, prefersBorder: true } as const;
const CSP = { connectDomains: true, resourceDomains: true, frameDomains: true, baseUriDomains: true } as const;
const PERMISSIONS = { camera: true, microphone: true, geolocation: true, clipboardWrite: true } as const;

/**
 * The `_meta` of a user interface's contents, for a resource that is not made by {@link addUiResource}.
 *
 * @param meta other members of it
 * @throws {MisuseError} naming the member that is wrong
 */
export function resourceMeta(ui: ResourceUi, meta: MetaObject = {}): MetaObject {
  checkNames("ui", ui, RESOURCE_UI);
  const { csp, permissions, domain, prefersBorder } = ui;
  checkTypes("ui", ["domain", domain, "string", "optional"], ["prefersBorder", prefersBorder, "boolean", "optional"]);
  const wire: Record<string, unknown> = {};
  if (csp) {
    checkNames("ui: csp", csp, CSP);
    for (const [name, origins] of Object.entries(csp)) {
      if (origins === undefined || isTexts(origins)) continue;
      throw new MisuseError(`ui: csp: ${name}: expected a list of origins, which are text, got ${shown(origins)}`);
    }
    wire["csp"] = csp;
  }
  if (permissions) {
    checkNames("ui: permissions", permissions, PERMISSIONS);
    const given = Object.entries(permissions);
    for (const [name, wanted] of given) checkTypes("ui: permissions", [name, wanted, "boolean", "optional"]);
    wire["permissions"] = Object.fromEntries(given.filter(([, wanted]) => wanted).map(([name]) => [name, {}]));
  }
  if (domain !== undefined) wire["domain"] = domain;
  if (prefersBorder !== undefined) wire["prefersBorder"] = prefersBorder;
  return { ...meta, ui: wire };
}

const OPTIONS: Readonly<Record<keyof UiResourceOptions, true>> = {
  name: true,
  title: true,
  description: true,
  size: true,
  annotations: true,
  icons: true,
  meta: true,
  enabled: true,
  replace: true,
  scopes: true,
  cache: true,
  complete: true,
  ui: true,
};

/**
 * Adds a user interface, a resource with the MIME type {@link UI_MIME_TYPE}.
 *
 * ```ts
 * addUiResource(app, "ui://weather/map", () => readFile("map.html", "utf8"), {
 *   ui: { csp: { connectDomains: ["https://api.example.com"] }, prefersBorder: false },
 * });
 * ```
 *
 * @param server or one session of it, `ctx.session`
 * @param uri begins with `ui://`; with `{variables}` it is a template
 * @param html a whole HTML document, or the function that makes it when it is read
 * @throws {MisuseError} for another URI, or one that is taken, and options that are wrong
 */
export function addUiResource<State, const Uri extends string>(
  server: Offer<State>,
  uri: Uri,
  html: string | Uint8Array | UiHandler<ResourceArguments<Uri, undefined>, State>,
  options: UiResourceOptions<keyof ResourceArguments<Uri, undefined> & string, State> = {},
): void {
  checkUri("addUiResource: uri", uri);
  checkNames("addUiResource", options, OPTIONS);
  const { ui, name, ...rest } = options;
  const meta = ui && { _meta: resourceMeta(ui) };
  const contents = (page: unknown): object => {
    if (typeof page === "string") return { text: page, ...meta };
    if (page instanceof Uint8Array) return { blob: page, ...meta };
    throw new MisuseError(`user interface "${uri}": expected HTML, text or bytes, got ${shown(page)}`);
  };
  const known = name ?? ((typeof html === "function" && html.name) || uri);
  const fixed = typeof html === "function" ? undefined : contents(html);
  const read = async (args: ResourceArguments<Uri, undefined>, ctx: Context<State>): Promise<object> => {
    return fixed ?? contents(await (html as UiHandler<typeof args, State>)(args, ctx));
  };
  server.resource(uri, { ...rest, name: known, mimeType: UI_MIME_TYPE }, read);
}

function checkUri(what: string, uri: unknown): void {
  if (!isUiUri(uri)) throw new MisuseError(`${what}: expected a URI that begins with ${SCHEME}, got ${shown(uri)}`);
}

function isUiUri(uri: unknown): uri is string {
  return typeof uri === "string" && uri.startsWith(SCHEME);
}

function isVisibility(value: unknown): value is readonly Visibility[] {
  return Array.isArray(value) && value.every((who) => who === "model" || who === "app");
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
