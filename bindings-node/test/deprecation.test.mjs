// What the specification has deprecated warns once, in the words of tests/deprecated.toml, and works on.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { connectMany, Question, Server } from "tricorn";
import { withClient } from "tricorn/testing";

const notes = {};
for (const part of readFileSync(new URL("../../tests/deprecated.toml", import.meta.url), "utf8").split(/^\[/m)) {
  const note = /^note = "(.*)"$/m.exec(part);
  if (note) notes[part.slice(0, part.indexOf("]"))] = note[1];
}

/** The warnings that came of it. Node shows them in the next turn. */
async function heard(run) {
  const said = [];
  const hear = (warning) => said.push([warning.name, warning.message]);
  process.on("warning", hear);
  try {
    await run();
    await turn();
  } finally {
    process.off("warning", hear);
  }
  assert.ok(said.every(([name]) => name === "DeprecationWarning"));
  return said.map(([, message]) => message).sort();
}

// Before anything has warned, as it would not do so again.
test("deprecation: what is switched off does not warn", async () => {
  const off = async () => {
    new Server("s").http({ sse: false });
    await withClient(new Server("s"), () => {}, { onLog: undefined });
  };
  assert.deepEqual(await heard(off), []);
});

test("deprecation: each name warns once in a process", async () => {
  const use = async () => {
    const app = new Server("s").tool("use", async (_, ctx) => {
      ctx.logger.info("x");
      ctx.log("info", "x");
      const { text } = await ctx.sample("x", { maxTokens: 1 });
      const roots = await ctx.listRoots();
      return `${text} ${roots.length}`;
    });
    app.onRootsChanged(() => {});
    const options = { revision: "2025-11-25", sampling: () => "fine", roots: ["/a"], onLog: () => {} };
    await withClient(
      app,
      async (client) => {
        assert.equal((await client.callTool("use")).text, "fine 1");
        client.setRoots(["/b"]);
        client.rootsChanged();
        await client.setLogLevel("info");
      },
      options,
    );
    app.http({ sse: true });
  };
  const { roots, sampling, logging, http_sse } = notes;
  const expected = [
    `listRoots: ${roots}`,
    `log: ${logging}`,
    `onRootsChanged: ${roots}`,
    `option "onLog": ${logging}`,
    `option "roots": ${roots}`,
    `option "sampling": ${sampling}`,
    `option "sse": ${http_sse}`,
    `rootsChanged: ${roots}`,
    `sample: ${sampling}`,
    `setLogLevel: ${logging}`,
    `setRoots: ${roots}`,
  ];
  assert.deepEqual(await heard(use), expected.sort());
  assert.deepEqual(await heard(use), []);
});

test("deprecation: options of what listens on a port warn, and a group by the names of a client", async () => {
  const paths = async () => {
    const app = new Server("s");
    const listening = { ssePath: "/a", sseMessagePath: "/b", onListening: () => app.close() };
    await app.serveHttp({ port: 0, sse: true, ...listening });
  };
  const { http_sse } = notes;
  assert.deepEqual(await heard(paths), [`option "sseMessagePath": ${http_sse}`, `option "ssePath": ${http_sse}`]);
  const group = await connectMany({ a: new Server("s") });
  assert.deepEqual(await heard(() => group.setLogLevel("info").then(() => Question.listRoots())), []);
  await group.close();
});
