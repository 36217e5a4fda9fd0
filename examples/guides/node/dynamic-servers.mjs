// Servers that change while they run: for everybody, for one client, and by themselves.
import { EventEmitter, once } from "node:events";
import { connect, RpcError, Server } from "tricorn";

const app = new Server("dynamic");

app.tool("unlock", { description: "Show the vault to this client, and give it a key" }, (_, ctx) => {
  ctx.session.setEnabled("tool", "vault", true);
  ctx.session.tool("key", { description: "What this client alone has" }, () => "brass");
  return "open";
});
app.tool("vault", { description: "What is in the vault", enabled: false }, () => "gold");
app.resource("note://first", "1");
app.prompt("first", { description: "The first prompt" }, () => "1");

const changes = new EventEmitter();
/** @type {(make: () => unknown) => Promise<string>} */
async function change(make) {
  const [[kind]] = await Promise.all([once(changes, "changed"), make()]);
  return kind;
}

const client = await connect(app, {
  revision: "2025-11-25",
  onListChanged: (kind) => changes.emit("changed", kind),
});
const other = await connect(app, { revision: "2025-11-25" });
const tools = async (of = client) => (await of.listTools()).map(({ name }) => name).join(", ");

console.log("tools:", await tools());

console.log("changed:", await change(() => app.tool("clock", { description: "What time it is" }, () => "noon")));
console.log("tools:", await tools());

const later = { description: "What time it is", replace: true };
console.log("replaced:", await change(() => app.tool("clock", later, () => "midnight")));
console.log("clock:", (await client.callTool("clock")).text);

console.log("changed:", await change(() => app.resource("note://second", "2")));
console.log("resources:", (await client.listResources()).map(({ uri }) => uri).join(", "));

console.log("changed:", await change(() => app.prompt("second", { description: "The second prompt" }, () => "2")));
console.log("prompts:", (await client.listPrompts()).map(({ name }) => name).join(", "));

console.log("hidden:", await change(() => app.setEnabled("tool", "clock", false)));
console.log("tools:", await tools());
try {
  await client.callTool("clock");
} catch (error) {
  if (error instanceof RpcError) console.log("clock: error", error.code);
}

console.log("for this client:", await change(() => client.callTool("unlock")));
console.log("tools:", await tools());
console.log("key:", (await client.callTool("key")).text);
console.log("other client:", await tools(other));

// What is registered nowhere comes from a source, such as a database.
app.setSource("resource", { get: ({ uri }) => `row ${uri.replace("row://", "")}` });
console.log("from a source:", (await client.readResource("row://7")).text);

await client.close();
await other.close();
