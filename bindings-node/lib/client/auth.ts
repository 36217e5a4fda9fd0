/** Authorization of a client at a protected server. */

import { Numbered, textOf, type WireAuth } from "../bridge/callouts.js";
import { keepUp, letEnd } from "../bridge/host.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { checkShapes, shown, typeOf } from "../json/checks.js";
import { optionsToEngine } from "../json/options.js";
import { CLIENT_AUTH, type ClientAuth, IDENTITY, type Secrets, type Wanted } from "./auth-options.js";
import { type StoreRequest, storing, type TokenStore } from "./token-store.js";

const GRANTS: readonly ClientAuth["grant"][] = ["authorization_code", "client_credentials", "jwt_bearer", "id_jag"];

/**
 * The option `auth` of a client.
 *
 * @throws {MisuseError} naming what is wrong with it
 */
export function clientAuth(given: ClientAuth | boolean | undefined, home: Home): WireAuth {
  if (given === undefined || given === false) return { wire: undefined, kept: [] };
  const auth = given === true ? {} : given;
  if (typeof auth !== "object" || auth === null) throw new MisuseError("auth: expected an object, or true");
  checkShapes("auth", auth, CLIENT_AUTH);
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
