// The SDK's own example of a protected server, before 2.0, with its example of an authorization server beside it:
// example.mjs --http HOST:PORT, the port free.
import { once } from "node:events";
import { createServer, Server } from "node:net";

const [how, address] = process.argv.slice(2);
if (how !== "--http") {
  console.error("example.mjs --http HOST:PORT");
  process.exit(2);
}
const host = address.split(":")[0];

async function freePort() {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const [port, authorization] = [await freePort(), await freePort()];
process.env.MCP_PORT = String(port);
process.env.MCP_AUTH_PORT = String(authorization);
process.argv.push("--oauth", "--oauth-strict");

// It listens on every interface; here on one only, and it is ready when both of its servers are.
const { listen } = Server.prototype;
let waiting = 2;
Server.prototype.listen = function (of, ...rest) {
  this.once("listening", () => {
    waiting -= 1;
    if (waiting === 0) console.error(`ready http://localhost:${port}/mcp`);
  });
  return listen.call(this, { port: Number(of), host }, ...rest);
};
await import("@modelcontextprotocol/sdk/examples/server/simpleStreamableHttp.js");
