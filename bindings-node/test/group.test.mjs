// Many servers as one.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, ClientGroup, connectMany, MisuseError, Server, TricornError } from "tricorn";
import { z } from "zod";
import { deferred, legacy, path, within } from "./program.mjs";

function maps() {
  return new Server("maps")
    .tool("find", ({ city }) => `the map of ${city}`)
    .tool("zoom", () => "closer")
    .resource("maps://{city}", { complete: { city: ["Bonn"] } }, ({ city }) => city)
    .prompt("trip", { input: z.object({ to: z.string() }), complete: { to: ["Oslo"] } }, ({ to }) => `Go to ${to}.`);
}

function files() {
  return new Server("files").tool("find", () => "a file").resource("file:///a", "contents of a");
}

/** A group that is closed after the test. */
async function opened(t, servers, options) {
  const group = await connectMany(servers, options);
  t.after(() => group[Symbol.asyncDispose]());
  return group;
}

test("tools, resources and prompts of all servers", async (t) => {
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const group = await opened(t, { maps: maps(), files: files() }, { revision });
    assert.ok(group instanceof ClientGroup);
    assert.deepEqual([group.names, group.failures.size], [["maps", "files"], 0]);
    const named = (list) => list.map(({ server, name }) => `${server}: ${name}`);
    const tools = await group.listTools();
    assert.deepEqual(named(tools), ["maps: maps_find", "maps: zoom", "files: files_find"]);
    assert.ok(tools.every(({ inputSchema }) => inputSchema.type === "object"));
    assert.equal((await group.callTool("maps_find", { city: "Bonn" })).text, "the map of Bonn");
    assert.equal((await group.callTool("files_find")).text, "a file");
    assert.equal((await group.callTool("zoom")).text, "closer");
    assert.equal((await group.readResource("file:///a")).text, "contents of a");
    assert.equal((await group.readResource(new URL("maps://Rome"))).text, "Rome");
    assert.equal((await group.getPrompt("trip", { to: "Ulm" })).messages[0].content.text, "Go to Ulm.");
    assert.deepEqual((await group.complete({ type: "ref/prompt", name: "trip" }, "to", "O")).values, ["Oslo"]);
    const ref = { type: "ref/resource", uri: "maps://{city}" };
    assert.deepEqual((await group.complete(ref, "city", "B")).values, ["Bonn"]);
    const found = [];
    for await (const { server, uri } of group.resources()) found.push([server, uri]);
    for await (const { server, uriTemplate } of group.resourceTemplates()) found.push([server, uriTemplate]);
    for await (const { server, name } of group.prompts()) found.push([server, name]);
    for await (const { server } of group.tools()) found.push(server);
    assert.deepEqual(found, [
      ["files", "file:///a"],
      ["maps", "maps://{city}"],
      ["maps", "trip"],
      ...["maps", "maps", "files"],
    ]);
    const { entries, failures } = await group.list("tool");
    assert.deepEqual([entries[0].name, entries[0].definition.name, failures.size], ["maps_find", "find", 0]);
    await assert.rejects(group.callTool("fnd"), MisuseError);
    assert.ok(group.client("maps") instanceof Client);
    assert.equal(group.client("maps").protocolVersion, revision);
    assert.equal(group.client("none"), undefined);
  }
});

test("a wrong target is a failure of its server, and all keep their order", async () => {
  const group = await connectMany({ wrong: { file: "/no/such/file.json" }, maps: maps() });
  assert.deepEqual(group.names, ["wrong", "maps"]);
  assert.equal(group.failures.get("wrong")?.kind, "misuse");
  assert.equal((await group.callTool("zoom")).text, "closer");
  await group.close();
});

test("a server that fails stops nothing", async () => {
  const servers = { maps: maps(), broken: { command: "/no/such/program" } };
  const group = await connectMany(servers, { prefix: "always" });
  assert.deepEqual(group.names, ["maps", "broken"]);
  const failure = group.failures.get("broken");
  assert.ok(failure instanceof TricornError);
  assert.equal(failure.kind, "transport");
  assert.equal(group.client("broken"), undefined);
  assert.equal((await group.callTool("maps_zoom")).text, "closer");
  await assert.rejects(group.reconnect("broken"), { kind: "transport" });
  await group.close();
  await group.close();
});

