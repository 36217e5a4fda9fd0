/** Protection of a server: the access tokens that it takes. */

import { type AskedOptions, Numbered, type WireAuth } from "../bridge/callouts.js";
import type { Home } from "../bridge/scope.js";
import { MisuseError } from "../errors/errors.js";
import { checkScope, checkShapes, type Shape } from "../json/checks.js";
import { optionsToEngine } from "../json/options.js";
import { Principal } from "../model/principal.js";
import { PROTECTION, type Protection } from "./auth-options.js";

/** Takes JSON Web Tokens (RFC 9068) of an issuer. */
export interface IssuerProtection extends Protection {
  /**
   * The text that their `iss` has, byte for byte. Its keys are found by its metadata (RFC 8414, OpenID Connect Discovery),
   * kept, and fetched again when they are an hour old or a token is signed with another, once in 30 seconds at most; those
   * that are known are used for a day while there are no others. Signatures are RS, PS, ES or EdDSA. An https URL, or an
   * http one of this machine.
   */
  readonly issuer: string;
  /** The URL of the issuer's keys, for one that publishes no metadata. Default: where its metadata says. */
  readonly jwksUri?: string | undefined;
  readonly introspection?: undefined | undefined;
  readonly verifier?: undefined | undefined;
}

/** Asks the authorization server about each token (RFC 7662). What is active has to say for whom it is (`aud`). */
export interface IntrospectionProtection extends Protection {
  /** Its endpoint, and this server as its client (`client_secret_basic`). An answer is believed for 30 seconds. */
  readonly introspection: { readonly url: string; readonly clientId: string; readonly clientSecret: string };
  readonly authorizationServers: readonly string[];
  readonly issuer?: undefined | undefined;
  readonly jwksUri?: undefined | undefined;
  readonly verifier?: undefined | undefined;
}

/** Asks a function about each token. */
export interface VerifierProtection extends Protection {
  readonly verifier: Verifier;
  readonly authorizationServers: readonly string[];
  readonly issuer?: undefined | undefined;
  readonly jwksUri?: undefined | undefined;
  readonly introspection?: undefined | undefined;
}

/**
 * Says whose a token is. It has to make sure that the token is for this server; what it says of the expiry is checked. Null,
 * undefined, or an {@link AuthError} it throws, refuse the token (401). A {@link TimeoutError}, a {@link TransportError}, and
 * errors of sockets and of `fetch` mean that nobody can tell now (503). Any other error refuses it, too. The client is told
 * nothing of what it throws; {@link ServerOptions.onError} is, unless it is an `AuthError`.
 */
export type Verifier = (
  token: string,
  options: AskedOptions,
) => Principal | null | undefined | PromiseLike<Principal | null | undefined>;

/**
 * Validation of access tokens over HTTP: the server is an OAuth 2.1 resource server then, and each of its requests
 * needs a token in its `Authorization` header. Exactly one of `issuer`, `introspection` and `verifier` says what a
 * token is worth.
 *
 * ```ts
 * const app = new Server("notes", {
 *   auth: { issuer: "https://login.example.com", resource: "https://mcp.example.com/mcp", requiredScopes: ["mcp"] },
 * });
 * ```
 *
 * A request without a token, or with one that is not for this server now, is answered with 401 and a challenge that says
 * where the protected-resource metadata is (RFC 9728), which is served, too; one whose token lacks scopes with 403 and a
 * challenge that names all that it needs; one whose token cannot be checked now with 503. Handlers learn who asks by
 * {@link Context.principal}, and never see the token.
 */
export type ServerAuth = IssuerProtection | IntrospectionProtection | VerifierProtection;

const OPTIONS: Readonly<Record<keyof ServerAuth, Shape>> = {
  issuer: "string",
  jwksUri: "string",
  introspection: "object",
  verifier: "function",
  ...PROTECTION,
};

const INTROSPECTION: Readonly<Record<keyof IntrospectionProtection["introspection"], Shape>> = {
  url: "string",
  clientId: "string",
  clientSecret: "string",
};

/**
 * The option `auth` of a server.
 *
 * @throws {MisuseError} naming what is wrong with it
 */
export function serverAuth(auth: ServerAuth | undefined, home: Home): WireAuth {
  if (auth === undefined) return { wire: undefined, kept: [] };
  if (typeof auth !== "object" || auth === null) throw new MisuseError("auth: expected an object");
  checkShapes("auth", auth, OPTIONS);
  const { verifier, introspection, scopeImplies, ...plain } = auth;
  const functions = new Numbered(home);
  const wire: Record<string, unknown> = { ...plain };
  if (introspection !== undefined) {
    checkShapes("auth: introspection", introspection, INTROSPECTION);
    wire["introspection"] = optionsToEngine("auth: introspection: ", introspection);
  }
  if (verifier !== undefined) {
    wire["verifier"] = functions.number("verifier", async ({ token }: { readonly token: string }, options) => {
      const known: unknown = await verifier.call(auth, token, options);
      if (known === null || known === undefined) return {};
      if (!(known instanceof Principal)) throw new MisuseError("the verifier: expected a Principal, null or undefined");
      const { subject, issuer, clientId, scopes, claims, expiresAt } = known;
      return { principal: { subject, issuer, clientId, scopes, claims, expiresAt } };
    });
  }
  for (const [scope, narrower] of Object.entries(scopeImplies ?? {})) {
    checkScope("auth: scopeImplies", scope);
    checkShapes("auth: scopeImplies", { [scope]: narrower }, { [scope]: "list of scopes" });
  }
  // The scopes are names of the user's, which stay as they are.
  return { wire: { ...optionsToEngine("auth: ", wire), scope_implies: scopeImplies }, kept: functions.kept };
}
