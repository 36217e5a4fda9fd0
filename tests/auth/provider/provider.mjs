// A real authorization server, in memory, on the loopback interface: npm oidc-provider. `node provider.mjs` prints
// `ready <issuer>` on standard error, and is killed in the end. What a test wants of it is POSTed as JSON to
// `/control`: see README.md.

import { createPrivateKey, generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { follow } from "./browser.mjs";

const { default: Provider } = await import("oidc-provider");

/** Milliseconds for what somebody waits for. */
const LIMIT = 10_000;

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const settings = { seconds: 600, opaque: false, forgives: false };
const nothing = { grants: [], registered: 0, refused: [], introspected: 0 };
const seen = structuredClone(nothing);
let keys = [];
let provider;

function newKey() {
  // By way of a text: a key that is exported while the other one of its pair is collected waits for itself, in Node 20.
  const [publicKeyEncoding, privateKeyEncoding] = ["spki", "pkcs8"].map((type) => ({ type, format: "pem" }));
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048, publicKeyEncoding, privateKeyEncoding });
  return {
    ...createPrivateKey(pair.privateKey).export({ format: "jwk" }),
    kid: randomUUID(),
    use: "sig",
    alg: "RS256",
  };
}

// The provider reads its keys once, so that other keys are another provider with the same memory.
const memory = new Map();
class Memory {
  constructor(name) {
    this.name = name;
  }
  key(id) {
    return `${this.name}:${id}`;
  }
  async upsert(id, payload, expiresIn) {
    // Clients may ask for more than what they have registered for: the user decides.
    if (this.name === "Client") delete payload.scope;
    memory.set(this.key(id), { payload, until: expiresIn ? Date.now() + expiresIn * 1000 : Infinity });
  }
  async find(id) {
    const found = memory.get(this.key(id));
    return found && found.until > Date.now() ? found.payload : undefined;
  }
  async findByUid(uid) {
    for (const [key, { payload }] of memory) {
      if (key.startsWith(`${this.name}:`) && payload.uid === uid) return payload;
    }
    return undefined;
  }
  async findByUserCode() {
    return undefined;
  }
  async destroy(id) {
    memory.delete(this.key(id));
  }
  async revokeByGrantId(grantId) {
    for (const [key, { payload }] of memory) if (payload.grantId === grantId) memory.delete(key);
  }
  async consume(id) {
    const found = memory.get(this.key(id));
    if (!found) return;
    const consumed = Math.floor(Date.now() / 1000);
    if (!settings.forgives || this.name !== "RefreshToken") {
      found.payload.consumed = consumed;
      return;
    }
    // Its answer may get lost: it is good for another one until that is used which came of it.
    for (const [key, { payload }] of memory) {
      const used = key.startsWith("RefreshToken:") && payload.grantId === found.payload.grantId && payload.used;
      if (used && payload !== found.payload) payload.consumed = consumed;
    }
    found.payload.used = true;
  }
}

/** The client that asks about tokens: the MCP server. */
const resourceServer = { client_id: "resource-server", client_secret: "secret-of-the-resource-server" };

const SCOPES = ["mcp", "files:read", "files:write"];

const tokens = (resource) => ({
  audience: resource,
  scope: SCOPES.join(" "),
  accessTokenTTL: settings.seconds,
  ...(settings.opaque
    ? { accessTokenFormat: "opaque" }
    : { accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256", kid: keys.at(-1).kid } } }),
});

const cookieKeys = [randomUUID()];

function start() {
  provider = new Provider(issuer, {
    adapter: Memory,
    jwks: { keys },
    cookies: { keys: cookieKeys },
    scopes: ["openid", "offline_access", ...SCOPES],
    clients: [{ ...resourceServer, grant_types: [], response_types: [], redirect_uris: [] }],
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => tokens(resource),
      },
    },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: () => true,
    pkce: { required: () => true },
    ttl: {
      AccessToken: () => settings.seconds,
      Grant: 3600,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: 3600,
      Session: 3600,
    },
  });
  provider.on("grant.success", (ctx) => seen.grants.push(ctx.oidc.params.grant_type));
  provider.on("grant.error", (ctx, error) => seen.refused.push(`${ctx.oidc?.params?.grant_type}: ${error.error}`));
  provider.on("registration_create.success", () => seen.registered++);
}

