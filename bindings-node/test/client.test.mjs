// The client: what it reads of a target, how calls end, what is cancelled where.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CancelledError,
  ClosedError,
  connect,
  MisuseError,
  PeerMisbehavedError,
  RpcError,
  Server,
  TimeoutError,
  ToolError,
  TransportError,
  TricornError,
} from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";
import { path, within } from "./program.mjs";

const node = process.execPath;
const program = { command: node, args: [path("server")], stderr: "discard" };

/** A server with a tool that waits until it is cancelled, and a promise of the moment each happens. */
function waiting() {
  const started = deferred();
  const cancelled = deferred();
  const app = new Server("waiting").tool("wait", async (_, ctx) => {
    started.resolve();
    if (!ctx.signal.aborted) await once(ctx.signal, "abort");
    cancelled.resolve(ctx.signal.reason);
    throw ctx.signal.reason;
  });
  return { app, started: started.promise, cancelled: cancelled.promise };
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test("an aborted call rejects with the signal's reason and is cancelled in the handler", async () => {
  const { app, started, cancelled } = waiting();
  await withClient(app, async (client) => {
    const controller = new AbortController();
    const call = client.callTool("wait", {}, { signal: controller.signal });
    await within(started, "the start");
    controller.abort(new Error("changed my mind"));
    await assert.rejects(call, /changed my mind/);
    assert.equal((await within(cancelled, "the cancel")).name, "AbortError");
    // An aborted signal does not even start one.
    await assert.rejects(client.callTool("wait", {}, { signal: controller.signal }), /changed my mind/);
  });
  assert.deepEqual(bridgeMetrics(), { queued: 0, calls: 0, ops: 0, dropped: 0 });
});

test("the same over a pipe", async (t) => {
  const lines = [];
  const said = deferred();
  const stderr = (line) => {
    lines.push(line);
    if (line === "forever started") controller.abort();
    if (line.startsWith("forever saw")) said.resolve(line);
  };
  const controller = new AbortController();
  const client = await connect({ ...program, stderr });
  t.after(() => client.close());
  await assert.rejects(client.callTool("forever", {}, { signal: controller.signal }), { name: "AbortError" });
  assert.equal(await within(said.promise, "the cancel"), "forever saw AbortError, cancelled true");
});

test("stderr is heard whichever way the program is named", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tricorn-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "mcp.json");
  const silent = { command: node, args: [path("server")] };
  writeFileSync(file, JSON.stringify({ servers: { one: { ...silent, disabled: false } } }));
  for (const target of [`'${node}' '${path("server")}'`, silent, file, { mcpServers: { one: silent } }]) {
    const said = deferred();
    const controller = new AbortController();
    const onStderr = (line) => {
      if (line === "forever started") controller.abort();
      if (line.startsWith("forever saw")) said.resolve(line);
    };
    const client = await connect(target, { onStderr });
    await assert.rejects(client.callTool("forever", {}, { signal: controller.signal }), { name: "AbortError" });
    assert.equal(await within(said.promise, "the cancel"), "forever saw AbortError, cancelled true");
    await client.close();
  }
});

test("a timeout cancels too, and progress keeps a call alive", async () => {
  const { app, cancelled } = waiting();
  app.tool("slow", async (_, ctx) => {
    for (let n = 0; n < 8; n++) {
      ctx.progress(n);
      await sleep(100);
    }
    return "done";
  });
  await withClient(app, async (client) => {
    await assert.rejects(client.callTool("wait", {}, { timeout: 50 }), TimeoutError);
    await within(cancelled, "the cancel");
    // Longer in all than the timeout, but never silent for that long.
    const { text } = await client.callTool("slow", {}, { timeout: 600, onProgress: () => {} });
    assert.equal(text, "done");
    await assert.rejects(
      client.callTool("slow", {}, { timeout: 600, maxTimeout: 200, onProgress: () => {} }),
      TimeoutError,
    );
  });
});

test("close rejects what is pending and can be repeated", async () => {
  const { app, started } = waiting();
  const client = await connect(app);
  const call = client.callTool("wait");
  await within(started, "the start");
  const rejected = assert.rejects(call, (error) => error instanceof ClosedError || error instanceof CancelledError);
  await Promise.all([client.close(), client.close()]);
  await within(rejected, "the rejection");
  await client.close();
  await assert.rejects(client.callTool("wait"), ClosedError);
});

