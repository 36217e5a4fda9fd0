/** Authorization of a client at a protected server. */

import { type AskedOptions, Numbered, textOf, type WireAuth } from "../bridge/callouts.js";
import { keepUp, letEnd } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { checkShapes, type Shape, shown, typeOf } from "../json/checks.js";
import { optionsToEngine } from "../json/options.js";
import type { StoreOptions } from "../model/store-options.js";
import { type StoreRequest, storing, type TokenStore } from "./token-store.js";

/** The purpose of an assertion or a token. */
export interface Wanted {
  /** The authorization server's issuer, which is the assertion's audience. Empty where no server is asked. */
  readonly issuer: string;
  /** The resource that it is to open, as the server names itself. */
  readonly resource: string | undefined;
}

/**
 * Gives a text that must not be known to others. It has five minutes. What it throws is why the request fails: the text of
 * an {@link AuthError} and of this library's other errors is said there, of any other its type alone, and
 * {@link ClientOptions.onError} hears all of it.
 */
export type Secrets = (wanted: Wanted, options: AskedOptions) => string | PromiseLike<string>;

/** The identity provider of an enterprise, which answers for its users. */
export interface Identity {
  /** Its token endpoint, an https URL. */
  readonly tokenEndpoint: string;
  /** The client id of this program there. */
  readonly clientId: string;
  /** Its secret there, if it has one. */
  readonly clientSecret?: string | undefined;
  /** The ID token it has issued for the user; or {@link ClientAuth.assertion}, a function, gives it. */
  readonly token?: string | undefined;
  /** The token's type. Default `urn:ietf:params:oauth:token-type:id_token`. */
  readonly tokenType?: string | undefined;
}

/**
 * Options for a client's access tokens. All optional: with nothing given it discovers everything, registers the program
 * where that is possible, and lets the user log in with the browser. The combinations that make sense:
 *
 * ```ts
 * { auth: true }                                              // a user logs in
 * { auth: { clientId, clientSecret } }                        // the same, of a program that is registered
 * { auth: { clientMetadataUrl: "https://app.example/id.json" } } // … that has a Client ID Metadata Document
 * { auth: { token: "…" } }                                    // an access token that is there already
 * { auth: { token: async () => await vault.token() } }        // … asked for again when the server refuses it
 * { auth: { grant: "client_credentials", clientId, clientSecret } } // the program as itself (RFC 6749 §4.4)
 * { auth: { grant: "client_credentials", clientId, privateKey, signingAlgorithm: "ES256" } } // … private_key_jwt (RFC 7523)
 * { auth: { clientId, clientSecret, identity: { tokenEndpoint, clientId, token } } } // enterprise-managed authorization
 * { auth: { grant: "jwt_bearer", clientId, assertion: () => readFile(path, "utf8") } } // a workload's own JWT
 * ```
 *
 * Only https URLs, and http ones of this machine, are ever asked or opened. What fails is an {@link AuthError} that says
 * which step it was, where, and what to do; {@link Client.authTrace} has all of them.
 */
