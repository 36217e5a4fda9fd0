// Whatever a peer says besides what is known reaches the program, and what a program says besides goes out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { asking, both, legacy } from "./program.mjs";

const meta = (of) => ({ "com.example/of": of });

test("a handler gets all of what its client answers", async () => {
  const ask = async (ctx) => [
    await ctx.elicit("?", { type: "object", properties: {} }),
    await ctx.elicitUrl("?", "https://example.com", "1"),
    await ctx.sample("?", { maxTokens: 1 }),
    await ctx.listRoots(),
  ];
  const [form, page, said, roots] = await asking(ask, {
    elicitation: {
      form: () => ({ action: "accept", content: {}, _meta: meta("form") }),
      url: () => ({ action: "decline", _meta: meta("page") }),
    },
    sampling: () => ({ content: "hi", model: "m", _meta: meta("model"), novelty: 2 }),
    roots: () => ({ roots: ["/a"], _meta: meta("roots"), novelty: 3 }),
  });
  assert.deepEqual(form, { action: "accept", content: {} });
  assert.deepEqual([form.meta, form.raw.action], [meta("form"), "accept"]);
  assert.deepEqual(page, { action: "decline" });
  assert.deepEqual(page.meta, meta("page"));
  assert.deepEqual([said.meta, said.raw.novelty], [meta("model"), 2]);
  assert.deepEqual(roots, [{ uri: "file:///a" }]);
  assert.deepEqual([roots.meta, roots.raw.novelty], [meta("roots"), 3]);
  assert.deepEqual(Object.keys(Object.getOwnPropertyDescriptors(roots.raw.roots)), ["0", "length"]);
});

function says() {
  const list = () => ({ resources: [{ uri: "x://b", name: "b" }], _meta: meta("list"), novelty: 5 });
  const complete = { x: () => ({ completion: { values: ["one"], total: 7 }, _meta: meta("completion") }) };
  return new Server("says", { tasks: true })
    .resource("x://a", () => ({ contents: [{ uri: "x://a", text: "text" }], _meta: meta("resource") }))
    .prompt("p", { arguments: [{ name: "x" }], complete }, () => ({
      messages: [{ role: "user", content: { type: "text", text: "hi" } }],
      _meta: meta("prompt"),
    }))
    .tool("t", { taskSupport: "optional" }, () => "done")
    .setSource("resource", { list });
}

test("what a server says besides goes out", async () => {
  for (const revision of ["2024-11-05", "2025-11-25", "2026-07-28"]) {
    const use = async (client) => {
      assert.ok(client.initializeResult.capabilities.resources);
      const { nextCursor } = await client.listResourcesPage();
      const page = await client.listResourcesPage(nextCursor);
      assert.deepEqual([page.resources[0].uri, page.novelty], ["x://b", 5]);
      assert.equal(page._meta["com.example/of"], "list");
      assert.equal((await client.readResource("x://a")).meta["com.example/of"], "resource");
      assert.equal((await client.getPrompt("p"))._meta["com.example/of"], "prompt");
      const found = await client.complete({ type: "ref/prompt", name: "p" }, "x", "");
      assert.deepEqual(found, { values: ["one"], total: 7, hasMore: true });
      assert.equal(found.meta["com.example/of"], "completion");
      assert.deepEqual(found.raw.completion, { values: ["one"], total: 7, hasMore: true });
    };
    await withClient(says(), use, { revision });
  }
});

test("what a part of a result says of its own stays in the whole", async () => {
  let given;
  const app = says().middleware((request, context, next) =>
    request.method === "completion/complete" ? given : next(request, context),
  );
  await both(app, async (client) => {
    given = { completion: { values: ["one"], meta: "own", raw: { a: 1 } }, _meta: meta("completion") };
    const complete = () => client.complete({ type: "ref/prompt", name: "p" }, "x", "");
    const found = await complete();
    assert.deepEqual(found, { values: ["one"] });
    assert.equal(JSON.stringify(found), '{"values":["one"]}');
    assert.equal(found.meta["com.example/of"], "completion");
    assert.deepEqual(found.raw.completion, given.completion);
    for (given of [{ completion: "one" }, {}]) await assert.rejects(complete(), { name: "PeerMisbehavedError" });
  });
});

test("a task knows how its call was answered", async () => {
  const use = async (client) => {
    const task = await client.callToolTask("t");
    assert.equal(task.created.task.taskId, task.id);
    assert.equal(client.task(task.id).created, undefined);
  };
  await withClient(says(), use, legacy);
});
