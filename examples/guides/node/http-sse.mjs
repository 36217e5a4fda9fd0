// HTTP+SSE: the oldest transport, for clients and servers that have nothing newer.
import { connect, Server } from "tricorn";

const app = new Server("old");
app.tool("greet", { description: "Greet" }, () => "hello");

const { url } = await app.listen({ port: 0, sse: true });

const client = await connect(url);
console.log(`${new URL(url).pathname}: ${client.protocolVersion}`);
await client.close();

// A client finds out by itself that there is nothing newer at a URL.
const older = await connect(url.replace("/mcp", "/sse"));
console.log(`/sse: ${older.protocolVersion}, ${(await older.callTool("greet")).text}`);
await older.close();

await app.close();
