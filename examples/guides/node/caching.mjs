// Caching: a server says how long its answers keep, and its client asks no sooner than that.
import { connect, Server } from "tricorn";
import { z } from "zod";

const app = new Server("prices", { cache: { tools: { ttl: 60_000, scope: "public" } } });
let lookedUp = 0;

// Private, as it may depend on who asks.
app.resource(
  "price://apple",
  { description: "What an apple costs", cache: { ttl: 3_600_000 } },
  () => `look-up ${++lookedUp}`,
);

// Calls of tools are never kept.
app.tool("buy", { description: "Buy fruit", input: z.object({ fruit: z.string() }) }, ({ fruit }) => fruit);

const client = await connect(app, { revision: "2026-07-28" });
const tools = await client.request("tools/list");
console.log(`tools: ${tools["ttlMs"]} ms, ${tools["cacheScope"]}`);

/**
 * @param {string} how
 * @param {"default" | "refresh" | "bypass"} [cache]
 */
async function read(how, cache = "default") {
  console.log(`${how}:`, (await client.readResource("price://apple", { cache })).text);
}

await read("first");
await read("again");
await read("past it", "bypass"); // neither looks at what is kept nor changes it
await read("again");
await read("anew", "refresh"); // asks, and keeps the answer
await read("again");
const usage = client.metrics().cache;
console.log(`hits ${usage.hits}, misses ${usage.misses}`);

// What is listened to is dropped as soon as it changes.
const changes = client.listen({ uris: ["price://apple"] });
await changes.honoured;
app.resourceUpdated("price://apple");
for await (const change of changes) {
  console.log("changed:", change.type === "resourceUpdated" ? change.uri : change.type);
  break;
}
await read("again");
await client.close();

for (const [how, options] of Object.entries({
  "no cache": { cache: false },
  "2025-11-25": { revision: "2025-11-25" },
})) {
  const client = await connect(app, options);
  const texts = [];
  for (let n = 0; n < 2; n++) texts.push((await client.readResource("price://apple")).text);
  console.log(`${how}:`, texts.join(", "));
  await client.close();
}
