// What tests/cases/FIXTURES.md has of a server that protects itself.
import { AuthError, Principal, TimeoutError } from "tricorn";
import { z } from "zod";

const camel = (members) =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      value,
    ]),
  );

/** What the setting knows of a token. */
function verifying(known) {
  return (token) => {
    if (!Object.hasOwn(known, token)) throw new AuthError("unknown token");
    if (known[token] === null) throw new TimeoutError("nobody can tell");
    const { subject, ...details } = camel(known[token]);
    return new Principal(subject, details);
  };
}

/** The option `auth`. The setting has seconds, as the options of most languages. */
export function protection(text) {
  const { introspection, verifier, clockSkew, timeout, ...auth } = camel(JSON.parse(text));
  if (introspection) auth.introspection = camel(introspection);
  if (verifier) auth.verifier = verifying(verifier);
  if (clockSkew !== undefined) auth.clockSkew = clockSkew * 1000;
  if (timeout !== undefined) auth.timeout = timeout * 1000;
  return auth;
}

/** What needs scopes, and what tells who asks. */
export function addProtected(app) {
  app.tool("whoami", { description: "Say who asks" }, (_, { principal }) => ({
    subject: principal?.subject ?? null,
    issuer: principal?.issuer ?? null,
    client_id: principal?.clientId ?? null,
    scopes: principal?.scopes ?? null,
    expires_at: principal?.expiresAt ?? null,
    team: principal?.claims.team ?? null,
    reads: principal?.hasScope("files:read") ?? false,
  }));
  app.tool(
    "delete_file",
    {
      description: "Delete a file",
      scopes: ["files:read", "files:write"],
      input: z.object({ name: z.string() }),
    },
    ({ name }) => `deleted ${name}`,
  );
  const secret = { mimeType: "text/plain", scopes: ["files:read"] };
  app.resource("test://secret", { name: "secret", ...secret }, () => "the secret");
  app.resource("test://secret/{id}", { name: "secret-of", ...secret }, ({ id }) => `the secret of ${id}`);
  app.prompt(
    "secret_prompt",
    {
      description: "Say a secret",
      scopes: ["files:read"],
      input: z.object({ id: z.string() }),
      complete: { id: ["alpha"] },
    },
    ({ id }) => `Say the secret of ${id}.`,
  );
}