/** Answers of the token endpoint that are kept back. */
const held = { on: false, answers: [], more() {} };

function keptBack(response) {
  const end = response.end.bind(response);
  response.end = (...rest) => {
    if (!held.on) return end(...rest);
    held.answers.push(() => end(...rest));
    held.more();
    return response;
  };
}

/** As a client does it that is not wanted any more: at the revocation endpoint. */
async function revokeAtEndpoint(token, clientId) {
  const { client_secret: secret } = memory.get(`Client:${clientId}`).payload;
  const basic = Buffer.from(`${clientId}:${secret}`).toString("base64");
  const { status } = await fetch(`${issuer}/token/revocation`, {
    method: "POST",
    headers: secret ? { authorization: `Basic ${basic}` } : {},
    body: new URLSearchParams({ token, ...(!secret && { client_id: clientId }) }),
  });
  if (status !== 200) throw new Error(`the revocation endpoint answered ${status}`);
}

const commands = {
  // How long access tokens live from now on.
  seconds: (value) => Object.assign(settings, { seconds: value }),
  // From now on access tokens are texts that nobody can read.
  opaque: (value) => Object.assign(settings, { opaque: value }),
  // From now on a refresh token is good again as long as nobody has used what came of it.
  forgives: (value) => Object.assign(settings, { forgives: value }),
  // From now on the token endpoint does its work and keeps its answers.
  hold() {
    held.on = true;
  },
  // Waits until so many answers are kept back.
  async held({ count }) {
    const late = AbortSignal.timeout(LIMIT);
    while (held.answers.length < count) {
      await new Promise((resolve, reject) => {
        held.more = resolve;
        late.addEventListener("abort", () => reject(new Error(`${held.answers.length} answers are kept back`)));
      });
    }
  },
  // Lets them go.
  release() {
    held.on = false;
    for (const answer of held.answers.splice(0)) answer();
  },
  // An access token as nobody has asked for it.
  async mint({ resource, scope }) {
    const client = await provider.Client.find(resourceServer.client_id);
    const token = new provider.AccessToken({ accountId: "ada", client, scope });
    token.resourceServer = new provider.ResourceServer(resource, tokens(resource));
    return { token: await token.save() };
  },
  // All tokens of this kind are revoked, one by one, at the revocation endpoint.
  async revoke_tokens({ kind }) {
    const all = [...memory].filter(([key]) => key.startsWith(`${kind}:`));
    for (const [key, { payload }] of all) await revokeAtEndpoint(key.slice(kind.length + 1), payload.clientId);
    return { count: all.length };
  },
  // Other keys; the former ones are published still, or not.
  rotate({ keep }) {
    keys = [...(keep ? keys : []), newKey()];
    start();
  },
  // Everything that a user ever granted is taken back.
  revoke() {
    for (const key of memory.keys()) if (/^(Grant|RefreshToken|Session):/.test(key)) memory.delete(key);
  },
  // A browser: logs in, and consents or not.
  follow: ({ url, user, denies }) => follow(url, issuer, user ?? "ada", denies ?? false),
  // What was asked since this was asked last.
  seen() {
    const now = structuredClone(seen);
    Object.assign(seen, structuredClone(nothing));
    return now;
  },
};

async function control(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const [name, value] = Object.entries(JSON.parse(Buffer.concat(chunks)))[0];
    const said = (await commands[name](value)) ?? {};
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(said));
  } catch (error) {
    response
      .writeHead(500, { "content-type": "application/json" })
      .end(JSON.stringify({ error: String(error?.stack) }));
  }
}

keys = [newKey()];
start();
server.on("request", (request, response) => {
  if (request.url === "/control") return control(request, response);
  if (request.url === "/token") keptBack(response);
  if (request.url === "/token/introspection") seen.introspected++;
  provider.callback()(request, response);
});
process.stderr.write(`ready ${issuer}\n`);