export interface ClientAuth {
  /**
   * The way tokens are obtained: a user logs in, the program is let in as itself, a workload's JWT is the grant, an
   * identity provider answers for the user. Default: by what else is given, and a user's login otherwise.
   */
  readonly grant?: "authorization_code" | "client_credentials" | "jwt_bearer" | "id_jag" | undefined;
  /**
   * The program's id at the authorization server, where it is registered already. All grants but a user's login need it.
   * Default: the program registers, or is known by `clientMetadataUrl`.
   */
  readonly clientId?: string | undefined;
  /** Its secret there; with `clientId`. Default: none. */
  readonly clientSecret?: string | undefined;
  /** Its private key there, PEM; it proves itself with `private_key_jwt` (RFC 7523) then. Default: none. */
  readonly privateKey?: string | undefined;
  /** The key's algorithm. Default `ES256`. */
  readonly signingAlgorithm?: string | undefined;
  /** The key's id (`kid`), where the server needs it. */
  readonly keyId?: string | undefined;
  /**
   * The issuer that `clientId` belongs to; of the authorization servers that a server lists, this one is taken. For
   * servers without metadata, the one that is asked. An https URL, or an http one of this machine. Say it beside a secret:
   * what a server lists is its own choice. Default: the issuer of the login that is kept, else the first that the server
   * lists and that can be asked.
   */
  readonly issuer?: string | undefined;
  /** The URL of the program's own Client ID Metadata Document, https with a path: its id at servers that understand that. */
  readonly clientMetadataUrl?: string | undefined;
  /** The program's name for people, where it registers itself. Default: the client's own name. */
  readonly clientName?: string | undefined;
  /** The URL of a page about the program. */
  readonly clientUri?: string | undefined;
  /**
   * The type the program registers as (OpenID Connect). Default: `native` where the browser comes back to this machine,
   * else `web`.
   */
  readonly applicationType?: "native" | "web" | undefined;
  /**
   * The user of the login, where one program has several: the login of one is not used for another. Default: that of
   * the program's one user.
   */
  readonly user?: string | undefined;
  /** Scopes that are always asked for, besides what the server wants. Default: none. */
  readonly scopes?: readonly string[] | undefined;
  /**
   * Tokens bound to a key (RFC 9449): true wherever the authorization server can, false never. Default: where the MCP
   * server asks for it.
   */
  readonly dpop?: boolean | undefined;
  /** The identity provider that answers for the user. */
  readonly identity?: Identity | undefined;
  /**
   * A workload's JWT, which is the grant, or a function that gives it each time. With `identity` a function that gives what
   * the provider has said of the user, where that has no `token`.
   */
  readonly assertion?: string | Secrets | undefined;
  /**
   * An access token, or a function that gives one and is asked again when the server refuses it, for another: nothing else
   * is done then. Visible ASCII without spaces.
   */
  readonly token?: string | Secrets | undefined;
  /** Milliseconds that a user may take to log in; after that it is an {@link AuthError}. Default 5 minutes. */
  readonly loginTimeout?: number | undefined;
  /** Says the login page's address on standard error instead of opening it, where there is no `browser`. Default false. */
  readonly noBrowser?: boolean | undefined;
  /**
   * The port of this machine that the browser comes back to, at `/callback`, where there is no `redirectUri`. Default: one
   * that is free; a client that was registered by hand may need its own.
   */
  readonly redirectPort?: number | undefined;
  /**
   * Shows the login page to the user, and need not wait for them; what it returns is ignored, and what it throws is why the
   * login fails, told as that of {@link Secrets}. Default: the system's browser. What plays a user in a test follows
   * redirects, as `fetch` does: where the browser comes back to, whoever brings the login's answer is let in.
   */
  readonly browser?: ((url: string, options: AskedOptions) => unknown) | undefined;
  /**
   * The URL the browser comes back to, when that is not a port that is opened for it: an https URL, or an http one of
   * this machine, without a fragment. With `callback`.
   */
  readonly redirectUri?: string | undefined;
  /**
   * Gives the URL that the browser came back with, or its query. It is called before the browser is opened, and its signal
   * is aborted when the login is over. With `redirectUri`.
   */
  readonly callback?:
    | ((redirectUri: string, options: AskedOptions) => string | URL | PromiseLike<string | URL>)
    | undefined;
  /**
   * The place where logins are kept. `file`: files that only the user can read and all programs of the user share, in
   * `$XDG_DATA_HOME/tricorn/logins`, else `~/.local/share/tricorn/logins`; on macOS below `~/Library/Application Support`,
   * on Windows below `%LOCALAPPDATA%`. `keychain`: the same files, sealed with a key of the system's keychain, which may ask
   * the user; unsealed where no keychain gives a key, which is said on standard error. `memory`: for this client, or the
   * clients of this group, and no longer. Or files in another directory; a Redis or Valkey that clients of other machines
   * share, with a `secret`; or a store of the program's own. Default:
   * `keychain`, which says nothing where there is no keychain at all; for a user without a home directory the memory of this
   * process, which is said on standard error.
   */
  readonly store?:
    | "file"
    | "memory"
    | "keychain"
    | { readonly directory: string }
    | StoreOptions
    | TokenStore
    | undefined;
}

const GRANTS: readonly ClientAuth["grant"][] = ["authorization_code", "client_credentials", "jwt_bearer", "id_jag"];

