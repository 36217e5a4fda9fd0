// Pagination: long lists come in pages.
import { connect, RpcError, Server } from "tricorn";

const app = new Server("shelf", { pageSize: 2 });
for (const name of ["one", "two", "three", "four", "five"]) {
  app.resource(`book://${name}`, { name }, `Book ${name}.`);
}

const client = await connect(app);

/** @type {string | undefined} */
let cursor;
do {
  const { resources, nextCursor } = await client.listResourcesPage(cursor);
  console.log("page:", resources.map(({ name }) => name).join(", "));
  cursor = nextCursor;
} while (cursor !== undefined);

const seen = [];
// Asks for a page when the loop gets there.
for await (const { name } of client.resources()) {
  seen.push(name);
  if (name === "three") break;
}
console.log("lazily:", ...seen);

console.log("all:", (await client.listResources()).length);

try {
  await client.listResourcesPage("nonsense");
} catch (error) {
  if (error instanceof RpcError) console.log("bad cursor: error", error.code);
}
await client.close();
