// A Redis or Valkey of one test's own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const UNPACKED = fileURLToPath(new URL("../../target/valkey/valkey-server", import.meta.url));

function program() {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const named = ["valkey-server", "redis-server"].flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...named, UNPACKED].find((path) => existsSync(path)) ?? UNPACKED;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Reason for not running a test here. */
export const NOT_HERE = process.platform === "win32" && "no Redis or Valkey is built for Windows";

/** Starts a store, which ends with the test. Gives its URL. */
export async function redis(t) {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "tricorn-"));
  const words = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn(program(), words, { cwd: folder, stdio: "ignore" });
  const over = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await over;
    rmSync(folder, { recursive: true });
  });
  for (let tries = 0; ; tries++) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return `redis://127.0.0.1:${port}`;
    } catch (error) {
      if (tries > 1000) throw error;
      await setTimeout(10);
    } finally {
      socket.destroy();
    }
  }
}