test("lists are read page by page", async () => {
  const app = new Server("pages", { pageSize: 2 });
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) app.tool(name, () => name);
  await withClient(app, async (client) => {
    assert.deepEqual(
      (await client.listTools()).map((tool) => tool.name),
      names,
    );
    const first = await client.listToolsPage();
    assert.equal(first.tools.length, 2);
    const second = await client.listToolsPage(first.nextCursor);
    assert.deepEqual(
      second.tools.map((tool) => tool.name),
      ["c", "d"],
    );
    await assert.rejects(client.listToolsPage("not a cursor"), RpcError);
  });
});

test("what was negotiated, in every revision", async () => {
  const app = new Server("negotiated", { title: "N", instructions: "be nice" }).tool("f", () => "f");
  for (const revision of [undefined, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
    await withClient(
      app,
      async (client) => {
        assert.equal(client.era, revision ? "legacy" : "modern");
        if (revision) assert.equal(client.protocolVersion, revision);
        assert.equal(client.serverInfo.name, "negotiated");
        assert.equal(client.instructions, "be nice");
        assert.ok(client.capabilities.tools);
        assert.equal(client.transport, "memory");
        await client.ping();
        assert.equal((await client.callTool("f")).text, "f");
      },
      revision ? { revision } : {},
    );
  }
});

test("targets: a command line, an object, an mcp.json", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tricorn "));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "mcp.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { one: program, two: { url: "http://127.0.0.1:9/mcp" } } }));
  const targets = [
    [`'${node}' '${path("server")}'`],
    [program],
    [file, { server: "one" }],
    [{ mcpServers: { only: program } }],
  ];
  for (const [target, options] of targets) {
    const client = await connect(target, options);
    assert.equal((await client.callTool("add", { a: 1 })).text, "2");
    assert.equal(client.serverInfo.name, "misbehaving");
    assert.equal(client.transport, "stdio");
    await client.close();
  }
  await assert.rejects(connect({ mcpServers: { a: { ...program, stderr: () => {} } } }), /"a": stderr.*onStderr/);
  await assert.rejects(connect(program, { server: "one" }), /server: only a configuration file/);
  await assert.rejects(connect(file), /"server".*"one", "two"/);
  await assert.rejects(connect(file, { server: "three" }), /no server "three"/);
  await assert.rejects(connect(join(tmpdir(), "none.json")), MisuseError);
  await assert.rejects(connect({ command: "tricorn-no-such-program" }), TransportError);
  await assert.rejects(connect("http://127.0.0.1:9/mcp"), TransportError);
  for (const wrong of [123, undefined, null, true]) {
    await assert.rejects(connect(wrong), { name: "MisuseError", message: /^cannot connect to .*: expected a URL/ });
  }
  for (const [text, scheme] of [
    ["htps://x/mcp", "htps"],
    ["ftp://x/mcp.json", "ftp"],
    [new URL("ws://x/mcp"), "ws"],
  ]) {
    await assert.rejects(connect(text), {
      name: "MisuseError",
      message: new RegExp(`the scheme is "${scheme}", expected http://, https:// or unix:`),
    });
  }
  await assert.rejects(connect(program, { revison: "x" }), /revison.*revision/);
});

test("errors are of their class, know their kind and show where the call was made", async () => {
  await withClient(
    new Server("errors").tool("known", () => ""),
    async (client) => {
      const error = await client.callTool("unknown").then(assert.fail, (error) => error);
      assert.ok(error instanceof RpcError && error instanceof TricornError && error instanceof Error);
      assert.equal(error.name, "RpcError");
      assert.equal(error.kind, "rpc");
      assert.equal(error.code, -32602);
      assert.match(error.stack, /client\.test\.mjs/);
    },
  );
});

