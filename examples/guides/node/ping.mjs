// Ping: whether the other side is still there.
import { connect, Server } from "tricorn";

const app = new Server("ping");

app.tool("ask_back", { description: "Ping the client" }, async (_, ctx) => {
  await ctx.ask("ping", undefined, { timeout: 5000 });
  return "the client is there";
});

const older = await connect(app, { revision: "2025-11-25" });
await older.ping({ timeout: 5000 });
console.log(`${older.protocolVersion}: the server is there`);
console.log(`${older.protocolVersion}:`, (await older.callTool("ask_back")).text);
await older.close();

const client = await connect(app);
await client.ping({ timeout: 5000 });
console.log(`${client.protocolVersion}: the server is there`);
await client.close();
