// Resources: listed, read, templated, watched.
import { EventEmitter, once } from "node:events";
import { connect, ResourceNotFoundError, RpcError, Server } from "tricorn";
import { z } from "zod";

const app = new Server("resources");
const notes = { today: "Buy milk." };

app.resource("notes://today", { description: "What to do today", mimeType: "text/plain" }, () => notes.today);

app.resource("logo://dot", { name: "dot", mimeType: "image/png" }, Buffer.from("\x89PNG", "latin1"));

app.resource(
  "notes://{year}/{month}",
  {
    description: "The notes of a month",
    mimeType: "text/plain",
    input: z.object({ year: z.int(), month: z.int() }),
  },
  ({ year, month }) => {
    if (year < 2000) throw new ResourceNotFoundError(`notes://${year}/${month}`);
    return `Notes of ${month}/${year}`;
  },
);

const changes = new EventEmitter();
let told = 0;
changes.on("updated", () => told++);
const client = await connect(app, {
  revision: "2025-11-25",
  onResourceUpdated: (uri) => changes.emit("updated", uri),
});

for (const resource of await client.listResources()) console.log(resource.uri, resource.mimeType);
for (const template of await client.listResourceTemplates()) console.log(template.uriTemplate);

console.log("notes://today:", (await client.readResource("notes://today")).text);
console.log("logo://dot:", (await client.readResource("logo://dot")).blob?.length, "bytes");
console.log("notes://2026/11:", (await client.readResource("notes://2026/11")).text);
for (const uri of ["notes://2026/May", "notes://1999/1"]) {
  try {
    await client.readResource(uri);
  } catch (error) {
    if (error instanceof RpcError) console.log(`${uri}: error ${error.code}, ${error.message}`);
  }
}

await client.subscribe("notes://today");
const change = once(changes, "updated");
notes.today = "Buy milk and bread.";
app.resourceUpdated("notes://today");
console.log("changed:", ...(await change));
console.log("notes://today:", (await client.readResource("notes://today")).text);

await client.unsubscribe("notes://today");
app.resourceUpdated("notes://today");
await client.ping(); // whatever was sent before is here now
console.log("told", told, "time");
await client.close();
