// A server with a lifespan, mounted in servers of node:http; how it ends is told by its first argument.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout } from "node:timers/promises";
import { connect, Server } from "tricorn";

const print = (line) => process.stdout.write(`${line}\n`);
const [how, revision] = process.argv.slice(2);

function made() {
  let starts = 0;
  return new Server("mounts", {
    lifespan: {
      start: () => ++starts,
      stop: async (state) => {
        await setTimeout(20);
        print(`closed ${state}`);
      },
    },
  }).tool("state", (_, ctx) => ctx.state);
}

async function used(app, close) {
  const webs = [createServer(app.listener()), createServer(app.listener())];
  for (const web of webs) {
    await once(web.listen(0, "127.0.0.1"), "listening");
    const client = await connect(`http://127.0.0.1:${web.address().port}/mcp`, revision ? { revision } : {});
    print(`state ${(await client.callTool("state")).text}`);
    // A session that is left open goes on.
    if (close) await client.close();
    else client.unref();
  }
  return webs;
}

/** Leaves nothing behind that refers to the server. */
async function unused() {
  for (const web of await used(made(), true)) {
    web.close();
    web.closeAllConnections();
  }
}

if (how === "collected") {
  await unused();
  for (let round = 0; round < 50; round++) {
    global.gc();
    await setTimeout(20);
  }
  print("the end");
} else {
  const app = made();
  const webs = await used(app, how !== "open");
  if (how === "natural" || how === "open") {
    for (const web of webs) {
      web.close();
      web.closeAllConnections();
    }
  } else if (how === "own") {
    process.on("SIGTERM", async () => {
      print("own");
      await app.close();
      process.exit(3);
    });
  } else setInterval(() => {}, 1000);
  print("ready");
}
