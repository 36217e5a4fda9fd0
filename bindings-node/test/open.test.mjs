// A server in the open: TLS, the log of requests, the budget of memory.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect, connectMany, MisuseError, Server, TransportError } from "tricorn";
import { start } from "./program.mjs";

const tls = (name) => fileURLToPath(new URL(`../../tests/tls/${name}.pem`, import.meta.url));
const [cert, key, ca] = ["cert", "key", "authority"].map(tls);

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`TLS, ${revision}`, async (t) => {
    const app = new Server("tls").tool("add", ({ a, b }) => a + b);
    const listener = await app.listen({ port: 0, cert, key });
    t.after(() => listener.close());
    assert.match(listener.url, /^https:\/\/127\.0\.0\.1:/);
    const client = await connect(listener.url, { ca, revision });
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    await client.close();
    const advice = /authority; name that in the option "ca", SSL_CERT_FILE/;
    await assert.rejects(connect(listener.url, { revision }), (error) => {
      assert.ok(error instanceof TransportError);
      assert.match(error.message, advice);
      return true;
    });
  });
}

const unix = { skip: process.platform === "win32" };

/** The path of a socket in a folder that is removed after the test; it has a space. */
async function socketOf(t) {
  const folder = await mkdtemp(join(tmpdir(), "tricorn "));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, "app.sock");
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`Unix sockets, ${revision}`, unix, async (t) => {
    const socketPath = await socketOf(t);
    const app = new Server("local").tool("add", ({ a, b }) => a + b);
    const listener = await app.listen(`unix:${socketPath}`);
    assert.equal(listener.url, `unix://${encodeURI(socketPath)}#/mcp`);
    const client = await connect(listener.url, { revision });
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    await client.close();
    const others = request({ socketPath, path: "/mcp", method: "PUT" }).end();
    const [answer] = await once(others, "response");
    assert.equal(answer.resume().statusCode, 405);
    await listener.close();
    await assert.rejects(connect(listener.url, { revision }), /cannot connect: No such file/);
    await assert.rejects(connect("unix://app.sock"), /expected the path of a socket/);
  });
}

test("the Unix socket of a configuration, and of a group", unix, async (t) => {
  const socket = await socketOf(t);
  const app = new Server("local").tool("add", ({ a, b }) => a + b);
  const listener = await app.listen({ host: `unix:${socket}`, path: "/tools" });
  t.after(() => listener.close());
  const { url } = listener;
  assert.equal(url, `unix://${encodeURI(socket)}#/tools`);
  const other = `http+unix://${encodeURIComponent(socket)}/tools`;
  const file = `${socket}.mcp.json`;
  const config = { mcpServers: { local: { url }, typed: { type: "http", url: other } } };
  await writeFile(file, JSON.stringify(config));
  const targets = [[url], [new URL(url)], [{ url: other }], [file, { server: "local" }], [config, { server: "typed" }]];
  for (const [target, options] of targets) {
    const client = await connect(target, options);
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    await client.close();
  }
  for (const servers of [file, config, { local: url, typed: { url: other } }]) {
    const group = await connectMany(servers);
    t.after(() => group.close());
    assert.deepEqual([group.names, group.failures.size], [["local", "typed"], 0]);
    assert.equal((await group.callTool("typed_add", { a: 1, b: 2 })).text, "3");
  }
});

test("a program that is told to serve at a Unix socket", unix, async (t) => {
  const socket = await socketOf(t);
  const program = start(t, "server", ["--http", `unix:${socket}`]);
  const url = `unix://${encodeURI(socket)}#/mcp`;
  await program.says(`ready ${url}\n`);
  const client = await connect(url);
  assert.equal((await client.callTool("add", { a: 2 })).text, "3");
  await client.close();
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.exit(), { code: 0, signal: null });
  await assert.rejects(access(socket));
});

test("what is no certificate", async () => {
  const wrong = async (options, message) => {
    await assert.rejects(new Server("tls").listen({ port: 0, ...options }), (error) => {
      assert.ok(error instanceof MisuseError);
      assert.match(error.message, message);
      return true;
    });
  };
  await wrong({ key }, /"key": expected "cert" besides/);
  await wrong({ cert: "/nowhere/cert.pem" }, /"cert": expected PEM, or the path of a file/);
});

test("requests are written to standard error", async () => {
  const program = `
    import { connect, Server } from "tricorn";
    const app = new Server("log", { maxMemory: 8 << 20 }).tool("length", ({ text }) => text.length);
    const listener = await app.listen({ port: 0, accessLog: true });
    const client = await connect(listener.url, { revision: "2026-07-28" });
    console.log((await client.callTool("length", { text: "x".repeat(2 << 20) })).text);
    await client.close();
    if (typeof app.metrics().memory !== "number") throw new Error("no gauge");
    await listener.close();
  `;
  const run = promisify(execFile);
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", program], {
    cwd,
    timeout: 60_000,
  });
  assert.equal(stdout, "2097152\n", stderr);
  assert.match(stderr, /^127\.0\.0\.1 - - \[[^\]]+\] "POST \/mcp HTTP\/1\.1" 200 \d+ \d+ms$/m);
});
