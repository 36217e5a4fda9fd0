/** Who sent a request. */

import { inspect } from "node:util";
import { checkFinite } from "./options.js";

/** What is known of a principal besides its name. All optional. */
export interface PrincipalDetails {
  /** Who issued the token (`iss`). */
  readonly issuer?: string | undefined;
  /** The client that the token was issued to (`client_id`). */
  readonly clientId?: string | undefined;
  /** What the token was granted. Default: nothing. */
  readonly scopes?: readonly string[] | undefined;
  /** All that is said of it, as in a token. Not the token itself. Default: nothing. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** When the token expires, in seconds since 1970, as `exp` has it. Default: nobody says so. */
  readonly expiresAt?: number | undefined;
}

/** How the engine tells it. */
export interface WirePrincipal {
  readonly subject: string;
  readonly issuer?: string | null;
  readonly clientId?: string | null;
  readonly scopes: readonly string[];
  readonly impliedScopes?: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly expiresAt?: number | null;
}

/**
 * What the engine knows of who sent a request.
 *
 * @internal
 */
export let principalFrom: (wire: WirePrincipal) => Principal;

/**
 * Who sent a request, as its access token says: found out by the server's `auth` before anything runs, and
 * {@link Context.principal} of the handler. A `verifier` makes one.
 *
 * Sessions, tasks and the state between rounds of questions belong to the issuer and the subject: a new token of the same
 * subject, with other scopes, is the same principal.
 */
export class Principal {
  /** The token's `sub`: a user, or a client that acts for itself. Where a token has none it is the client's id. */
  readonly subject: string;
  /** Who issued the token (`iss`). */
  readonly issuer: string | undefined;
  /** The client that the token was issued to (`client_id`). */
  readonly clientId: string | undefined;
  /** What the token was granted. {@link hasScope} knows what follows from it, too. */
  readonly scopes: readonly string[];
  /** When the token expires, in seconds since 1970. Undefined: nobody says so. */
  readonly expiresAt: number | undefined;
  /** They hold what is nobody's business: neither the console nor JSON shows them. */
  readonly #claims: Readonly<Record<string, unknown>>;
  #implied: readonly string[] = [];

  static {
    principalFrom = ({ subject, issuer, clientId, scopes, impliedScopes = [], claims, expiresAt }) => {
      const principal = new Principal(subject, {
        issuer: issuer ?? undefined,
        clientId: clientId ?? undefined,
        scopes,
        claims,
        expiresAt: expiresAt ?? undefined,
      });
      principal.#implied = impliedScopes;
      return principal;
    };
  }

  /**
   * @param subject a name that its issuer gives to nobody else
   * @throws {MisuseError} for a time that is no finite number
   */
  constructor(subject: string, { issuer, clientId, scopes = [], claims = {}, expiresAt }: PrincipalDetails = {}) {
    checkFinite("Principal: ", { expiresAt });
    this.subject = subject;
    this.issuer = issuer;
    this.clientId = clientId;
    this.scopes = scopes;
    this.expiresAt = expiresAt;
    this.#claims = claims;
  }

  /** All that the token or its introspection says. The token itself is not in it. */
  get claims(): Readonly<Record<string, unknown>> {
    return this.#claims;
  }

  /** Whether a scope was granted, or follows from one that was ({@link Protection.scopeImplies}). */
  hasScope(scope: string): boolean {
    return this.scopes.includes(scope) || this.#implied.includes(scope);
  }

  /** @internal */
  [inspect.custom](_depth: number, options: object, show: typeof inspect): string {
    const { subject, issuer, clientId, scopes, expiresAt } = this;
    return `Principal ${show({ subject, issuer, clientId, scopes, expiresAt }, options)}`;
  }
}