test("servers come and go", async (t) => {
  const heard = deferred();
  const group = await opened(t, {}, { onListChanged: heard.resolve });
  assert.deepEqual(await group.listTools(), []);
  const app = files();
  const client = await group.add("files", app);
  assert.equal((await client.callTool("find")).text, "a file");
  assert.equal((await group.callTool("find")).text, "a file");
  await assert.rejects(group.add("files", files()), MisuseError);
  assert.equal(await (await group.reconnect("files")).callTool("find").then(({ text }) => text), "a file");
  app.tool("late", () => "");
  assert.equal(await within(heard.promise, "the change"), "tool");
  await client.close();
  await assert.rejects(client.ping());
  assert.equal((await (await group.reconnect("files")).callTool("find")).text, "a file");
  assert.equal(await group.remove("files"), true);
  assert.equal(await group.remove("files"), false);
  assert.deepEqual([group.names, group.client("files")], [[], undefined]);
  await assert.rejects(group.callTool("find"), MisuseError);
});

test("each server is heard and answered by its own functions", async (t) => {
  const asks = new Server("asks").tool("ask", async (_, ctx) => {
    ctx.logger.warn("asking");
    return (await ctx.sample("who?", { maxTokens: 1 })).text;
  });
  const logged = deferred();
  const servers = { one: asks, two: asks };
  const calls = [];
  const group = await opened(t, servers, {
    ...legacy,
    sampling: () => "anybody",
    middleware: [
      (request, context, next) => {
        calls.push(request.method);
        return next(request, context);
      },
    ],
    forServer: (name) => (name === "one" ? { sampling: () => name, onLog: ({ data }) => logged.resolve(data) } : {}),
  });
  assert.equal((await group.setLogLevel("info")).size, 0);
  assert.equal((await group.callTool("one_ask")).text, "one");
  assert.equal((await group.callTool("two_ask")).text, "anybody");
  assert.equal(await within(logged.promise, "the log"), "asking");
  assert.equal(calls.filter((method) => method === "tools/call").length, 2);
});

test("a policy for all servers of a group, and one for some", async (t) => {
  const asks = () => new Server("asks").tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  class Policy {
    constructor(name) {
      this.name = name;
    }
    sampling() {
      return this.name;
    }
  }
  const group = await opened(
    t,
    { a: asks(), b: asks(), c: asks() },
    {
      ...legacy,
      policy: new Policy("all"),
      forServer: (name) => ({ b: { policy: new Policy("some") }, c: { sampling: () => "one" } })[name] ?? {},
    },
  );
  const said = await Promise.all(group.names.map(async (name) => (await group.client(name).callTool("ask")).text));
  assert.deepEqual(said, ["all", "some", "one"]);
  await assert.rejects(connectMany({ a: asks() }, { policy: {} }), MisuseError);
  await assert.rejects(connectMany({ a: asks() }, { forServer: () => ({ policy: {} }) }), MisuseError);
});

test("all programs of an mcp.json", async (t) => {
  const entry = { command: process.execPath, args: [path("alive")] };
  const config = { mcpServers: { a: entry, b: entry, off: { ...entry, disabled: true } } };
  const file = join(tmpdir(), `tricorn-group-${process.pid}.json`);
  await writeFile(file, JSON.stringify(config));
  for (const servers of [file, config]) {
    const lines = [];
    const group = await opened(t, servers, {
      forServer: (name) => ({ onStderr: (line) => lines.push(`${name} ${line}`) }),
    });
    assert.deepEqual([group.names, group.failures.size], [["a", "b"], 0]);
    await group.client("a").ping();
    assert.deepEqual(lines.sort(), ["a started", "b started"]);
  }
});

test("what is no group is refused", async () => {
  await assert.rejects(connectMany("/no/such/mcp.json"), MisuseError);
  await assert.rejects(connectMany({}, { prefx: "always" }), /^MisuseError: group options: .*did you mean "prefix"\?/);
  await assert.rejects(connectMany({}, { server: "one" }), /"server" is for clients of one server/);
  await assert.rejects(connectMany({}, { prefix: "never" }), /"prefix"/);
  await assert.rejects(connectMany({}, { forServer: {} }), MisuseError);
});
