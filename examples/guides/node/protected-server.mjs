// A protected server, for production: an authorization server says who comes in.
//
//     ISSUER=https://login.example.com RESOURCE=https://example.com/files/mcp ALLOWED_HOSTS=example.com PORT=8000 \
//         node protected-server.mjs
//
// ISSUER          whose access tokens are taken
// RESOURCE        the server's public URL, as its clients write it
// ALLOWED_HOSTS   the hosts in it, with commas between them
// PORT            of this machine, which the proxy in front passes requests to; 8000 if not said
//
// Without RESOURCE and ALLOWED_HOSTS it is for clients on this machine, which need no proxy.
import { Server } from "tricorn";
import { z } from "zod";

const { ISSUER, RESOURCE, ALLOWED_HOSTS, PORT = "8000" } = process.env;
if (!ISSUER) throw new Error("ISSUER is not set");

const app = new Server("files", {
  auth: { issuer: ISSUER, resource: RESOURCE, requiredScopes: ["files:read"], resourceName: "Files" },
});

app.tool("whoami", { description: "Say who asks" }, (_, { principal }) => principal?.subject ?? "nobody");

app.tool(
  "delete_file",
  { description: "Delete a file", scopes: ["files:write"], input: z.object({ name: z.string() }) },
  ({ name }, { principal }) => `${principal?.subject} deleted ${name}`,
);

await app.run({ port: Number(PORT), allowedHosts: ALLOWED_HOSTS?.split(",") ?? [] });
