// Lifespan: what a server starts with its first use and stops with its last.
import { connect, Server } from "tricorn";
import { z } from "zod";

class Database {
  /** @type {string[]} */
  rows = [];
}

const app = new Server("notes", {
  lifespan: {
    start: () => {
      console.log("open");
      return new Database();
    },
    stop: (database) => console.log("close, rows:", database.rows.length),
  },
});

app.tool("note", { description: "Write something down", input: z.object({ text: z.string() }) }, ({ text }, ctx) => {
  return ctx.state.rows.push(text);
});

const polite = new Server("polite", { state: { greeting: "Good morning" } });
polite.tool("greet", { description: "Greet" }, (_, ctx) => ctx.state.greeting);

const one = await connect(app);
const two = await connect(app);
console.log("one: row", (await one.callTool("note", { text: "Buy milk." })).text);
console.log("two: row", (await two.callTool("note", { text: "Buy bread." })).text);
await two.close();
console.log("one is still there");
console.log("one: row", (await one.callTool("note", { text: "Bake." })).text);
await one.close();

const again = await connect(app);
console.log("again: row", (await again.callTool("note", { text: "Eat." })).text);
await again.close();

const client = await connect(polite);
console.log("greet:", (await client.callTool("greet")).text);
await client.close();
