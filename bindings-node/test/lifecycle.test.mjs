// How programs end: in order, by force, early, in workers. Never hanging, never crashing, never losing an answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, initialize, start } from "./program.mjs";

const numbers = (count) => Array.from({ length: count }, (_, n) => n);

test("at the end of stdin every call is still answered, then the program ends by itself", async (t) => {
  const program = start(t, "server");
  program.send(...initialize(), ...numbers(200).map((n) => call(n, "later", { n })));
  program.child.stdin.end();
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  const answered = new Map(program.lines.map((line) => JSON.parse(line)).map((message) => [message.id, message]));
  for (const n of numbers(200)) assert.equal(answered.get(n)?.result.content[0].text, `later ${n}`);
  assert.match(program.stderr, /served/);
});

test("stdin ending while a handler never does ends the program as well", async (t) => {
  const program = start(t, "server");
  program.send(...initialize(), call(1, "forever"), call(2, "add", { a: 1 }));
  await program.says("forever started");
  await program.answer(2);
  program.child.stdin.end();
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /forever saw AbortError, cancelled true/);
});

test("process.exit in the middle of the work loses no answer that was already given", async (t) => {
  const program = start(t, "server");
  program.send(...initialize());
  await program.answer("init");
  program.send(...numbers(500).map((n) => call(n, "exit_at", { n: 250, code: 7 })));
  assert.deepEqual(await program.exit(), { code: 7, signal: null });
  const answers = program.lines.map((line) => JSON.parse(line)).filter((message) => typeof message.id === "number");
  assert.equal(answers.length, 249);
});

for (const [signal, code] of [
  ["SIGTERM", 0],
  ["SIGINT", 130],
]) {
  test(`${signal} ends a server with work in hand, in order`, async (t) => {
    const program = start(t, "server");
    program.send(...initialize(), call(1, "forever"));
    await program.says("forever started");
    program.child.kill(signal);
    assert.deepEqual(await program.exit(), { code, signal: null });
    assert.match(program.stderr, /forever saw AbortError/);
    assert.match(program.stderr, /served/);
  });

  test(`${signal} ends a server whose handler blocks the event loop`, async (t) => {
    const program = start(t, "server");
    program.send(...initialize(), call(1, "blocks"));
    await program.says("blocks started");
    program.child.kill(signal);
    assert.deepEqual(await program.exit(), { code: null, signal: "SIGKILL" });
    assert.match(program.stderr, /blocks the event loop/);
  });

  test(`${signal} ends a server whose handler takes no notice`, async (t) => {
    const program = start(t, "server");
    program.send(...initialize(), call(1, "stubborn"));
    await program.says("stubborn started");
    program.child.kill(signal);
    assert.deepEqual(await program.exit(), { code, signal: null });
    assert.match(program.stderr, /served/);
  });
}

for (const stream of ["stdin", "stdout"]) {
  test(`the end of ${stream} ends a server whose handler blocks the event loop`, async (t) => {
    const program = start(t, "server");
    program.send(...initialize(), call(1, "blocks"));
    await program.says("blocks started");
    if (stream === "stdin") program.child.stdin.end();
    else {
      program.child.stdout.destroy();
      // Something has to be written to find out.
      program.send({ jsonrpc: "2.0", id: 2, method: "ping" });
    }
    assert.deepEqual(await program.exit(), { code: null, signal: "SIGKILL" });
    assert.match(program.stderr, /blocks the event loop/);
  });
}

for (const tool of ["reject", "throw_later"]) {
  test(`an error nobody handles ends a server the way it ends any program (${tool})`, async (t) => {
    const program = start(t, "server");
    program.send(...initialize(), call(1, tool), ...numbers(20).map((n) => call(n + 2, "later", { n })));
    assert.deepEqual(await program.exit(), { code: 1, signal: null });
    assert.match(program.stderr, /nobody handles this|out of nowhere/);
    assert.equal((await program.answer(1)).result.isError, undefined);
  });
}

test("a cancelled call aborts its signal and is not answered", async (t) => {
  const program = start(t, "server");
  program.send(...initialize(), call(1, "forever"));
  await program.says("forever started");
  program.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1, reason: "no need" } });
  await program.says("forever saw AbortError, cancelled true");
  program.send(call(2, "add", { a: 1 }));
  await program.answer(2);
  program.child.stdin.end();
  await program.exit();
  assert.equal(
    program.lines.map((line) => JSON.parse(line)).find((message) => message.id === 1),
    undefined,
  );
});

test("what a program prints goes to stderr while stdout carries the protocol, with one warning", async (t) => {
  const program = start(t, "server");
  program.send(...initialize(), call(1, "print", { text: "oops" }), call(2, "print", { text: "oops" }));
  await program.answer(1);
  await program.answer(2);
  program.child.stdin.end();
  await program.exit();
  for (const line of program.lines) assert.equal(JSON.parse(line).jsonrpc, "2.0");
  assert.equal(program.stderr.match(/^oops$/gm).length, 2);
  assert.equal(program.stderr.match(/^oops again$/gm).length, 2);
  assert.equal(program.stderr.match(/stdout belongs to the protocol/g).length, 1);
});

test("handlers run where serving began: AsyncLocalStorage holds", async (t) => {
  const program = start(t, "server");
  program.send(...initialize(), call(1, "where"));
  const { result } = await program.answer(1);
  assert.equal(result.content[0].text, "in the scope of serve");
});

for (const kind of ["server", "client"]) {
  test(`an idle ${kind} does not keep a program alive`, async (t) => {
    const program = start(t, "idle", [kind]);
    assert.deepEqual(await program.exit(), { code: 0, signal: null });
    assert.match(program.stderr, kind === "client" ? /idle hello later 1/ : /idle idle/);
  });
}

test("a client that hears notifications keeps it alive until it is closed", async (t) => {
  const program = start(t, "listening");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /heard tool/);
  const other = start(t, "listening", ["unref"]);
  assert.deepEqual(await other.exit(), { code: 0, signal: null });
  assert.match(other.stderr, /unref/);
});

test("a pending call does keep it alive", async (t) => {
  const program = start(t, "pending");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /answered: through the gate/);
});

test("workers each have their own, and may be ended at any moment", async (t) => {
  const program = start(t, "workers");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /workers 5050\/0 5050\/0 5050\/0, ended 1, main 2/);
});

test("servers nobody refers to are collected", async (t) => {
  const program = start(t, "collect", [], ["--expose-gc"]);
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  assert.match(program.stderr, /collected/);
});