test("a listener that throws is an uncaught exception, and the call goes on", async (t) => {
  const app = new Server("listener").tool("f", async (_, ctx) => {
    ctx.progress(1);
    return "answered";
  });
  const thrown = deferred();
  const seen = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.once("uncaughtException", thrown.resolve);
  t.after(() => {
    for (const listener of seen) process.on("uncaughtException", listener);
  });
  await withClient(app, async (client) => {
    const onProgress = () => {
      throw new Error("from the listener");
    };
    assert.equal((await client.callTool("f", {}, { onProgress })).text, "answered");
    assert.equal((await within(thrown.promise, "the exception")).message, "from the listener");
  });
});

test("a batch that cannot be read is an uncaught exception, and the next one comes", async (t) => {
  const thrown = deferred();
  const seen = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.once("uncaughtException", thrown.resolve);
  t.after(() => {
    for (const listener of seen) process.on("uncaughtException", listener);
  });
  await withClient(
    new Server("unreadable").tool("f", () => "answered"),
    async (client) => {
      const controller = new AbortController();
      const parse = t.mock.method(JSON, "parse", () => {
        parse.mock.restore();
        throw new Error("too long");
      });
      const lost = client.callTool("f", {}, { signal: controller.signal });
      assert.equal((await within(thrown.promise, "the exception")).message, "too long");
      controller.abort();
      await assert.rejects(lost, { name: "AbortError" });
      assert.equal((await within(client.callTool("f"), "the next answer")).text, "answered");
    },
  );
});

test("onError hears of a result that does not fit", async () => {
  let told;
  const heard = new Promise((resolve) => {
    told = (error, name) => resolve([error, name]);
  });
  const outputSchema = { type: "object", required: ["b"] };
  const app = new Server("wrong", { onError: told }).tool("wrong", { outputSchema }, () => ({ a: 1 }));
  await withClient(app, async (client) => {
    const result = await client.callTool("wrong");
    assert.ok(result.isError);
    assert.match(result.text, /outputSchema/);
    const [error, name] = await within(heard, "the error");
    assert.equal(name, "wrong");
    assert.ok(error instanceof MisuseError);
    assert.match(error.message, /^the result does not fit.*"b"/);
  });
});

test("onError that throws stops nothing", async (t) => {
  const thrown = [];
  const seen = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  const onUncaught = (error) => thrown.push(error.message);
  process.on("uncaughtException", onUncaught);
  t.after(() => {
    process.off("uncaughtException", onUncaught);
    for (const listener of seen) process.on("uncaughtException", listener);
  });
  const onError = (error) => {
    throw new Error(`about ${error.message}`);
  };
  const fail = () => {
    throw new Error("the tool");
  };
  const app = new Server("failing", { onError }).tool("fail", fail).tool("work", () => "worked");
  await withClient(app, async (client) => {
    for (let round = 0; round < 3; round++) {
      const names = ["fail", "work", "fail", "work"];
      const answers = await within(Promise.all(names.map((name) => client.callTool(name))), "the answers");
      assert.deepEqual(
        answers.map(({ text }) => text),
        ['tool "fail" failed: Error', "worked", 'tool "fail" failed: Error', "worked"],
      );
    }
  });
  await sleep(10);
  assert.deepEqual(thrown, Array(6).fill("about the tool"));
});

