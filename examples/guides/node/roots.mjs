// Roots: the folders that a client lets its server work on.
import { connect, RpcError, Server } from "tricorn";

const app = new Server("roots");

app.tool("folders", { description: "Say where I may look" }, async (_, ctx) => {
  ctx.require("roots");
  const roots = await ctx.listRoots();
  return roots.map(({ uri, name }) => (name ? `${uri} (${name})` : uri)).join(" ");
});

const roots = ["/srv/notes", { uri: "file:///srv/pictures", name: "Pictures" }];
const client = await connect(app, { revision: "2025-11-25", roots });
console.log("roots:", (await client.callTool("folders")).text);
client.setRoots(["/srv/music"]); // the server is told that they have changed
console.log("roots:", (await client.callTool("folders")).text);
await client.close();

const other = await connect(app, { revision: "2025-11-25" });
try {
  await other.callTool("folders");
} catch (error) {
  if (error instanceof RpcError) console.log(`without roots: error ${error.code}, ${error.message}`);
}
await other.close();
