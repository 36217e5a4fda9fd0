/** The sender of a request. */

import { inspect } from "node:util";
import { MisuseError } from "../errors/errors.js";
import { checkFinite, checkNames, checkScope, typeOf } from "../json/checks.js";

/** Details of a principal besides its name. All optional. */
export interface PrincipalDetails {
  /** The issuer of the token (`iss`). */
  readonly issuer?: string | undefined;
  /** The client that the token was issued to (`client_id`). */
  readonly clientId?: string | undefined;
  /** The scopes that the token was granted. Default: none. */
  readonly scopes?: readonly string[] | undefined;
  /** All that is said of it, as in a token. Not the token itself. Default: nothing. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The time at which the token expires: seconds since 1970, as `exp` has them, or a `Date`. Default: nobody says so.
   */
  readonly expiresAt?: number | Date | undefined;
}

const DETAILS: Readonly<Record<keyof PrincipalDetails, true>> = {
  issuer: true,
  clientId: true,
  scopes: true,
  claims: true,
  expiresAt: true,
};

/** Details from the engine, which has checked them. */
class Told implements PrincipalDetails {
  readonly issuer: string | undefined;
  readonly clientId: string | undefined;
  readonly scopes: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly expiresAt: number | undefined;

  constructor({ issuer, clientId, scopes, claims, expiresAt }: WirePrincipal) {
    this.issuer = issuer ?? undefined;
    this.clientId = clientId ?? undefined;
    this.scopes = scopes;
    this.claims = claims;
    this.expiresAt = expiresAt ?? undefined;
  }
}

/** A principal as the engine tells it. */
export interface WirePrincipal {
  readonly subject: string;
  readonly issuer?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly scopes: readonly string[];
  readonly impliedScopes?: readonly string[] | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly expiresAt?: number | null | undefined;
}

/**
 * Makes a principal of what the engine knows of the sender of a request.
 *
 * @internal
 */
export let principalFrom: (wire: WirePrincipal) => Principal;

/**
 * The sender of a request, as its access token says: found out by the server's `auth` before anything runs, and
 * {@link Context.principal} of the handler. A `verifier` makes one.
 *
 * Sessions, tasks and the state between rounds of questions belong to the issuer and the subject: a new token of the same
 * subject, with other scopes, is the same principal.
 */
export class Principal {
  /** The token's `sub`: a user, or a client that acts for itself. Where a token has none it is the client's id. */
  readonly subject: string;
  /** The issuer of the token (`iss`). */
  readonly issuer: string | undefined;
  /** The client that the token was issued to (`client_id`). */
  readonly clientId: string | undefined;
  /** The scopes that the token was granted. {@link hasScope} knows what follows from them, too. */
  readonly scopes: readonly string[];
  /** The time at which the token expires, in seconds since 1970. Undefined: nobody says so. */
  readonly expiresAt: number | undefined;
  /** They hold what is nobody's business: neither the console nor JSON shows them. */
  readonly #claims: Readonly<Record<string, unknown>>;
  #implied: readonly string[] = [];

  static {
    principalFrom = (wire) => {
      const principal = new Principal(wire.subject, new Told(wire));
      principal.#implied = wire.impliedScopes ?? [];
      return principal;
    };
  }

  /**
   * @param subject a name that its issuer gives to nobody else
   * @throws {MisuseError} naming what is wrong, and what to give instead
   */
  constructor(subject: string, details: PrincipalDetails = {}) {
    if (!(details instanceof Told)) check(subject, details);
    const { issuer, clientId, scopes = [], claims = {}, expiresAt } = details;
    this.subject = subject;
    this.issuer = issuer;
    this.clientId = clientId;
    this.scopes = scopes;
    this.expiresAt = expiresAt instanceof Date ? expiresAt.getTime() / 1000 : expiresAt;
    this.#claims = claims;
  }

  /** All that the token or its introspection says. The token itself is not in it. */
  get claims(): Readonly<Record<string, unknown>> {
    return this.#claims;
  }

  /** True if a scope was granted, or follows from one that was ({@link Protection.scopeImplies}). */
  hasScope(scope: string): boolean {
    return this.scopes.includes(scope) || this.#implied.includes(scope);
  }

  /** @internal */
  [inspect.custom](_depth: number, options: object, show: typeof inspect): string {
    const { subject, issuer, clientId, scopes, expiresAt } = this;
    return `Principal ${show({ subject, issuer, clientId, scopes, expiresAt }, options)}`;
  }
}

function check(subject: unknown, details: unknown): void {
  checkName("subject", subject);
  if (!isPlain(details)) throw wrong("details", "an object", details, "give { scopes, claims, … }");
  checkNames("Principal", details, DETAILS);
  const { issuer, clientId, scopes, claims, expiresAt } = details;
  if (issuer !== undefined) checkName("issuer", issuer);
  if (clientId !== undefined) checkName("clientId", clientId);
  if (scopes !== undefined) checkScopes(scopes);
  if (claims !== undefined) checkClaims(claims);
  if (expiresAt !== undefined) checkTime(expiresAt);
}

/** Makes the error for a wrong detail without its value: a token may have been put there. */
function wrong(name: string, expected: string, got: unknown, fix = ""): MisuseError {
  return new MisuseError(`Principal: ${name}: expected ${expected}, got ${typeOf(got)}${fix}`);
}

function checkName(name: string, value: unknown): void {
  if (typeof value !== "string") throw wrong(name, "a string", value);
  if (value === "") {
    throw new MisuseError(
      `Principal: ${name}: expected a string that is not empty: it tells one principal from another`,
    );
  }
}

function checkScopes(scopes: unknown): void {
  if (typeof scopes === "string") throw wrong("scopes", "a list of strings", scopes, ": split it");
  if (!Array.isArray(scopes)) throw wrong("scopes", "a list of strings", scopes, ": give [...it]");
  for (const scope of scopes as unknown[]) {
    if (typeof scope !== "string")
      throw wrong("scopes", "a list of strings", [scope], `: one of it is ${typeOf(scope)}`);
    checkScope("Principal: scopes", scope);
  }
}

function checkClaims(claims: unknown): void {
  if (!isPlain(claims)) throw wrong("claims", "an object", claims, "; give the token's decoded payload");
  try {
    JSON.stringify(claims);
  } catch (error) {
    const cause = { cause: error };
    throw new MisuseError("Principal: claims: expected what JSON has; leave out cycles, give bigints as text", cause);
  }
  checkFinite("Principal: claims: ", claims);
}

function checkTime(at: unknown): void {
  const expected = 'seconds since 1970, such as the token\'s "exp", or a date';
  if (at instanceof Date) {
    if (!Number.isNaN(at.getTime())) return;
    throw new MisuseError(`Principal: expiresAt: expected ${expected}, got an invalid Date; give new Date(exp * 1000)`);
  }
  if (typeof at !== "number") throw wrong("expiresAt", expected, at);
  if (!Number.isFinite(at)) {
    throw new MisuseError(
      `Principal: expiresAt: expected a finite number or a Date, got ${at}; leave it out where none is said`,
    );
  }
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Map);
}
