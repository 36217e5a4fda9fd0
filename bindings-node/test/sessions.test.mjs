// What the client of one session has that others have not.
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, MisuseError, Server, UnsupportedError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { deferred, legacy, within } from "./program.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

function unlocking() {
  return new Server("unlock", { capabilities: ["prompts", "resources"], state: { n: 1 } })
    .tool("unlock", ({ name = "secret" }, ctx) => {
      ctx.session
        .tool(name, { input: z.object({ a: z.int() }), description: "Own" }, ({ a }, inner) => a + inner.state.n)
        .resource("own://a", "contents")
        .resource("own://{id}/x", { complete: { id: ["7"] } }, ({ id }) => id)
        .prompt("own", { input: z.object({ to: z.string() }), complete: { to: ["Oslo"] } }, ({ to }) => `Hi ${to}`);
    })
    .tool("lock", (_, ctx) =>
      [
        ctx.session.removeTool("secret"),
        ctx.session.removeResource("own://a"),
        ctx.session.removeResourceTemplate("own://{id}/x"),
        ctx.session.removePrompt("own"),
        ctx.session.removePrompt("own"),
      ].join(),
    )
    .tool("hide", (_, ctx) => ctx.session.setEnabled("tool", "secret", false));
}

const names = (list) => list.map(({ name }) => name);

test("tools, resources and prompts of one session", async () => {
  const app = unlocking();
  const changed = deferred();
  const first = await connect(app, { ...legacy, onListChanged: (kind) => kind === "tool" && changed.resolve() });
  const second = await connect(app, legacy);
  await first.callTool("unlock");
  await within(changed.promise, "the change of the list");
  assert.deepEqual(names(await first.listTools()), ["unlock", "lock", "hide", "secret"]);
  assert.equal((await first.callTool("secret", { a: 1 })).text, "2");
  assert.match((await first.callTool("secret", { a: "x" })).text, /argument "a"/);
  assert.equal((await first.readResource("own://a")).text, "contents");
  assert.equal((await first.readResource("own://7/x")).text, "7");
  assert.equal((await first.getPrompt("own", { to: "Bo" })).messages[0].content.text, "Hi Bo");
  assert.deepEqual((await first.complete({ type: "ref/prompt", name: "own" }, "to", "")).values, ["Oslo"]);
  const ref = { type: "ref/resource", uri: "own://{id}/x" };
  assert.deepEqual((await first.complete(ref, "id", "")).values, ["7"]);

  assert.deepEqual(names(await second.listTools()), ["unlock", "lock", "hide"]);
  assert.deepEqual(await second.listPrompts(), []);
  await assert.rejects(second.callTool("secret", { a: 1 }), { code: -32602 });

  await first.callTool("hide");
  assert.deepEqual(names(await first.listTools()), ["unlock", "lock", "hide"]);
  assert.equal((await first.callTool("lock")).text, "true,true,true,true,false");
  await assert.rejects(first.callTool("secret", { a: 1 }), { code: -32602 });
  await first.close();
  await second.close();
});

test("what a session has is replaced, for it alone", async () => {
  const app = new Server("replace", { capabilities: ["prompts", "resources"] }).tool("put", ({ text }, ctx) => {
    ctx.session
      .tool("own", { replace: true }, () => text)
      .resource("own://a", { replace: true }, text)
      .resource("own://a/{id}", { replace: true }, () => text)
      .prompt("own", { replace: true }, () => text);
  });
  const [first, second] = [await connect(app, legacy), await connect(app, legacy)];
  await second.callTool("put", { text: "other" });
  for (const text of ["old", "new"]) {
    assert.equal((await first.callTool("put", { text })).isError, false);
    assert.deepEqual(names(await first.listTools()), ["put", "own"]);
    assert.equal((await first.callTool("own")).text, text);
    assert.equal((await first.readResource("own://a")).text, text);
    assert.equal((await first.readResource("own://a/1")).text, text);
    assert.equal((await first.getPrompt("own")).messages[0].content.text, text);
  }
  assert.equal((await second.callTool("own")).text, "other");
  await first.close();
  await second.close();
});

test("removing from a session, where there is none, says so", async () => {
  const app = new Server("modern").tool("lock", (_, ctx) => ctx.session.removeTool("x"));
  const text = (client) => client.callTool("lock").then((result) => result.text);
  assert.match(await withClient(app, text, { revision: "2026-07-28" }), /session/);
  assert.equal(await withClient(app, text, legacy), "false");
});

test("what cannot be added is refused", async () => {
  let error;
  const attempt = (add) => (_, ctx) => {
    try {
      add(ctx.session);
    } catch (caught) {
      error = caught;
    }
  };
  const app = new Server("refused")
    .tool(
      "prompt",
      attempt((session) => session.prompt("p", () => "")),
    )
    .tool(
      "taken",
      attempt((session) => session.tool("prompt", () => "")),
    )
    .tool(
      "none",
      attempt((session) => session.tool("none")),
    );
  await withClient(
    app,
    async (client) => {
      await client.callTool("prompt");
      assert.ok(error instanceof UnsupportedError && /"capabilities"/.test(error.message));
      await client.callTool("none");
      assert.ok(error instanceof MisuseError);
      assert.equal((await client.listTools()).length, 3);
    },
    legacy,
  );
  await withClient(app, (client) => client.callTool("taken"), { revision: "2026-07-28" });
  assert.ok(error instanceof UnsupportedError);
  assert.throws(() => new Server("x", { capabilities: ["sampling"] }), MisuseError);
});

test("what a session had is let go with it", async () => {
  const kept = [];
  const add = (session, name) => {
    const big = () => "big";
    kept.push(new WeakRef(big));
    session.tool(name, big);
  };
  let last;
  const app = new Server("gone").tool("add", (_, ctx) => {
    last = ctx.session;
    add(last, "big");
    assert.throws(() => add(last, "big"), MisuseError);
  });
  for (let round = 0; round < 3; round++) await withClient(app, (client) => client.callTool("add"), legacy);
  assert.throws(() => add(last, "late"), /not running any more/);
  const gone = async () => {
    for (gc(); kept.some((ref) => ref.deref()); gc()) await turn();
  };
  await within(gone(), "the end of what was kept");
});

test("a file is no directory, and a directory no file", () => {
  const app = new Server("files");
  assert.throws(() => app.addFile(tmpdir(), "file:///tmp"), MisuseError);
  const file = new URL(import.meta.url).pathname;
  assert.throws(() => app.addDirectory(file, "file:///x"), MisuseError);
  assert.throws(() => app.addDirectory(join(tmpdir(), "no", "such"), "file:///x"), MisuseError);
  app.addFile(file, "file:///this");
});

test("sessions: what the protocol knows nothing of is declared", async () => {
  const ours = { experimental: { ours: { aDepth: 3 } }, "com.example": { x: 1 } };
  await withClient(new Server("test", { capabilities: { ...ours, prompts: {} } }), async ({ capabilities }) => {
    assert.deepEqual({ ...capabilities, ...ours }, capabilities);
    assert.ok(capabilities.prompts);
  });
  assert.throws(() => new Server("test", { capabilities: { promts: {} } }), /promts/);
});
