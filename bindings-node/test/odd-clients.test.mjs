// Requests as odd clients, gateways and proxies send them, byte by byte, to a server that others mount.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer } from "node:http";
import http2 from "node:http2";
import { connect as dial } from "node:net";
import { test } from "node:test";
import express from "express";
import { connect, Server } from "tricorn";
import { z } from "zod";
import { legacy, within } from "./program.mjs";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
});

function head({ path = "/mcp", method = "POST", version = "HTTP/1.1", ...headers }) {
  const given = {
    Host: "localhost",
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    Connection: "close",
    ...headers,
  };
  const lines = Object.entries(given).filter(([, value]) => value !== undefined);
  return `${method} ${path} ${version}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

const sized = (more = {}, body = PING) => head({ "Content-Length": Buffer.byteLength(body), ...more }) + body;

/** All that is answered to these bytes; the last request says that the connection ends. */
async function answers(port, ...pieces) {
  const socket = dial({ port, host: "127.0.0.1", noDelay: true });
  await within(once(socket, "connect"), "a connection");
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve));
    await new Promise(setImmediate);
  }
  let said = "";
  const read = async () => {
    for await (const part of socket.setEncoding("utf8")) said += part;
    return said;
  };
  return within(read(), `the answer to ${JSON.stringify(pieces)}`);
}

async function listening(t, web) {
  const server = web.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return server.address().port;
}

const mounts = {
  listener: () => createServer(new Server("odd").listener()),
  Express: () => express().use("/mcp", new Server("odd").listener()),
  "Express, parsed before": () => express().use(express.json()).use("/mcp", new Server("odd").listener()),
};

for (const [mount, made] of Object.entries(mounts)) {
  test(`requests as others write them: ${mount}`, async (t) => {
    const port = await listening(t, made());
    const opened = await answers(port, sized({}, INITIALIZE));
    const mine = { "Mcp-Session-Id": /^mcp-session-id: (\S+)\r$/im.exec(opened)[1] };
    const whole = sized(mine);
    const rest = PING.slice(5);
    const chunks = `5\r\n${PING.slice(0, 5)}\r\n${rest.length.toString(16)};name=value\r\n${rest}\r\n0\r\nX-Trailer: 1\r\n\r\n`;
    const kept = sized({ ...mine, Connection: "keep-alive" });
    const requests = {
      "as most do": [[whole]],
      "with a slash at the end": [[sized({ ...mine, path: "/mcp/" })]],
      "with a query": [[sized({ ...mine, path: "/mcp?api_key=a%20b" })]],
      "in HTTP/1.0": [[sized({ ...mine, version: "HTTP/1.0" })]],
      "in chunks": [[head({ ...mine, "Transfer-Encoding": "chunked" }), chunks]],
      "piece by piece": [[whole.slice(0, 20), whole.slice(20, -10), whole.slice(-10)]],
      "two at once": [[kept + whole], 2],
      "any answer": [[sized({ ...mine, Accept: "*/*" })]],
      "no Accept": [[sized({ ...mine, Accept: undefined })]],
      "JSON alone": [[sized({ ...mine, Accept: "application/json" })]],
      "with a charset": [[sized({ ...mine, "Content-Type": 'Application/JSON; charset="UTF-8"' })]],
      "over several lines": [[sized(mine, `${PING.replaceAll(",", ",\r\n")}\r\n`)]],
    };
    for (const [name, [pieces, times = 1]] of Object.entries(requests)) {
      const said = await answers(port, ...pieces);
      assert.equal(said.split(" 200 OK").length - 1, times, `${name}: ${said}`);
      assert.equal(said.split('"id":1,"result":{}').length - 1, times, `${name}: ${said}`);
    }
    const expecting = head({ ...mine, Expect: "100-continue", "Content-Length": PING.length });
    assert.match(
      await answers(port, expecting, PING),
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*"id":1,"result":\{\}/s,
    );
    for (const method of ["HEAD", "OPTIONS", "PUT"]) {
      const said = await answers(port, head({ ...mine, method }));
      assert.match(said, /^HTTP\/1\.1 405 .*allow: GET, POST, DELETE/is, method);
      assert.equal(said.split("\r\n\r\n")[1] === "", method === "HEAD", said);
    }
  });
}

test("what judges a value sees whose it is", async (t) => {
  const als = new AsyncLocalStorage();
  const who = () => als.getStore() ?? "nobody";
  const input = z.object({
    name: z.string().transform(async (name) => {
      await new Promise(setImmediate);
      return `${name} for ${who()}`;
    }),
    by: z.string().default(who),
    mine: z.string().refine(async (name) => name === who(), { error: () => `not ${who()}` }),
  });
  const output = z.object({ text: z.string().transform(async (text) => `${text}, seen by ${who()}`) });
  const app = new Server("judges").tool("t", { input, output }, ({ name, by }) => ({ text: `${name} by ${by}` }));
  const listener = app.listener();
  const port = await listening(
    t,
    createServer((request, response) => als.run(request.headers["x-user"], () => listener(request, response))),
  );
  const user = async (name, options) => {
    const url = `http://127.0.0.1:${port}/mcp`;
    const client = await within(connect(url, { ...options, headers: { "X-User": name } }), "a connection");
    const right = await client.callTool("t", { name: "tea", mine: name });
    assert.deepEqual(right.structured, { text: `tea for ${name} by ${name}, seen by ${name}` });
    const wrong = await client.callTool("t", { name: "tea", mine: "x" });
    assert.equal(wrong.text, `argument "mine": not ${name}`);
    await client.close();
  };
  for (const options of [{}, legacy]) await Promise.all(["ann", "bob", "eve"].map((name) => user(name, options)));
});

