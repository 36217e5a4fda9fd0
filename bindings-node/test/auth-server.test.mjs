// Servers that protect themselves: the option `auth`, verifiers, scopes, the principal, mounts with their metadata.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as dial } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";
import { AuthError, connect, MisuseError, Principal, Server, TimeoutError, TransportError } from "tricorn";
import { browse, guarded, OAuth } from "./oauth.mjs";
import { both, legacy, within } from "./program.mjs";

const LOGIN = "https://login.example.com";
const ping = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };

/** A request with this token, as any program would send it. */
function ask(url, token, message = ping) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return new Request(url, { method: "POST", headers, body: JSON.stringify(message) });
}

/** A server that asks `verifier`, and what its `onError` hears. */
function verified(verifier, more = {}) {
  const heard = [];
  const auth = { verifier, authorizationServers: [LOGIN], resource: "http://localhost/mcp", ...more };
  const app = new Server("verified", { auth, onError: (error, name) => heard.push([name, error]) });
  app.tool("who", (_, { principal }) => ({ ...principal, claims: principal.claims }));
  return { app, heard };
}

test("a verifier says whose a token is, refuses it, or cannot tell", async () => {
  const thrown = (error) => () => {
    throw error;
  };
  const unreachable = () => fetch("http://127.0.0.1:1/");
  const away = Object.assign(new Error("secret"), { code: "ECONNREFUSED" });
  const circle = new Error("secret");
  circle.cause = new Error("secret", { cause: circle });
  const refused = () => once(dial({ host: "127.0.0.1", port: 1 }), "connect");
  for (const [verifier, status, isHeard] of [
    [() => new Principal("ada"), 400, false],
    [async () => new Principal("ada"), 400, false],
    [() => null, 401, false],
    [async () => undefined, 401, false],
    [thrown(new AuthError("secret: revoked")), 401, false],
    [thrown(new RangeError("secret: a mistake")), 401, true],
    [() => ({ subject: "ada" }), 401, true],
    [thrown(new TimeoutError("secret: late")), 503, true],
    [thrown(AbortSignal.abort(new DOMException("secret: late", "TimeoutError")).reason), 503, true],
    [thrown(new TransportError("secret: away")), 503, true],
    [unreachable, 503, true],
    [refused, 503, true],
    [thrown(new Error("secret", { cause: new DOMException("secret", "TimeoutError") })), 503, true],
    [thrown(new AggregateError([new Error("secret"), new Error("secret", { cause: away })])), 503, true],
    [thrown(new AggregateError([new Error("secret")])), 401, true],
    [thrown(circle), 401, true],
    [
      thrown({
        get message() {
          throw new Error("secret");
        },
      }),
      401,
      true,
    ],
  ]) {
    const { app, heard } = verified(verifier);
    const answer = await within(app.fetch(ask("http://localhost/mcp", "t0ken")), "the answer");
    // What gets through is refused for other reasons: nobody has initialized.
    assert.equal(answer.status, status, String(verifier));
    const text = `${await answer.text()}${JSON.stringify([...answer.headers])}`;
    assert.doesNotMatch(text, /secret|t0ken/);
    assert.equal(heard.length, isHeard ? 1 : 0, String(verifier));
    if (isHeard) assert.equal(heard[0][0], "verifier");
    await app.close();
  }
});

test("a verifier that takes too long is told that nobody waits", async () => {
  let reason;
  const { app } = verified(
    (_, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          resolve(null);
        });
      }),
    { timeout: 20 },
  );
  const answer = await within(app.fetch(ask("http://localhost/mcp", "token")), "the answer");
  assert.equal(answer.status, 503);
  assert.equal(reason?.name, "AbortError");
  await app.close();
});

test("a request without a token is told where to get one", async () => {
  const { app } = verified(() => new Principal("ada", { scopes: ["mcp"] }), { requiredScopes: ["mcp", "more"] });
  const none = await app.fetch(ask("http://localhost/mcp"));
  assert.equal(none.status, 401);
  const challenge = none.headers.get("www-authenticate");
  assert.match(challenge, /resource_metadata="http:\/\/localhost\/\.well-known\/oauth-protected-resource\/mcp"/);
  const poor = await app.fetch(ask("http://localhost/mcp", "token"));
  assert.equal(poor.status, 403);
  assert.match(poor.headers.get("www-authenticate"), /insufficient_scope.*scope="mcp more"/);
  assert.equal((await app.fetch(ask("http://localhost/mcp?access_token=token"))).status, 400);
  await app.close();
});

