// Workers of `node:cluster`: a mounted server shares their port.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect } from "tricorn";
import { within } from "./program.mjs";

test("workers of cluster share the port of a mounted server", async (t) => {
  const program = fileURLToPath(new URL("programs/cluster.mjs", import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [line] = await within(once(createInterface({ input: child.stdout }), "line"), "ready workers");
  const [port, ...others] = JSON.parse(line);
  assert.deepEqual(others, []);
  const workers = new Set();
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const calls = Array.from({ length: 8 }, async () => {
      const client = await connect(`http://127.0.0.1:${port}/`, { revision });
      workers.add((await client.callTool("who")).text);
      await client.close();
    });
    await within(Promise.all(calls), `answers in ${revision}`);
  }
  assert.equal(workers.size, 2, "both workers answer");
  child.stdin.end();
  await within(once(child, "exit"), "the end");
});
