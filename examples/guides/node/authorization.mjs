// Authorization: a server that takes access tokens, and clients that have one.
import { AuthError, connect, Principal, Server } from "tricorn";
import { z } from "zod";

const people = new Map([
  ["token-of-ada", new Principal("ada", { scopes: ["notes:read", "notes:write"] })],
  ["token-of-bob", new Principal("bob", { scopes: ["notes:read"] })],
]);

const app = new Server("notes", {
  // Whose tokens they are. A server in production lets its authorization server say so:
  // { issuer: "https://login.example.com", resource: "https://notes.example.com/mcp", requiredScopes: [...] }
  auth: {
    verifier: (token) => people.get(token),
    authorizationServers: ["https://login.example.com"],
    requiredScopes: ["notes:read"],
  },
});

app.tool("whoami", { description: "Say who asks" }, (_, { principal }) => principal?.subject ?? "nobody");

app.tool(
  "write",
  { description: "Write a note", scopes: ["notes:write"], input: z.object({ text: z.string() }) },
  ({ text }, { principal }) => `${principal?.subject} wrote ${text}`,
);

const { url } = await app.listen({ port: 0 });

for (const name of ["ada", "bob"]) {
  // A user logs in with a browser, and the program finds out the rest: { auth: true }.
  const client = await connect(url, { auth: { token: `token-of-${name}` } });
  const tools = await client.listTools();
  console.log(`${(await client.callTool("whoami")).text} may use: ${tools.map((tool) => tool.name).join(", ")}`);
  try {
    console.log((await client.callTool("write", { text: "milk" })).text);
  } catch (error) {
    if (error instanceof AuthError) console.log("refused:", error.kind);
  }
  await client.close();
}

try {
  await connect(url);
} catch (error) {
  if (error instanceof AuthError) console.log("without a token:", error.kind);
}
await app.close();
