// An authorization server: metadata, registration, a login that says yes at once, tokens with rotation, keys.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer } from "node:http";
import { AuthError, Principal, Server } from "tricorn";

/** Acts as the browser of a user who is logged in: goes wherever it is sent. */
export async function browse(url) {
  const answer = await fetch(url);
  await answer.text();
  assert.equal(answer.status, 200);
}

/** A browser that nobody may open. */
export function nobody() {
  throw new Error("nobody is there");
}

async function form(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export class OAuth {
  /** Requests that came: `authorize` with the scopes, `token` with the grant. */
  asked = [];
  /** Functions, by grant, whose promises the answer to a request for a token waits for. */
  slow = {};
  #clients = new Map();
  #codes = new Map();
  #refreshTokens = new Map();
  #live = new Map();
  #keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

  static async start(t) {
    const oauth = new OAuth();
    const server = createServer((request, response) => void oauth.#answer(request, response));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    oauth.issuer = `http://127.0.0.1:${server.address().port}`;
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return oauth;
  }

  /** Counts the requests that begin with `what`. */
  count(what) {
    return this.asked.filter((one) => one.startsWith(what)).length;
  }

  /** No access token is good any more; those that refresh are. */
  revoke() {
    this.#live.clear();
  }

  /** The word of a server's `verifier` on a token. */
  verify = async (token) => {
    const known = this.#live.get(token);
    if (!known) throw new AuthError("unknown token");
    return new Principal(known.sub, {
      issuer: this.issuer,
      clientId: known.client_id,
      scopes: known.scope.split(" ").filter(Boolean),
      claims: known,
      expiresAt: known.exp,
    });
  };

  async #answer(request, response) {
    const url = new URL(request.url, this.issuer);
    const json = (status, value) => {
      response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
      response.end(JSON.stringify(value));
    };
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        return json(200, {
          issuer: this.issuer,
          authorization_endpoint: `${this.issuer}/authorize`,
          token_endpoint: `${this.issuer}/token`,
          registration_endpoint: `${this.issuer}/register`,
          jwks_uri: `${this.issuer}/keys`,
          response_types_supported: ["code"],
          grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/keys":
        return json(200, {
          keys: [{ ...this.#keys.publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256", use: "sig" }],
        });
      case "/register": {
        this.asked.push("register");
        const client = { ...JSON.parse(await form(request)), client_id: randomUUID() };
        this.#clients.set(client.client_id, client);
        return json(201, client);
      }
      case "/authorize": {
        const asked = Object.fromEntries(url.searchParams);
        this.asked.push(`authorize ${asked.scope ?? ""}`.trim());
        const code = randomUUID();
        this.#codes.set(code, asked);
        const back = new URL(asked.redirect_uri);
        back.search = new URLSearchParams({ code, state: asked.state, iss: this.issuer }).toString();
        response.writeHead(302, { location: back.href });
        return response.end();
      }
      case "/token":
        return this.#token(request, new URLSearchParams(await form(request)), json);
      default:
        return json(404, {});
    }
  }

  async #token(request, asked, json) {
    const grant = asked.get("grant_type");
    this.asked.push(`token ${grant}`);
    await this.slow[grant]?.();
    if (grant === "client_credentials") {
      const [id, secret] = Buffer.from(request.headers.authorization.slice(6), "base64").toString().split(":");
      if (secret !== "s3cret") return json(401, { error: "invalid_client" });
      return json(200, this.#issue({ client_id: id, resource: asked.get("resource"), scope: asked.get("scope") }));
    }
    const [from, name] = grant === "refresh_token" ? [this.#refreshTokens, grant] : [this.#codes, "code"];
    const login = from.get(asked.get(name));
    // Each is good for once.
    from.delete(asked.get(name));
    const verified = (text) => createHash("sha256").update(text).digest("base64url");
    if (!login || (name === "code" && verified(asked.get("code_verifier")) !== login.code_challenge)) {
      return json(400, { error: "invalid_grant" });
    }
    const refresh = randomUUID();
    this.#refreshTokens.set(refresh, login);
    return json(200, { ...this.#issue(login), refresh_token: refresh });
  }

  #issue({ client_id, resource, scope }) {
    const iat = Math.floor(Date.now() / 1000);
    const sub = client_id.startsWith("robot") ? client_id : "ada";
    const claims = { iss: this.issuer, sub, aud: resource, client_id, scope: scope ?? "", iat, exp: iat + 3600 };
    const text = `${encoded({ alg: "ES256", typ: "at+jwt", kid: "1" })}.${encoded({ ...claims, jti: randomUUID() })}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#keys.privateKey, dsaEncoding: "ieee-p1363" });
    const token = `${text}.${signature.toString("base64url")}`;
    this.#live.set(token, claims);
    return { access_token: token, token_type: "Bearer", expires_in: 3600, scope: scope ?? "" };
  }
}

/** A server that `oauth` protects, and says who asks. Listens; gives its URL. */
export async function guarded(t, oauth, more = {}) {
  const app = new Server("guarded", {
    auth: { verifier: oauth.verify, authorizationServers: [oauth.issuer], requiredScopes: ["read"], ...more },
    onError: (error) => t.diagnostic(String(error)),
  });
  app.tool("who", (_, { principal }) => `${principal.subject}: ${principal.scopes.join(" ")}`);
  app.tool("write", { scopes: ["write"] }, (_, { principal }) => principal.scopes.join(" "));
  app.resource("notes://all", "all");
  app.resource("notes://secret", { scopes: ["secret"] }, () => "secret");
  app.resource("notes://of/{who}", { scopes: ["secret"] }, ({ who }) => who);
  app.prompt("plain", () => "plain");
  app.prompt("secret", { scopes: ["secret"] }, () => "secret");
  t.after(() => app.close());
  return new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
}

/** A store that keeps logins in a map, and says what it was asked. */
export class Kept {
  logins = new Map();
  asked = [];

  load({ issuer, server }) {
    return this.logins.get(`${issuer} ${server}`);
  }

  async find(server) {
    const all = [...this.logins].map(([key, login]) => ({
      issuer: key.split(" ")[0],
      server: key.split(" ")[1],
      login,
    }));
    return all.filter((one) => one.server === server).map(({ issuer, login }) => ({ issuer, login }));
  }

  async save({ issuer, server }, login) {
    this.asked.push("save");
    this.logins.set(`${issuer} ${server}`, login);
  }

  remove({ issuer, server }) {
    this.logins.delete(`${issuer} ${server}`);
  }
}

/** Returns what the server that `guarded` has made says of who asks. */
export async function tell(client) {
  return (await client.callTool("who")).text;
}