test("handlers, middleware and lists know the principal, and nobody else shows it", async (t) => {
  const claims = { email: "ada@example.com" };
  const known = new Principal("ada", { issuer: LOGIN, clientId: "app", scopes: ["admin"], claims, expiresAt: 4e9 });
  assert.doesNotMatch(
    `${inspect(known, { showHidden: true, depth: 9 })}${JSON.stringify(known)}`,
    /example\.com"?$|email/,
  );
  assert.match(inspect(known), /^Principal \{\s+subject: 'ada'/);
  assert.ok(known.hasScope("admin") && !known.hasScope("read"));
  const { app } = verified(() => known, { resource: undefined, scopeImplies: { admin: ["read_all"] } });
  const seen = [];
  app.middleware((request, context, next) => {
    seen.push(context.principal?.subject);
    return next(request, context);
  });
  app.tool("look", (_, ctx) => inspect(ctx.request, { depth: 9 }) + JSON.stringify(ctx.request));
  app.tool("implied", { scopes: ["read_all"] }, (_, { principal }) => principal.hasScope("read_all"));
  app.resource("who://am-i", (_, { principal }) => principal.subject);
  app.prompt("who", (_, { principal }) => principal.subject);
  t.after(() => app.close());
  const url = await new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
  for (const options of [{}, legacy]) {
    const client = await connect(url, { ...options, auth: { token: "s3cret" } });
    const { subject, issuer, clientId, scopes, expiresAt } = known;
    const who = await client.callTool("who");
    assert.deepEqual(who.structured, { subject, issuer, clientId, scopes, expiresAt, claims });
    assert.doesNotMatch((await client.callTool("look")).text, /email|s3cret/);
    assert.equal((await client.callTool("implied")).text, "true");
    assert.equal((await client.readResource("who://am-i")).text, "ada");
    assert.equal((await client.getPrompt("who")).messages[0].content.text, "ada");
    await client.close();
  }
  assert.deepEqual(new Set(seen), new Set(["ada"]));
});

test("a client in this process has no principal", async () => {
  const { app } = verified(() => null);
  app.tool("nobody", (_, { principal }) => principal === undefined);
  await both(app, async (client) => assert.equal((await client.callTool("nobody")).text, "true"));
});

test("lists show what the caller may use", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  for (const options of [{}, legacy]) {
    const client = await connect(url, { ...options, auth: { browser: browse, store: "memory" } });
    const names = async (list) => (await list).map(({ name, uri, uriTemplate }) => uriTemplate ?? uri ?? name);
    assert.deepEqual(await names(client.listTools()), ["who"]);
    assert.deepEqual(await names(client.listResources()), ["notes://all"]);
    assert.deepEqual(await names(client.listResourceTemplates()), []);
    assert.deepEqual(await names(client.listPrompts()), ["plain"]);
    assert.equal((await client.readResource("notes://of/ada")).text, "ada");
    assert.deepEqual(await names(client.listResources()), ["notes://all", "notes://secret"]);
    assert.deepEqual(await names(client.listResourceTemplates()), ["notes://of/{who}"]);
    assert.deepEqual(await names(client.listPrompts()), ["plain", "secret"]);
    await client.close();
  }
});

test("what a session adds may need scopes, too", async (t) => {
  let scopes = ["read"];
  const { app } = verified(() => new Principal("ada", { scopes }), { resource: undefined });
  app.tool("add", (_, { session }) => void session.tool("own", { scopes: ["write"] }, () => "own"));
  t.after(() => app.close());
  const url = await new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
  const client = await connect(url, { ...legacy, auth: { token: "any" } });
  await client.callTool("add");
  const lists = async () => (await client.listTools()).some(({ name }) => name === "own");
  assert.equal(await lists(), false);
  await assert.rejects(client.callTool("own"), (error) => error instanceof AuthError && /write/.test(error.message));
  scopes = ["read", "write"];
  assert.equal(await lists(), true);
  assert.equal((await client.callTool("own")).text, "own");
  await client.close();
});

