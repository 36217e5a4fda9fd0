// Extensions: settings, requests and notifications of one's own, for the clients that declare them.
import { connect, Extension, PeerMisbehavedError, RpcError, Server } from "tricorn";
import { z } from "zod";

const SEARCH = "com.example/search";
const RESERVE = "com.example/reserve";
const ORDERED = "notifications/com.example/ordered";
const SUBJECTS = "com.example/subjects";
const BOOKS = ["Tea at Five", "Tea at Six", "Coffee at Ten"];
const extensions = { [SEARCH]: { limit: 1 } };

const Settings = z.object({ limit: z.int().optional() });
const Offered = z.object({ languages: z.array(z.string()) });
const Found = z.object({ found: z.array(z.string()) });

const search = new Extension(SEARCH, { languages: ["en", "de"] })
  .method(
    SEARCH,
    ({ query }, ctx) => {
      const { limit } = Settings.parse(ctx.extension(SEARCH) ?? {});
      return { found: BOOKS.filter((title) => title.includes(query)).slice(0, limit) };
    },
    { idempotent: true, schema: z.object({ query: z.string() }) },
  )
  .method(RESERVE, ({ title }) => ({ resultType: "com.example/ticket", title, number: 7 }), {
    schema: z.object({ title: z.string() }),
  })
  // Who listens asks for it by this member of the filter.
  .notification(ORDERED, SUBJECTS);

const app = new Server("library", { extensions: [search] });

app.tool("limit", { description: "How much this client takes" }, (_, ctx) => {
  const settings = ctx.extension(SEARCH);
  return settings ? `at most ${settings["limit"]}` : "no search";
});

/** @param {import("tricorn").Client} client */
async function hear(client) {
  const changes = client.listen({ extensions: { [SUBJECTS]: ["tea"] }, signal: AbortSignal.timeout(10_000) });
  await changes.honoured;
  app.notify(ORDERED, { title: "Coffee at Eleven" }, "coffee");
  app.notify(ORDERED, { title: "Tea at Seven" }, "tea");
  for await (const change of changes) {
    if (change.type !== "extensionNotification") continue;
    console.log("ordered:", change.params["title"]);
    if (change.params["title"] === "Tea at Seven") break;
  }
}

/**
 * @param {import("tricorn").Client} client
 * @param {Record<string, unknown>} params
 */
async function refusal(client, params) {
  try {
    return `found ${Found.parse(await client.request(SEARCH, params)).found}`;
  } catch (error) {
    if (error instanceof RpcError) return `error ${error.code}`;
    throw error;
  }
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  console.log(revision);
  const client = await connect(app, { revision, extensions });
  console.log("languages:", Offered.parse(client.capabilities.extensions?.[SEARCH]).languages.join(", "));
  console.log("found:", Found.parse(await client.request(SEARCH, { query: "Tea" })).found.join(", "));
  console.log("tool:", (await client.callTool("limit")).text);
  console.log("wrong:", await refusal(client, { query: 7 }));
  await hear(client);
  await client.close();
  const other = await connect(app, { revision }); // declares nothing
  const said = (await other.callTool("limit")).text;
  console.log(`undeclared: ${said},`, await refusal(other, { query: "Tea" }));
  await other.close();
}

const client = await connect(app, { revision: "2026-07-28", extensions });
try {
  await client.request(RESERVE, { title: "Tea at Six" });
} catch (error) {
  if (error instanceof PeerMisbehavedError) console.log("unasked:", error.kind);
}
const ticket = await client.request(RESERVE, { title: "Tea at Six" }, { anyResult: true });
console.log("reserved:", ticket["resultType"], ticket["number"]);
await client.close();
