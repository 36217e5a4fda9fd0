// A real authorization server, in memory, on the loopback interface: npm oidc-provider. `node provider.mjs` prints
// `ready <issuer>` on standard error, and is killed in the end. What a test wants of it is POSTed as JSON to
// `/control`: see README.md.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { follow } from "./browser.mjs";

const { default: Provider } = await import("oidc-provider");

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const settings = { seconds: 600, rotates: true };
const seen = { grants: [], registered: 0, refused: [] };
let keys = [];
let provider;

function newKey() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
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
    if (found) found.payload.consumed = Math.floor(Date.now() / 1000);
  }
}

const cookieKeys = [randomUUID()];

function start() {
  provider = new Provider(issuer, {
    adapter: Memory,
    jwks: { keys },
    cookies: { keys: cookieKeys },
    scopes: ["openid", "offline_access"],
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => ({
          audience: resource,
          scope: "mcp files:read files:write",
          accessTokenFormat: "jwt",
          accessTokenTTL: settings.seconds,
          jwt: { sign: { alg: "RS256", kid: keys.at(-1).kid } },
        }),
      },
    },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: () => settings.rotates,
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

const commands = {
  // How long access tokens live from now on.
  seconds: (value) => Object.assign(settings, { seconds: value }),
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
    Object.assign(seen, { grants: [], registered: 0, refused: [] });
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
  if (request.url === "/control") control(request, response);
  else provider.callback()(request, response);
});
process.stderr.write(`ready ${issuer}\n`);
