// Children, descriptors and whatever else is alive: they are as without a server, and keep no program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { connect } from "tricorn";
import { call, initialize, path, start, within } from "./program.mjs";

const text = (answer) => answer.result.content[0].text;

test("children of a tool read nothing of the protocol", async (t) => {
  const program = start(t, "processes");
  program.send(...initialize(), call(0, "read"), call(1, "lines"), call(2, "read_sync"));
  for (let n = 3; n < 103; n++) program.send(call(n, n % 2 ? "lines" : "read"));
  for (let n = 0; n < 103; n++) assert.equal(text(await program.answer(n)), "0", `call ${n}`);
  program.child.stdin.end();
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
});

for (const alive of ["timer", "socket"]) {
  for (const [how, code] of [
    ["end of input", 0],
    ["SIGTERM", 0],
    ["SIGINT", 130],
  ]) {
    test(`a ${alive} does not keep a server after ${how}`, async (t) => {
      const program = start(t, "processes", [alive]);
      program.send(...initialize());
      await program.answer("init");
      if (how === "end of input") program.child.stdin.end();
      else program.child.kill(how);
      assert.deepEqual(await program.exit(), { code, signal: null });
      assert.match(program.stderr, /after run/);
    });
  }
}

/** A server whose stderr is `stderr`, and a way to ask it. */
function serve(t, stderr, stdout = "pipe") {
  const child = spawn(process.execPath, [path("processes")], { stdio: ["pipe", stdout, stderr] });
  t.after(() => child.kill("SIGKILL"));
  const lines = child.stdout && createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (...messages) => {
    for (const message of messages) child.stdin.write(`${JSON.stringify(message)}\n`);
    return JSON.parse((await within(lines.next(), "an answer")).value);
  };
  return { child, ask, exit: () => within(once(child, "exit"), "the end") };
}

for (const ending of ["input", "SIGTERM"]) {
  test(`a stderr that nobody reads keeps nothing (${ending})`, async (t) => {
    const { child, ask, exit } = serve(t, "pipe");
    child.stderr.pause();
    await ask(...initialize());
    for (let n = 0; n < 60; n++) assert.match(text(await ask(call(n, "noisy"))), /failed/);
    if (ending === "input") child.stdin.end();
    else child.kill(ending);
    assert.deepEqual(await exit(), [0, null]);
  });
}

test("a stderr that takes nothing ends nothing", { skip: process.platform !== "linux" }, async (t) => {
  const full = openSync("/dev/full", "w");
  t.after(() => closeSync(full));
  const { child, ask, exit } = serve(t, full);
  await ask(...initialize());
  for (let n = 0; n < 5; n++) assert.match(text(await ask(call(n, "noisy"))), /failed/);
  child.stdin.end();
  assert.deepEqual(await exit(), [0, null]);
});

test("a stdout that nobody reads ends the server", async (t) => {
  const { child, exit } = serve(t, "ignore");
  child.stdout.destroy();
  assert.deepEqual(await exit(), [0, null]);
});

test("a child has a standard error, however it is started", async () => {
  // Descriptors 0 to 2 are closed in Node where another program begins.
  const words = `[ -e /dev/fd/2 ] && echo "its words" >&2`;
  const script = `
    import { connect, connectMany } from "tricorn";
    const command = { command: "sh", args: ["-c", process.env.WORDS] };
    await connect(command).catch(() => {});
    await connect({ mcpServers: { one: command } }).catch(() => {});
    await (await connectMany({ mcpServers: { two: command } })).close();
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: new URL("..", import.meta.url),
    env: { ...process.env, WORDS: words },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  await within(once(child, "close"), "the end");
  assert.ok(said.match(/^its words$/gm)?.length >= 3, said);
});

test("a working directory that is not there is named", async () => {
  for (const cwd of ["/no/such/place", "/dev/null"]) {
    await assert.rejects(connect({ command: "sh", args: ["-c", "true"], cwd }), (error) => error.message.includes(cwd));
  }
});

for (const ending of ["SIGKILL", "SIGTERM", "process.exit", "throw"]) {
  test(`a client that did not close leaves no server: ${ending}`, async () => {
    // A server that ignores the end of its input, and holds standard error as long as it lives.
    const server = `
      read -r line
      id=$(printf %s "$line" | sed 's/.*"id":\\([0-9]*\\).*/\\1/')
      result='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
      printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$result"
      sleep 600 &
      wait`;
    const script = `
      import { connect } from "tricorn";
      const command = { command: "sh", args: ["-c", process.env.SERVER] };
      globalThis.client = await connect(command, { revision: "legacy", shutdownGrace: 600 });
      setTimeout(() => {}, 600_000);
      console.log("open");
      if (process.env.ENDING === "process.exit") process.exit(3);
      if (process.env.ENDING === "throw") throw new Error("as expected");
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: new URL("..", import.meta.url),
      env: { ...process.env, SERVER: server, ENDING: ending },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stderr.resume();
    const over = once(child, "close");
    await within(once(createInterface({ input: child.stdout }), "line"), "the connection");
    if (ending.startsWith("SIG")) child.kill(ending);
    // It comes when nobody holds the pipes any more.
    await within(over, "the end of both");
  });
}
