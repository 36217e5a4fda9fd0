// A server in the open: TLS, the log of requests, the budget of memory.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { connect, MisuseError, Server, TransportError } from "tricorn";

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

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`Unix sockets, ${revision}`, { skip: process.platform === "win32" }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "tricorn "));
    t.after(() => rm(folder, { recursive: true }));
    const socketPath = join(folder, "app.sock");
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

test("what is no certificate", async () => {
  const wrong = async (options, message) => {
    await assert.rejects(new Server("tls").listen({ port: 0, ...options }), (error) => {
      assert.ok(error instanceof MisuseError);
      assert.match(error.message, message);
      return true;
    });
  };
  await wrong({ key }, /"key": expected "cert" besides/);
  await wrong({ cert: "/nowhere/cert.pem" }, /"cert": expected PEM or the path of a file/);
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
