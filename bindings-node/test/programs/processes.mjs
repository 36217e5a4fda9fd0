// A server with children and other things of its own. argv: what else is alive ("timer", "socket", nothing), then run's arguments.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { Server } from "tricorn";

const app = new Server("processes");
app.tool("read", async () => {
  const child = spawn("sh", ["-c", "cat | wc -c"], { stdio: ["inherit", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of child.stdout) text += chunk;
  return text.trim();
});
app.tool("read_sync", () => spawnSync("cat", { stdio: ["inherit", "pipe", "inherit"] }).stdout.length);
app.tool("lines", async () => {
  let count = 0;
  for await (const _ of createInterface({ input: process.stdin })) count++;
  return count;
});
app.tool("noisy", () => {
  process.stdout.write(`${"x".repeat(8191)}\n`);
  throw new Error("no");
});

const [alive] = process.argv.slice(2);
if (alive === "timer") setInterval(() => {}, 1000);
if (alive === "socket") createServer().listen(0, "127.0.0.1");
await app.run();
// stderr may be unread.
if (alive) console.error("after run");
