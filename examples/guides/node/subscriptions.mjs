// Subscriptions: what has changed, heard one change after the other or by a function, the same in every revision.
import { EventEmitter, on, once } from "node:events";
import { connect, Server } from "tricorn";
import { z } from "zod";

const app = new Server("news");
let score = "0:0";
app.resource("news://sport", { description: "How it stands" }, () => score);
app.tool("headlines", { description: "What is new" }, () => "It rains.");
app.tool(
  "search",
  { description: "What was new", enabled: false, input: z.object({ word: z.string() }) },
  ({ word }) => word,
);

const events = new EventEmitter();
const hooked = on(events, "hooked");
app.onSubscribe(({ uri, subscribed }) => {
  if (subscribed) events.emit("hooked", `server: ${uri} is listened to`); // else somebody has left
});

async function printHooked() {
  console.log(...(await hooked.next()).value);
}

/** @param {import("tricorn").Client} client */
async function oneAfterTheOther(client) {
  const changes = client.listen({ tools: true, uris: ["news://sport"] });
  const honoured = await changes.honoured;
  await printHooked();
  console.log("listening to", honoured.tools ? "tools," : "", ...honoured.uris);
  score = "1:0";
  app.resourceUpdated("news://sport");
  for await (const change of changes) {
    if (change.type === "resourceUpdated") {
      console.log(`changed: ${change.uri}:`, (await client.readResource(change.uri)).text);
      app.setEnabled("tool", "search", true);
    } else if (change.type === "toolsListChanged") {
      const tools = await client.listTools();
      console.log("changed: tools:", tools.map((tool) => tool.name).join(", "));
      break;
    }
  }
  app.setEnabled("tool", "search", false);
}

/** @param {import("tricorn").Client} client */
async function byAFunction(client) {
  await client.subscribe("news://sport");
  await printHooked();
  const told = once(events, "told");
  app.resourceUpdated("news://sport");
  console.log("told:", ...(await told));
  await client.unsubscribe("news://sport");
}

const clients = [];
for (const revision of ["2025-11-25", "2026-07-28"]) {
  console.log(revision);
  const client = await connect(app, { revision });
  await oneAfterTheOther(client);
  const hearing = await connect(app, { revision, onResourceUpdated: (uri) => events.emit("told", uri) });
  await byAFunction(hearing);
  clients.push(client, hearing);
}
for (const client of clients) await client.close();