test("a result read with a schema", async () => {
  const app = new Server("typed")
    .tool("sum", { output: z.object({ sum: z.string() }) }, () => ({ sum: "3" }))
    .tool("count", { output: z.int() }, () => 3)
    .tool("text", () => "no structure")
    .tool("json", () => '{"n":1}')
    .tool("date", () => "2020-01-02")
    .tool("fail", () => {
      throw new ToolError("no such city");
    });
  for (const revision of ["2026-07-28", "2025-06-18"]) {
    await withClient(
      app,
      async (client) => {
        const sum = await client.callTool("sum");
        assert.deepEqual(await sum.to(z.object({ sum: z.string().transform(Number) })), { sum: 3 });
        assert.deepEqual(await sum.to(z.object({ sum: z.string().refine(async () => true) })), { sum: "3" });
        await assert.rejects(sum.to(z.object({ sum: z.boolean() })), (error) => {
          assert.ok(error instanceof PeerMisbehavedError);
          assert.match(error.message, /^structuredContent: member "sum": /);
          return true;
        });
        // The older revision wraps it: {"result": 3}.
        const count = await client.callTool("count");
        assert.deepEqual(count.structured, revision === "2025-06-18" ? { result: 3 } : 3);
        assert.equal(await count.to(z.int()), 3);
        await assert.rejects(count.to(z.string()), /^PeerMisbehavedError: structuredContent: value: /);
        assert.equal(await (await client.callTool("text")).to(z.string()), "no structure");
        assert.deepEqual(await (await client.callTool("json")).to(z.object({ n: z.number() })), { n: 1 });
        assert.equal(await (await client.callTool("json")).to(z.string()), '{"n":1}');
        assert.deepEqual(await (await client.callTool("date")).to(z.coerce.date()), new Date("2020-01-02"));
        const wrong = /^PeerMisbehavedError: the result has no structuredContent, and its text: value: /;
        await assert.rejects((await client.callTool("text")).to(z.int()), wrong);
        await assert.rejects((await client.callTool("fail")).to(z.string()), new ToolError("no such city"));
      },
      { revision },
    );
  }
  const other = new Server("other").tool("more", () => ({ result: 3, unit: "m" }));
  await withClient(other, async (client) => {
    await assert.rejects((await client.callTool("more")).to(z.int()), PeerMisbehavedError);
  });
});

test("null, 0 and Infinity are no limit", async () => {
  const app = new Server("restful").tool("nap", async () => {
    await sleep(300);
    return "rested";
  });
  for (const none of [null, 0, Number.POSITIVE_INFINITY]) {
    const impatient = await connect(app, { requestTimeout: 50 });
    await assert.rejects(impatient.callTool("nap"), TimeoutError);
    assert.equal((await impatient.callTool("nap", {}, { timeout: none, maxTimeout: none })).text, "rested");
    await impatient.close();
    const patient = await connect(app, { requestTimeout: none });
    assert.equal((await patient.callTool("nap")).text, "rested");
    await patient.close();
  }
});

test("lists without end", async () => {
  const run = (next) => ({ command: node, args: [path("endless"), next] });
  for (const [next, reason] of [
    ["circle", /^tools\/list never ends: the cursor "b" came twice$/],
    ["on", /^tools\/list never ends: there are more than 1000 pages$/],
  ]) {
    const client = await connect(run(next), { revision: "2025-11-25" });
    await assert.rejects(within(client.listTools(), "the list"), (error) => {
      assert.ok(error instanceof PeerMisbehavedError);
      assert.match(error.message, reason);
      return true;
    });
    await client.close();
  }
});

test("the server's end is told, and pending calls fail", async () => {
  const closed = deferred();
  const client = await connect(program, { onClose: closed.resolve, restart: false });
  const call = client.callTool("exit_at", { n: 1, code: 3 });
  await assert.rejects(call, (error) => error instanceof ClosedError || error instanceof TransportError);
  assert.equal(typeof (await within(closed.promise, "onClose")), "string");
  await client.close();
});

test("a server that died is started again and listened to again", async () => {
  const client = await connect(program, { onClose: assert.fail });
  const changes = client.listen({ tools: true });
  await changes.honoured;
  const dies = client.callTool("exit_at", { n: 1, code: 3 });
  await assert.rejects(dies, (error) => error instanceof TransportError && /idempotent/.test(error.message));
  const { value } = await within(changes.next(), "the change");
  assert.deepEqual(value, { type: "toolsListChanged" });
  assert.equal((await client.callTool("add", { a: 1 })).text, "2");
  assert.equal(client.serverInfo.name, "misbehaving");
  assert.equal(client.transport, "stdio");
  await client.close();
  await assert.rejects(changes.next(), ClosedError);
});

test("many clients of one server at once", async () => {
  const app = new Server("shared").tool("who", (_, ctx) => ctx.request.clientInfo?.name);
  const clients = await Promise.all(Array.from({ length: 20 }, (_, n) => connect(app, { name: `client ${n}` })));
  const names = await Promise.all(clients.map(async (client) => (await client.callTool("who")).text));
  assert.deepEqual(
    names,
    clients.map((_, n) => `client ${n}`),
  );
  await Promise.all(clients.map((client) => client.close()));
});