test("mounts serve the metadata where they are reached, and below a prefix it is an extra", async (t) => {
  const auth = {
    issuer: LOGIN,
    resource: "https://api.example.com/v1/mcp",
    requiredScopes: ["mcp"],
    resourceName: "Notes",
  };
  const app = new Server("mounted", { auth });
  const mount = app.http({ allowedHosts: ["api.example.com", "127.0.0.1"] });
  const expected = {
    resource: auth.resource,
    authorization_servers: [LOGIN],
    scopes_supported: ["mcp"],
    bearer_methods_supported: ["header"],
    resource_name: "Notes",
  };
  const { path, text, fetch: extra, listener } = mount.resourceMetadata;
  assert.equal(path, "/.well-known/oauth-protected-resource/v1/mcp");
  assert.deepEqual(JSON.parse(text), expected);
  for (const answer of [
    await mount.fetch(new Request(`https://api.example.com${path}`)),
    await extra(new Request("https://api.example.com/")),
  ]) {
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-type"), "application/json");
    assert.equal(answer.headers.get("access-control-allow-origin"), "*");
    assert.deepEqual(await answer.json(), expected);
  }
  const post = new Request("https://api.example.com/", { method: "POST", body: "{}" });
  assert.equal((await extra(post)).status, 405);
  // A framework takes the prefix off, and says what was asked for beside it.
  const server = createServer((request, response) => {
    request.originalUrl = request.url;
    const isExtra = request.url.startsWith("/extra");
    request.url = "/";
    (isExtra ? listener : mount.listener)(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const origin = `http://127.0.0.1:${server.address().port}`;
  for (const at of [path, "/extra"]) {
    const answer = await fetch(`${origin}${at}`);
    assert.equal(answer.status, 200, at);
    assert.deepEqual(await answer.json(), expected);
  }
  assert.equal((await fetch(`${origin}/v1/mcp`, { method: "POST", body: "{}" })).status, 401);
  // A body is not waited for that would not be read.
  // The head goes out with the first piece.
  const begins = (controller) => controller.enqueue(new TextEncoder().encode("{"));
  const endless = () => new ReadableStream({ start: begins, pull: () => new Promise(() => {}) });
  const waiting = new Request("https://api.example.com/", { method: "POST", body: endless(), duplex: "half" });
  assert.equal((await mount.fetch(waiting)).status, 401);
  assert.equal((await fetch(`${origin}/v1/mcp`, { method: "POST", body: endless(), duplex: "half" })).status, 401);
  assert.equal(new Server("open").http().resourceMetadata, undefined);
  await app.close();
});

test("handlers behind a mount know who asks", async (t) => {
  const people = { hers: new Principal("ada", { scopes: ["mcp"] }), his: new Principal("bob", { scopes: ["mcp"] }) };
  const resource = "https://api.example.com/mcp";
  const auth = { verifier: (token) => people[token], authorizationServers: [LOGIN], resource, requiredScopes: ["mcp"] };
  const app = new Server("mounted", { auth });
  app.tool("who", (_, { principal }) => principal.subject);
  const mount = app.http({ allowedHosts: ["api.example.com", "127.0.0.1"] });
  const server = createServer(mount.listener);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const version = "2026-07-28";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who", arguments: {}, _meta } };
  const added = { "mcp-protocol-version": version, "mcp-method": "tools/call", "mcp-name": "who" };
  for (const [at, send] of [
    ["https://api.example.com/mcp", (request) => mount.fetch(request)],
    [`http://127.0.0.1:${server.address().port}/mcp`, (request) => fetch(request)],
  ]) {
    for (const [token, subject] of [
      ["hers", "ada"],
      ["his", "bob"],
      ["nobodys", undefined],
    ]) {
      const request = ask(at, token, call);
      for (const [name, value] of Object.entries(added)) request.headers.set(name, value);
      const answer = await within(send(request), "the answer");
      assert.equal(answer.status, subject ? 200 : 401, `${at} ${token}`);
      if (subject) assert.equal((await answer.json()).result.content[0].text, subject);
      else await answer.body?.cancel();
    }
  }
  // A session, and who asks in it.
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  const client = await connect(url, { ...legacy, auth: { token: "hers" } });
  assert.equal((await client.callTool("who")).text, "ada");
  await client.close();
  await app.close();
});

test("wrong options are named, and nothing secret with them", () => {
  const introspection = { url: "https://login.example.com/ask", clientId: "us", clientSecret: "s3cret" };
  for (const [auth, why] of [
    [5, /auth: expected an object/],
    [{}, /expected one of "issuer", "introspection" and "verifier"/],
    [{ issuer: LOGIN, verifier: () => null }, /expected one of/],
    [{ verifier: "yes" }, /auth: verifier: expected a function/],
    [
      { introspection: { ...introspection, clientSecret: 53_17 } },
      /introspection: clientSecret: expected a string, got a num/,
    ],
    [
      { introspection: { ...introspection, clientSecrt: "5317" } },
      /unknown option "clientSecrt", did you mean "clientSecret"/,
    ],
    [{ introspection: "5317" }, /introspection: expected an object, got a string/],
    [{ issuer: LOGIN, requiredScopes: "5317" }, /requiredScopes: expected a list of strings, got a string/],
    [{ issuer: LOGIN, scopeImplies: { all: "5317" } }, /scopeImplies: all: expected a list of strings/],
    [{ issuer: LOGIN, scopeImplies: { all: ["a b"] } }, /scopeImplies: all: expected one scope .*"a b": split it/],
    [{ issuer: LOGIN, timeout: -5 }, /"timeout": expected milliseconds of at least 0, got -5/],
    [{ isuer: LOGIN }, /unknown option "isuer", did you mean "issuer"/],
    [{ issuer: LOGIN, clockSkew: Number.NaN }, /auth: clockSkew: expected a finite number of milliseconds/],
    [{ introspection: { ...introspection, clientSecret: undefined } }, /clientSecret|client_secret/],
  ]) {
    assert.throws(
      () => new Server("wrong", { auth }),
      (error) => error instanceof MisuseError && why.test(error.message) && !/s3cret|5317/.test(error.message),
      String(why),
    );
  }
  for (const [auth, why] of [
    [{ introspection, resource: "https://h/mcp" }, /"authorizationServers": missing/],
    [{ issuer: LOGIN, resource: "https://h/mcp", requiredScopes: ["a b"] }, /"requiredScopes"/],
    [{ issuer: LOGIN }, /"resource": missing/],
    [{ issuer: "http://login.example.com", resource: "https://h/mcp" }, /"issuer"/],
  ]) {
    const app = new Server("wrong", { auth });
    assert.throws(
      () => app.http({ allowedHosts: ["h"] }),
      (error) => error instanceof MisuseError && why.test(error.message),
    );
    assert.doesNotMatch(inspect(app, { depth: 9, showHidden: true }), /s3cret/);
  }
  for (const scopes of ["read", [5]]) {
    assert.throws(() => new Server("wrong").tool("t", { scopes }, () => 1), MisuseError);
  }
});

test("a principal says what is wrong with what it is made of, and what to give", () => {
  const cycle = {};
  cycle.self = cycle;
  for (const [subject, details, why] of [
    [53_17, {}, /subject: expected a string, got a number/],
    [undefined, {}, /subject: expected a string, got undefined/],
    ["", {}, /subject: expected a string that is not empty/],
    ["ada", null, /details: expected an object, got null/],
    ["ada", ["5317"], /details: expected an object, got a list/],
    ["ada", { client_id: "5317" }, /unknown option "client_id", did you mean "clientId"/],
    ["ada", { issuer: new URL("https://5317/") }, /issuer: expected a string, got an object/],
    ["ada", { issuer: "" }, /issuer: .* not empty/],
    ["ada", { clientId: null }, /clientId: expected a string, got null/],
    ["ada", { scopes: "5317 read" }, /scopes: expected a list of strings, got a string: split it/],
    ["ada", { scopes: new Set(["5317"]) }, /scopes: expected a list of strings, got an object: give \[\.\.\.it\]/],
    ["ada", { scopes: ["read", 53_17] }, /scopes: .* one of it is a number/],
    ["ada", { scopes: ["read write"] }, /scopes: expected one scope in each string, got "read write": split it/],
    ["ada", { scopes: [""] }, /scopes: expected one scope in each string, got ""; leave it out/],
    ["ada", { claims: "5317" }, /claims: expected an object, got a string; give the token's decoded payload/],
    ["ada", { claims: new Map() }, /claims: expected an object/],
    ["ada", { claims: { a: 5317n } }, /claims: expected what JSON has/],
    ["ada", { claims: cycle }, /claims: expected what JSON has; leave out cycles/],
    ["ada", { claims: { a: { b: Number.NaN } } }, /claims: a\.b: expected a finite number/],
    [
      "ada",
      { expiresAt: "5317" },
      /expiresAt: expected seconds since 1970, such as the token's "exp", or a date, got a string/,
    ],
    ["ada", { expiresAt: Number.NaN }, /expiresAt: expected a finite number or a Date, got NaN; leave it out/],
    ["ada", { expiresAt: new Date("soon") }, /expiresAt: .* got an invalid Date; give new Date\(exp \* 1000\)/],
  ]) {
    assert.throws(
      () => new Principal(subject, details),
      (error) => error instanceof MisuseError && why.test(error.message) && !/5317/.test(error.message),
      String(why),
    );
  }
  assert.equal(new Principal("ada", { expiresAt: new Date(1_500) }).expiresAt, 1.5);
  const { subject, scopes, claims, expiresAt } = new Principal("ada", { claims: { a: null }, scopes: ["read"] });
  assert.deepEqual([subject, scopes, claims, expiresAt], ["ada", ["read"], { a: null }, undefined]);
});
