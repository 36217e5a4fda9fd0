// A shared cache: clients of several programs keep answers in one store, and what has changed is dropped for all.
import { connect, Server } from "tricorn";

const app = new Server("prices", { cache: { read: { ttl: 3_600_000, scope: "public" } } });
let lookedUp = 0;

app.resource("price://apple", { description: "What an apple costs" }, () => `look-up ${++lookedUp}`);

/** @type {Map<string, string>} */
const kept = new Map();

/**
 * A store; with the package `redis` its functions are `mGet([...keys])`, `set(key, text, { PX: ttl })` and `del(key)`.
 *
 * @type {import("tricorn").CacheStore}
 */
const store = {
  get: async (keys) => keys.map((key) => kept.get(key)),
  set: async (key, text) => kept.set(key, text),
  delete: async (key) => kept.delete(key),
};

/** @param {import("tricorn").Client} client */
const price = async (client) => (await client.readResource("price://apple")).text;

const { url } = await app.listen({ port: 0 });

// Each would be in a program of its own, with a store that both reach.
const one = await connect(url, { cache: { store } });
const another = await connect(url, { cache: { store } });
console.log("one program:", await price(one));
console.log("another:", await price(another));
const usage = another.metrics().cache;
console.log(`hits ${usage.hits}, failures ${usage.failures}`);

// What one of them hears of is dropped for all.
const changes = one.listen({ uris: ["price://apple"] });
await changes.honoured;
app.resourceUpdated("price://apple");
for await (const change of changes) {
  console.log("changed:", change.type === "resourceUpdated" ? change.uri : change.type);
  break;
}
console.log("one program:", await price(one));
console.log("another:", await price(another));
await one.close();
await another.close();

const marks = [...kept.keys()].filter((key) => key.includes(":resources/read:mark:"));
const answers = [...kept.values()].filter((text) => text.includes("look-up 2"));
console.log("the store has marks and one answer:", marks.length > 0 && answers.length === 1);
await app.close();
