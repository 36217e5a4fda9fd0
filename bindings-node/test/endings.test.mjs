// Ends: of ports, of a server by what runs for it, of programs with handlers of their own.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect as socketTo } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ClosedError, connect, MisuseError, Server, TransportError } from "tricorn";
import { deferred, LIMIT, start, within } from "./program.mjs";

const made = (options) => new Server("ends", options).tool("hello", () => "hello");

const hello = async (url) => {
  const client = await connect(url);
  try {
    return (await client.callTool("hello")).text;
  } finally {
    await client.close();
  }
};

/** A port that nobody listens on any more. */
async function free() {
  const one = createServer().listen(0, "127.0.0.1");
  await once(one, "listening");
  const { port } = one.address();
  one.close();
  await once(one, "close");
  return port;
}

test("an address in one argument, as run takes it", async () => {
  const port = await free();
  for (const [given, host] of [
    [port, "127.0.0.1"],
    [String(port), "127.0.0.1"],
    [`127.0.0.1:${port}`, "127.0.0.1"],
    [`[::1]:${port}`, "[::1]"],
    [{ port }, "127.0.0.1"],
  ]) {
    const { url, close } = await made().listen(given);
    assert.equal(url, `http://${host}:${port}/mcp`);
    assert.equal(await hello(url), "hello");
    await close();

    const app = made();
    const other = deferred();
    const serving = app.serveHttp(typeof given === "object" ? { ...given, onListening: other.resolve } : given);
    if (typeof given === "object") assert.equal(await within(other.promise, "listening"), url);
    else await within(reached(url), "a connection");
    assert.equal(await hello(url), "hello");
    await app.close();
    await within(serving, "the end");
  }
});

/** Resolves when somebody listens there. */
async function reached(url) {
  const { hostname, port } = new URL(url);
  for (;;) {
    const socket = socketTo(Number(port), hostname.replace(/^\[|\]$/g, ""));
    const [answer] = await Promise.race([
      once(socket, "connect").then(() => [true]),
      once(socket, "close").then(() => [false]),
    ]).catch(() => [false]);
    socket.destroy();
    if (answer) return;
  }
}

test("what is no address is refused", async () => {
  for (const given of ["here", "localhost:", null, () => {}]) {
    await assert.rejects(made().listen(given), MisuseError, String(given));
    await assert.rejects(made().serveHttp(given), MisuseError, String(given));
  }
  await assert.rejects(
    made().listen(0, () => {}),
    /no callback/,
  );
});

test("a port is free when it is closed", async (t) => {
  const app = made();
  let port = 0;
  for (let round = 0; round < 20; round++) {
    const { url, close } = await app.listen({ port });
    port = Number(new URL(url).port);
    // It stays: nothing that a client does holds up the end.
    const client = await connect(url);
    t.after(() => client.close());
    assert.equal((await client.callTool("hello")).text, "hello");
    await within(close(), "the end");
  }
});

test("sockets that say nothing do not hold up the end", async (t) => {
  const { url, close } = await made().listen({ port: 0 });
  for (const said of ["", "POST /mcp HTTP/1.1\r\nHost: x", "POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"]) {
    const socket = socketTo(Number(new URL(url).port), "127.0.0.1");
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.write(said);
  }
  await within(close(), "the end");
});

test("closing more than once, and all at once", async () => {
  const app = made();
  const { close } = await app.listen({ port: 0 });
  await within(Promise.all([close(), close(), app.close()]), "the end");
  await within(close(), "the end");
  await within(app.close(), "the end");
});

test("a handler closes what it is called by", async () => {
  for (const which of ["port", "server"]) {
    const app = made();
    let listening;
    const done = deferred();
    app.tool("stop", async () => {
      await (which === "port" ? listening : app).close();
      done.resolve();
    });
    listening = await app.listen({ port: 0 });
    const client = await connect(listening.url);
    // Its call is cancelled with the rest.
    await assert.rejects(client.callTool("stop"));
    await within(done.promise, `the end of the ${which}`);
    await client.close();
    await app.close();
  }
});

