// The lifespan of a mounted server ends once, whichever way the program does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "./program.mjs";

async function ended(t, args, signal, nodeArgs = []) {
  const program = start(t, "mounts", args, nodeArgs);
  if (signal) {
    await program.prints("ready");
    program.child.kill(signal);
  }
  const exit = await program.exit();
  return { lines: program.lines, exit, stderr: program.stderr };
}

for (const revision of ["2026-07-28", "2025-11-25"]) {
  for (const how of ["natural", "open"]) {
    test(`at the natural end of the program (${how}, ${revision})`, async (t) => {
      const { lines, exit, stderr } = await ended(t, [how, revision]);
      assert.deepEqual(lines, ["state 1", "state 1", "ready", "closed 1"]);
      assert.deepEqual([exit, stderr], [{ code: 0, signal: null }, ""]);
    });
  }
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    test(`at ${signal}, which ends the program then (${revision})`, async (t) => {
      const { lines, exit, stderr } = await ended(t, ["signal", revision], signal);
      assert.deepEqual(lines, ["state 1", "state 1", "ready", "closed 1"]);
      assert.deepEqual([exit, stderr], [{ code: null, signal }, ""]);
    });
  }
}

test("a program that handles the signal itself does so alone", async (t) => {
  const { lines, exit } = await ended(t, ["own"], "SIGTERM");
  assert.deepEqual(lines, ["state 1", "state 1", "ready", "own", "closed 1"]);
  assert.deepEqual(exit, { code: 3, signal: null });
});

test("when nobody refers to the server any more", async (t) => {
  const { lines, exit, stderr } = await ended(t, ["collected"], undefined, ["--expose-gc"]);
  assert.deepEqual(lines, ["state 1", "state 1", "closed 1", "the end"]);
  assert.deepEqual([exit, stderr], [{ code: 0, signal: null }, ""]);
});
