// Many servers: used as if they were one.
import { EventEmitter, once } from "node:events";
import { connectMany, Server, TricornError } from "tricorn";
import { z } from "zod";

const input = z.object({ name: z.string() });
const maps = new Server("maps")
  .tool("find", { description: "Find a city", input }, ({ name }) => `the map of ${name}`)
  .tool("zoom", { description: "Look closer" }, () => "closer");
const files = new Server("files")
  .tool("find", { description: "Find a file", input }, ({ name }) => `file:///${name}.txt`)
  .resource("file:///Rome.txt", "Not built in a day.");

const news = new EventEmitter();
const servers = { broken: { command: "/no/such/program" }, maps, files };
const group = await connectMany(servers, {
  revision: "2025-11-25",
  forServer: (name) => ({ onListChanged: (kind) => news.emit("changed", `${name} ${kind}`) }),
});
console.log("servers:", group.names.join(", "));
for (const [name, failure] of group.failures) console.log(`failed: ${name}, ${failure.kind}`);

for (const tool of await group.listTools()) console.log(`${tool.name} of ${tool.server}`);
console.log("maps_find:", (await group.callTool("maps_find", { name: "Rome" })).text);
console.log("files_find:", (await group.callTool("files_find", { name: "Rome" })).text);
console.log("zoom:", (await group.callTool("zoom")).text);
console.log("file:///Rome.txt:", (await group.readResource("file:///Rome.txt")).text);
try {
  await group.callTool("zooom");
} catch (error) {
  if (error instanceof TricornError) console.log("zooom:", error.kind);
}

// One of them, with its own names.
const alone = (await group.client("maps")?.listTools()) ?? [];
console.log("maps alone:", alone.map(({ name }) => name).join(", "));

const changed = once(news, "changed");
maps.tool("turn", {}, () => "north");
console.log("changed:", ...(await changed));
console.log("turn:", (await group.callTool("turn")).text);

await group.remove("files");
console.log("without files:", (await group.listTools()).map(({ name }) => name).join(", "));
await group.close();
