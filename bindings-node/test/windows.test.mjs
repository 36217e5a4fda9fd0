// Behaviour of this layer on Windows, in programs that take their platform for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { native } from "./package.mjs";
import { call, initialize, start } from "./program.mjs";

process.env.TRICORN_ADDON = native;

test("what is printed goes to stderr while a server speaks, and nothing can be read", async (t) => {
  const program = start(t, "windows");
  program.send(...initialize(), call(1, "print"));
  const answer = await program.answer(1);
  assert.equal(answer.result.content[0].text, '[[true,true],""]');
  program.child.stdin.end();
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.equal(program.lines.at(-1), "[false,false]");
  assert.match(program.stderr, /by console \u2713\nby write\n/);
  assert.equal(program.stderr.split("stdout belongs to the protocol").length, 2);
  assert.ok(!program.lines.some((line) => line.includes("by ")));
});

for (const where of ["twice", "twice-here"]) {
  test(`a second server on the same streams gives nothing back: ${where}`, async (t) => {
    const program = start(t, "windows", [where]);
    program.send(...initialize());
    await program.says("MisuseError");
    program.send(call(1, "print"));
    const { result } = await program.answer(1);
    program.child.stdin.end();
    await program.exit();
    assert.equal(result.content[0].text, JSON.stringify([where === "twice" ? [true, true] : [false, false], ""]));
    assert.ok(!program.lines.some((line) => line.includes("by ")));
    assert.match(program.stderr, /by write/);
    assert.equal(program.lines.at(-1), "[false,false]");
  });
}

test("Ctrl-Break closes a server", async (t) => {
  const program = start(t, "windows");
  program.send(...initialize(), call(1, "break"));
  const { code } = await program.exit();
  assert.equal(code, 0);
  assert.match(program.stderr, /stopped/);
});

test("a program that is told to end does so by itself, when its lifespan is over", async (t) => {
  const program = start(t, "windows", ["mounted"]);
  assert.deepEqual(await program.exit(), { code: 130, signal: null });
  assert.match(program.stderr, /stopped/);
});