const OPTIONS: Readonly<Record<keyof ClientAuth, Shape>> = {
  grant: "string",
  clientId: "string",
  clientSecret: "string",
  privateKey: "string",
  signingAlgorithm: "string",
  keyId: "string",
  issuer: "string",
  clientMetadataUrl: "string",
  clientName: "string",
  clientUri: "string",
  applicationType: "string",
  user: "string",
  scopes: "list of scopes",
  dpop: "boolean",
  identity: "object",
  assertion: "any",
  token: "any",
  loginTimeout: "number",
  noBrowser: "boolean",
  redirectPort: "number",
  browser: "function",
  redirectUri: "string",
  callback: "function",
  store: "any",
};

const IDENTITY: Readonly<Record<keyof Identity, Shape>> = {
  tokenEndpoint: "string",
  clientId: "string",
  clientSecret: "string",
  token: "string",
  tokenType: "string",
};

/**
 * The option `auth` of a client.
 *
 * @throws {MisuseError} naming what is wrong with it
 */
export function clientAuth(given: ClientAuth | boolean | undefined, home: Home): WireAuth {
  if (given === undefined || given === false) return { wire: undefined, kept: [] };
  const auth = given === true ? {} : given;
  if (typeof auth !== "object" || auth === null) throw new MisuseError("auth: expected an object, or true");
  checkShapes("auth", auth, OPTIONS);
  // The engine's word on it would spell them in our casing.
  if (auth.grant !== undefined && !GRANTS.includes(auth.grant)) {
    throw new MisuseError(`auth: grant: expected one of ${GRANTS.join(", ")}, got ${shown(auth.grant)}`);
  }
  const { browser, callback, token, assertion, store, identity, ...plain } = auth;
  checkText("token", token);
  checkText("assertion", assertion);
  const port = auth.redirectPort ?? 0;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new MisuseError(`auth: redirectPort: expected a port, 0 to 65535, got ${port}`);
  }
  const functions = new Numbered(home);
  const secrets = (name: "token" | "assertion", source: Secrets): number =>
    functions.number(name, async ({ issuer, resource }: Wanted, options) => {
      const wanted: Wanted = { issuer, resource: resource ?? undefined };
      return { [name]: textOf("a text", await source.call(auth, wanted, options)) };
    });
  const wire: Record<string, unknown> = { ...plain };
  if (identity !== undefined) {
    checkShapes("auth: identity", identity, IDENTITY);
    wire["identity"] = optionsToEngine("auth: identity: ", identity);
  }
  if (typeof token === "function") wire["tokens"] = secrets("token", token);
  else wire["token"] = token;
  if (typeof assertion === "function") wire["assertions"] = secrets("assertion", assertion);
  else wire["assertion"] = assertion;
  if (browser !== undefined) {
    wire["browser"] = functions.number("browser", async ({ url }: { readonly url: string }, options) => {
      await browser.call(auth, url, options);
      return {};
    });
  }
  if (callback !== undefined) {
    type Coming = { readonly redirect_uri: string };
    wire["callback"] = functions.number("callback", async ({ redirect_uri }: Coming, options) => {
      const came: unknown = await callback.call(auth, redirect_uri, options);
      return { url: came instanceof URL ? came.href : textOf("the URL that the browser came back with", came) };
    });
  }
  if (isStore(store)) {
    // The engine brings a refresh to its end, also of a client that is closed, or that nobody refers to any more.
    const ask = storing(store, (is) => (is ? keepUp : letEnd)(handler));
    const handler = functions.number("store", (request: StoreRequest) => ask(request));
    wire["store"] = { handler, reserves: true };
  } else wire["store"] = store;
  return { wire: optionsToEngine("auth: ", wire), kept: functions.kept };
}

function checkText(name: string, given: unknown): void {
  if (given === undefined || typeof given === "string" || typeof given === "function") return;
  throw new MisuseError(`auth: ${name}: expected a string or a function, got ${typeOf(given)}`);
}

function isStore(store: ClientAuth["store"]): store is TokenStore {
  if (typeof store !== "object" || store === null) return false;
  // One's own may have a member of that name, too.
  return typeof (store as Partial<TokenStore>).load === "function" || !("directory" in store || "url" in store);
}