test("a lifespan closes its server", async () => {
  for (const at of ["start", "stop", "port"]) {
    const said = [];
    const over = deferred();
    let app;
    let listening;
    const lifespan = {
      start: async () => {
        if (at === "start") await app.close();
        said.push("started");
      },
      stop: async () => {
        await (at === "port" ? listening : app).close();
        said.push("stopped");
        over.resolve();
      },
    };
    app = made({ lifespan });
    if (at === "start") {
      await assert.rejects(within(app.listen({ port: 0 }), "the end"), ClosedError);
    } else {
      listening = await app.listen({ port: 0 });
      assert.equal(await hello(listening.url), "hello");
      await within(listening.close(), `the end (${at})`);
    }
    await within(over.promise, `the stop (${at})`);
    assert.deepEqual(said, ["started", "stopped"]);
  }
});

test("what a lifespan has left behind waits for the end as everybody does", async () => {
  const said = [];
  const go = deferred();
  const over = deferred();
  const app = made({
    lifespan: {
      start: () => {
        void go.promise.then(async () => {
          await app.close();
          said.push("closed");
          over.resolve();
        });
      },
      stop: async () => {
        await new Promise((done) => setImmediate(done));
        said.push("stopped");
      },
    },
  });
  await app.listen({ port: 0 });
  go.resolve();
  await within(over.promise, "the end");
  assert.deepEqual(said, ["stopped", "closed"]);
});

test("a start that fails leaves its port free", async () => {
  let starts = 0;
  const lifespan = {
    start: () => {
      starts += 1;
      if (starts === 1) throw new RangeError("no database");
    },
  };
  const app = made({ lifespan });
  const port = await free();
  await assert.rejects(app.listen({ port }), RangeError);
  const { url, close } = await app.listen({ port });
  assert.equal(await hello(url), "hello");
  await assert.rejects(made().listen({ port }), TransportError);
  await close();
});

test("a port that is taken takes nothing from standard streams", async (t) => {
  const server = start(t, "two-ways");
  await server.says("no port");
  server.send({ jsonrpc: "2.0", id: 1, method: "ping" });
  await server.answer(1);
  server.child.stdin.end();
  assert.equal((await server.exit()).code, 0);
});

test("a program's own handlers of a signal and of its exit", async (t) => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    for (const own of ["", "hears", "exits"]) {
      const server = start(t, "own-handlers", [signal, own]);
      server.send({ jsonrpc: "2.0", id: 1, method: "ping" });
      await server.answer(1);
      server.child.kill(signal);
      if (own === "hears" && signal === "SIGHUP") {
        // Such a program reads its configuration anew.
        await server.says("own handler");
        server.send({ jsonrpc: "2.0", id: 2, method: "ping" });
        await server.answer(2);
        server.child.stdin.end();
      }
      const { code, signal: by } = await server.exit();
      const what = `${signal} ${own}`;
      assert.match(server.stderr, own === "exits" ? /own handler/ : /stopped/, what);
      assert.equal(/own handler/.test(server.stderr), own !== "", what);
      if (own === "exits") assert.equal(code, 7, what);
      else if (own === "" && signal === "SIGHUP") assert.equal(by, signal, what);
      else assert.equal(code, signal === "SIGINT" ? 130 : 0, what);
      assert.equal(/at exit/.test(server.stderr), by === null, what);
    }
  }
});

test("a connect that is given up leaves no process", async () => {
  const silent = "console.error(process.pid); process.stdin.resume(); setInterval(() => {}, 1000)";
  const started = deferred();
  const given = new AbortController();
  const connecting = connect(
    { command: process.execPath, args: ["-e", silent] },
    { onStderr: started.resolve, signal: given.signal, shutdownGrace: 100 },
  );
  const pid = Number(await within(started.promise, "the start"));
  given.abort();
  await assert.rejects(connecting);
  const end = Date.now() + LIMIT;
  while (isAlive(pid)) {
    assert.ok(Date.now() < end, `the end within ${LIMIT} ms`);
    await pause(5);
  }
});

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a worker's server ends with its worker, and its clients hear of it", async () => {
  const code = `import("tricorn").then(async ({ Server }) => {
    const { url } = await new Server("worker").tool("hello", () => "hello").listen(0);
    require("node:worker_threads").parentPort.postMessage(url);
  })`;
  const worker = new Worker(code, { eval: true });
  const [url] = await within(once(worker, "message"), "the start");
  const client = await connect(url);
  assert.equal((await client.callTool("hello")).text, "hello");
  await worker.terminate();
  await assert.rejects(within(client.callTool("hello"), "an answer"), TransportError);
  await client.close();
});