/** As on-headers has it up to 1.0, which express-session, compression and morgan use: an array is one of pairs. */
function wrapped(response, listener) {
  const { writeHead } = response;
  response.writeHead = function (status, headers, ...rest) {
    assert.equal(rest.length, 0);
    this.statusCode = status;
    if (Array.isArray(headers)) for (const [name, value] of headers) this.setHeader(name, value);
    else for (const [name, value] of Object.entries(headers ?? {})) this.setHeader(name, value);
    listener();
    return writeHead.call(this, status);
  };
}

test("middleware that wraps `writeHead` leaves the headers as they are", async (t) => {
  const listener = new Server("wrapped").listener({ allowedOrigins: ["https://page.example"] });
  const web = express().use((request, response) => {
    wrapped(response, () => response.setHeader("Set-Cookie", "sid=1"));
    listener(request, response);
  });
  const port = await listening(t, web);
  const said = await answers(port, sized({ Origin: "https://page.example" }, INITIALIZE));
  for (const header of [
    /^mcp-session-id: \S+\r$/im,
    /^content-type: application\/json\r$/im,
    /^access-control-allow-origin: https:\/\/page\.example\r$/im,
    /^set-cookie: sid=1\r$/im,
  ]) {
    assert.match(said, header);
  }
});

test("an HTTP/2 server", async (t) => {
  const app = new Server("h2").tool("t", (_, ctx) => {
    ctx.progress(1, 2);
    return ctx.request.headers.host;
  });
  const web = http2.createServer(app.listener({ allowedHosts: ["mcp.example.com"] }));
  const port = await listening(t, Object.assign(web, { closeAllConnections() {} }));
  const session = http2.connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const post = async (body, more = {}) => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/mcp",
      ":authority": "mcp.example.com",
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...more,
    });
    stream.end(body);
    const [headers] = await within(once(stream, "response"), "an answer");
    let text = "";
    for await (const part of stream.setEncoding("utf8")) text += part;
    return { headers, text };
  };
  const opened = await post(INITIALIZE);
  assert.equal(opened.headers[":status"], 200, opened.text);
  const params = { name: "t", arguments: {}, _meta: { progressToken: 1 } };
  const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const called = await post(call, { "mcp-session-id": opened.headers["mcp-session-id"] });
  assert.match(called.text, /notifications\/progress.*"text":"mcp\.example\.com"/s);
  assert.equal((await post(INITIALIZE, { ":authority": "evil.example.com" })).headers[":status"], 403);
});
