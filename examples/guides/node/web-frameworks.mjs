// A server as a part of a web program: a database in the lifespan, models with limits, mounted in Express behind a login,
// tested in memory, and shut down in order.
import assert from "node:assert/strict";
import { once } from "node:events";
import express from "express";
import { connect, Server, ToolError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";

/** A database, as far as this program needs one. */
class Database {
  /** @type {{ id: number, owner: string, title: string, due: Date, secret: string }[]} */
  #rows = [];
  #open = true;

  /** @param {string} owner @param {string} title @param {Date} due */
  async insert(owner, title, due) {
    assert.ok(this.#open, "the database is closed");
    const row = { id: this.#rows.length + 1, owner, title, due, secret: "internal" };
    this.#rows.push(row);
    return row;
  }

  /** @param {string} owner */
  async of(owner) {
    assert.ok(this.#open, "the database is closed");
    return this.#rows.filter((row) => row.owner === owner);
  }

  async close() {
    this.#open = false;
    console.log(`database closed, rows: ${this.#rows.length}`);
  }
}

// What a client sends, with its limits: the words of a wrong call are those of the model.
const NewTask = z.object({
  title: z.string().trim().min(3, "a title has at least three letters").max(80),
  due: z.coerce.date().describe("The day on which it has to be done"),
  priority: z.enum(["low", "normal", "high"]).default("normal"),
});

// What leaves: members of a row that are not here stay in the program.
const Task = z.object({ id: z.int(), title: z.string(), due: z.date() });
const Tasks = z.object({ tasks: z.array(Task), total: z.int() });

/** The tools, for anybody who says who is asking. */
function makeServer() {
  const app = new Server("tasks", {
    version: "1.0.0",
    instructions: "Keeps the tasks of whoever is signed in.",
    lifespan: {
      start: async () => {
        console.log("database open");
        return new Database();
      },
      stop: (database) => database.close(),
    },
  });

  app.tool("add", { description: "Add a task", input: NewTask, output: Task }, async ({ title, due }, ctx) => {
    const owner = userOf(ctx);
    if (due < new Date("2026-01-01")) throw new ToolError("that day is over");
    return ctx.state.insert(owner, title, due);
  });

  app.tool("list", { description: "List the tasks", output: Tasks }, async (_, ctx) => {
    const tasks = await ctx.state.of(userOf(ctx));
    return { tasks, total: tasks.length };
  });

  app.prompt(
    "plan",
    { description: "Plan a day", input: z.object({ hours: z.coerce.number().max(12) }) },
    ({ hours }) => {
      return `Plan my tasks for ${hours} hours.`;
    },
  );
  return app;
}

/**
 * Who is signed in: what the login below has found out.
 * @param {import("tricorn").Context<Database>} ctx
 */
function userOf(ctx) {
  const { user } = /** @type {{ user?: string }} */ (ctx.host ?? {});
  return user ?? "nobody";
}

/** A login, as a framework has it. */
const USERS = new Map([
  ["Bearer ada-token", "ada"],
  ["Bearer bob-token", "bob"],
]);

/** @param {Server<Database>} app */
function makeWeb(app) {
  const web = express();
  const listener = app.listener();
  web.use(express.json());
  web.use("/mcp", (request, response) => {
    const user = USERS.get(request.headers.authorization ?? "");
    if (user === undefined) {
      response.status(401).json({ error: "sign in first" });
      return;
    }
    listener(request, response, { context: { user } });
  });
  web.get("/health", (_, response) => void response.json({ ok: true }));
  return web;
}

// 1. Tests in memory: the real protocol, without a socket.
await withClient(makeServer(), async (client) => {
  const added = await client.callTool("add", { title: "  Write  ", due: "2026-03-01" });
  console.log("in memory:", JSON.stringify(added.structured));
  console.log("wrong:", (await client.callTool("add", { title: "x", due: "2026-03-01" })).text);
  console.log("late:", (await client.callTool("add", { title: "Too late", due: "2020-01-01" })).text);
});

// 2. In Express, behind the login.
const app = makeServer();
const web = makeWeb(app).listen(0, "127.0.0.1");
await once(web, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (web.address());
const url = `http://127.0.0.1:${port}/mcp`;

for (const [token, title] of [
  ["ada-token", "Feed the cat"],
  ["bob-token", "Paint the door"],
]) {
  const client = await connect(url, { headers: { Authorization: `Bearer ${token}` } });
  await client.callTool("add", { title, due: "2026-05-01", priority: "high" });
  const { total, tasks } = await (await client.callTool("list")).to(
    z.object({ tasks: z.array(z.object({ id: z.int(), title: z.string() })), total: z.int() }),
  );
  console.log(`${token}: ${total} task, ${tasks.map((task) => task.title).join()}`);
  await client.close();
}
try {
  await connect(url);
} catch (error) {
  console.log("without a login:", /** @type {Error} */ (error).name);
}

// 3. In order: no more requests, then the tools and what they share, then the sockets. On SIGTERM a program does the same:
// process.once("SIGTERM", stop).
async function stop() {
  web.close();
  await app.close();
  web.closeAllConnections();
}
await stop();
