// A protected server on the official TypeScript SDK: protected.mjs --http HOST:PORT, the issuer in PROTECTED_BY.
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  oauthMetadataResponse,
  requireBearerAuth,
  requireScopes,
} from "@modelcontextprotocol/server";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { z } from "zod";

const [how, address] = process.argv.slice(2);
if (how !== "--http") {
  console.error("protected.mjs --http HOST:PORT");
  process.exit(2);
}
const [host, port] = address.split(":");
const issuer = process.env.PROTECTED_BY;
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

/** The SDK's `OAuthTokenVerifier`, for JSON Web Tokens: their audience is the SDK's own business. */
const verifier = {
  async verifyAccessToken(token) {
    const { payload } = await jwtVerify(token, keys, { issuer }).catch((error) => {
      throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
    });
    return {
      token,
      clientId: payload.client_id,
      scopes: payload.scope?.split(" ") ?? [],
      expiresAt: payload.exp,
      resource: new URL(payload.aud),
      extra: payload,
    };
  },
};

function build() {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" });
  const structured = (value) => ({
    content: [{ type: "text", text: JSON.stringify(value) }],
    structuredContent: value,
  });
  const text = (text) => ({ content: [{ type: "text", text }] });
  server.registerTool("whoami", { description: "Say who asks", inputSchema: z.object({}) }, (_, ctx) => {
    const { extra, clientId, scopes } = ctx.http.authInfo;
    return structured({ subject: extra.sub, issuer: extra.iss, client_id: clientId, scopes });
  });
  const slow = { description: "Take a while", inputSchema: z.object({ ms: z.number() }) };
  server.registerTool("slow", slow, async ({ ms }) => {
    await setTimeout(ms);
    return text(`slept ${ms} ms`);
  });
  const scopeChallenge = requireScopes("files:read", "files:write");
  const remove = { description: "Delete a file", inputSchema: z.object({ name: z.string() }), scopeChallenge };
  server.registerTool("delete_file", remove, ({ name }) => text(`deleted ${name}`));
  return server;
}

const listener = createServer();
listener.listen(Number(port), host, async () => {
  const url = new URL(`http://${host}:${listener.address().port}/mcp`);
  const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const documents = { oauthMetadata, resourceServerUrl: url, scopesSupported: ["mcp"] };
  const gate = requireBearerAuth({
    verifier,
    requiredScopes: ["mcp"],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
    expectedResource: url,
  });
  const handler = createMcpHandler(build);
  const answer = async (request) => {
    const document = oauthMetadataResponse(request, documents);
    if (document) return document;
    const authInfo = await gate(request);
    return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
  };
  listener.on("request", toNodeHandler({ fetch: answer }));
  console.error(`ready ${url.href}`);
});
