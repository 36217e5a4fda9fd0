// Clients that log in at a server that protects itself: the option `auth`, its functions and stores.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { AuthError, connect, connectMany, MisuseError, TimeoutError, TricornError } from "tricorn";
import { bridgeMetrics } from "tricorn/testing";
import { browse, guarded, Kept, nobody, OAuth, tell } from "./oauth.mjs";
import { deferred, within } from "./program.mjs";
import { NOT_HERE, redis } from "./redis.mjs";

test("a user logs in by the browser, and once", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    const opened = [];
    const browser = (page, { signal }) => {
      assert.ok(signal instanceof AbortSignal);
      opened.push(page);
      // It need not wait for the user.
      void browse(page);
    };
    const client = await within(connect(url, { revision, auth: { browser, store: "memory" } }), "the login");
    assert.equal(await tell(client), "ada: read");
    assert.equal(opened.length, 1);
    assert.ok(opened[0].startsWith(`${oauth.issuer}/authorize?`));
    const steps = client.authTrace();
    assert.deepEqual(Object.keys(steps[0]).sort(), ["decision", "status", "step", "url"]);
    assert.ok(steps.some(({ step }) => step === "login in the browser"));
    assert.doesNotMatch(JSON.stringify(steps), /eyJ/);
    assert.doesNotMatch(inspect(client, { depth: 9, showHidden: true }), /eyJ/);
    await client.close();
    assert.deepEqual(client.authTrace(), steps);
  }
  assert.equal(oauth.count("register"), 2);
  assert.equal(bridgeMetrics().calls, 0);
});

test("the program says where the browser comes back to", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  for (const part of [(came) => came, (came) => new URL(came), (came) => new URL(came).search.slice(1)]) {
    const came = deferred();
    const began = deferred();
    const auth = {
      redirectUri: "http://localhost:9/back",
      async browser(page) {
        await began.promise;
        came.resolve(part((await fetch(page, { redirect: "manual" })).headers.get("location")));
      },
      callback(redirectUri) {
        assert.equal(this, auth);
        assert.equal(redirectUri, "http://localhost:9/back");
        began.resolve();
        return came.promise;
      },
      store: "memory",
    };
    const client = await within(connect(url, { auth }), "the login");
    assert.equal(await tell(client), "ada: read");
    await client.close();
  }
});

test("whoever waits for the browser is told when nobody does", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const over = deferred();
  const auth = {
    redirectUri: "http://localhost:9/back",
    browser: () => {},
    callback: (_, { signal }) => {
      signal.addEventListener("abort", () => over.resolve(signal.reason));
      return over.promise.then(() => "late");
    },
    loginTimeout: 50,
    store: "memory",
  };
  await assert.rejects(within(connect(url, { auth }), "the end of the login"), /within|time|log/i);
  assert.equal((await within(over.promise, "the abort")).name, "AbortError");
});

test("what goes wrong says where, with all steps", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const heard = [];
  const failed = async (auth) => {
    const error = await within(
      connect(url, { auth: { store: "memory", ...auth }, onError: (...told) => heard.push(told) }).then(
        () => assert.fail("it connected"),
        (error) => error,
      ),
      "the failure",
    );
    assert.ok(error instanceof TricornError, inspect(error));
    return error;
  };
  const closed = await failed({ browser: nobody });
  assert.match(closed.message, /"browser": Error$/);
  assert.ok(closed.authTrace.length > 2);
  assert.doesNotMatch(inspect(closed), /authTrace/);
  assert.match((await failed({ token: () => undefined })).message, /expected a text, got undefined/);
  const secret = Object.assign(new RangeError("Command failed: vault --password s3cret"), { stdout: "s3cret" });
  const [said, meant] = [new AuthError("the vault is locked"), new TimeoutError("the vault is slow")];
  for (const [thrown, why] of [
    [secret, /"token": RangeError$/],
    ["s3cret", /"token": string$/],
    [said, /the vault is locked/],
    [meant, /the vault is slow/],
  ]) {
    const error = await failed({ token: async () => Promise.reject(thrown) });
    assert.match(error.message, why);
    assert.doesNotMatch(`${inspect(error)}${JSON.stringify(error.authTrace)}`, /s3cret/);
  }
  // The operator hears all of it, but what is said on purpose.
  assert.deepEqual(
    heard.map(([error, name]) => [name, error.message ?? error]),
    [
      ["browser", "nobody is there"],
      ["token", "expected a text, got undefined"],
      ["token", secret.message],
      ["token", "s3cret"],
      ["token", meant.message],
    ],
  );
  assert.match(
    (await failed({ grant: "client_credentials", clientId: "robot", clientSecret: "wr0ng" })).message,
    /invalid_client/,
  );
});

test("a login that cannot be kept is used, and that is said", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const store = new Kept();
  store.save = async () => {
    throw new Error("the disk is full");
  };
  const warned = once(process, "warning");
  const heard = [];
  const onError = (error, name) => heard.push(`${name}: ${error.message}`);
  const client = await connect(url, { auth: { browser: browse, store }, onError });
  assert.equal(await tell(client), "ada: read");
  const [warning] = await within(warned, "the warning");
  assert.equal(warning.name, "TricornWarning");
  assert.match(warning.message, /"store": Error$/);
  assert.deepEqual(heard, ["store: the disk is full"]);
  await client.close();
});

test("tokens that are there, or come from a function", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth, { verifier: undefined, issuer: oauth.issuer });
  const robot = { grant: "client_credentials", clientId: "robot", clientSecret: "s3cret", store: "memory" };
  const client = await connect(url, { auth: robot });
  assert.equal(await tell(client), "robot: read");
  await client.close();

  const given = ["wrong"];
  const wanted = [];
  const resource = new URL(url).href;
  const body = new URLSearchParams({ grant_type: "client_credentials", resource, scope: "read" });
  const headers = { authorization: `Basic ${Buffer.from("robot2:s3cret").toString("base64")}` };
  const answer = await fetch(`${oauth.issuer}/token`, { method: "POST", body, headers });
  const { access_token: token } = await answer.json();
  const auth = {
    token: (what, { signal }) => {
      assert.ok(signal instanceof AbortSignal);
      wanted.push(what);
      return given.shift() ?? token;
    },
  };
  const asked = await connect(url, { auth });
  assert.equal(await tell(asked), "robot2: read");
  assert.equal(wanted.length, 2);
  assert.deepEqual(Object.keys(wanted[0]), ["issuer", "resource"]);
  await asked.close();

  const bearer = await connect(url, { auth: { token } });
  assert.equal(await tell(bearer), "robot2: read");
  await bearer.close();
});

test("a store of the program's own keeps logins, which last", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const store = new Kept();
  const first = await connect(url, { auth: { browser: browse, store } });
  await first.close();
  assert.equal(store.logins.size, 1);
  const [key] = store.logins.keys();
  assert.equal(key, `${oauth.issuer} ${url}`);

  const again = await connect(url, { auth: { browser: nobody, store } });
  assert.equal(await tell(again), "ada: read");
  await again.close();
  assert.equal(oauth.count("authorize"), 1);
});

test("a token that was refused is refreshed, by one for all", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const store = new Kept();
  const held = { now: 0, most: 0, all: 0 };
  store.reserve = async function (wanted, wait) {
    assert.equal(this, store);
    assert.deepEqual(Object.keys(wanted), ["issuer", "server"]);
    assert.ok(wait > 0);
    held.now++;
    held.all++;
    held.most = Math.max(held.most, held.now);
    return () => void held.now--;
  };
  const clients = [await connect(url, { auth: { browser: browse, store } })];
  clients.push(await connect(url, { auth: { browser: nobody, store } }));
  oauth.revoke();
  // The authorization server takes each refresh token once: two clients that share a store take turns.
  const calls = clients.flatMap((client) => Array.from({ length: 20 }, () => tell(client)));
  assert.deepEqual(new Set(await within(Promise.all(calls), "the calls")), new Set(["ada: read"]));
  assert.equal(oauth.count("token refresh_token"), 1);
  assert.equal(oauth.count("authorize"), 1);
  assert.equal(held.most, 1);
  assert.ok(held.all >= 2);
  for (const client of clients) await client.close();
});

test("a login is kept in a store that other machines share", { skip: NOT_HERE }, async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const store = { url: await redis(t), secret: "a secret for tests, longer than thirty-two bytes" };
  for (const browser of [browse, nobody, nobody]) {
    const client = await connect(url, { auth: { browser, store } });
    assert.equal(await tell(client), "ada: read");
    await client.close();
    oauth.revoke();
  }
  assert.deepEqual([oauth.count("authorize"), oauth.count("token refresh_token")], [1, 2]);
  const without = connect(url, { auth: { browser: nobody, store: { url: "redis://ann:hush@127.0.0.1:1" } } });
  await assert.rejects(without, (error) => {
    assert.ok(error instanceof MisuseError);
    assert.match(error.message, /"secret": missing/);
    assert.doesNotMatch(error.message, /hush/);
    return true;
  });
});

test("a login is kept in a directory", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const directory = mkdtempSync(join(tmpdir(), "tricorn-"));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const browser of [browse, nobody]) {
    const client = await connect(url, { auth: { browser, store: { directory } } });
    assert.equal(await tell(client), "ada: read");
    await client.close();
  }
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  assert.ok(
    files.some((file) => readFileSync(join(file.parentPath ?? file.path, file.name), "utf8").includes(oauth.issuer)),
  );
});

test("a tool that needs more scopes is asked for again with them", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    oauth.asked.length = 0;
    const client = await connect(url, { revision, auth: { browser: browse, store: "memory" } });
    assert.deepEqual(
      (await client.listTools()).map(({ name }) => name),
      ["who"],
    );
    assert.equal((await within(client.callTool("write"), "the step up")).text, "read write");
    assert.deepEqual(
      (await client.listTools()).map(({ name }) => name),
      ["who", "write"],
    );
    assert.deepEqual(
      oauth.asked.filter((one) => one.startsWith("authorize")),
      ["authorize read", "authorize read write"],
    );
    await client.close();
  }
});

test("clients of a group share the functions", async (t) => {
  const oauth = await OAuth.start(t);
  const [one, two] = [await guarded(t, oauth), await guarded(t, oauth)];
  const group = await connectMany({ one, two }, { auth: { browser: browse, store: new Kept() } });
  assert.equal(group.failures.size, 0);
  for (const name of ["one", "two"]) assert.equal(await tell(group.client(name)), "ada: read");
  assert.ok(group.client("one").authTrace().length > 2);
  await group.close();

  const refused = await connectMany({ one }, { auth: { browser: nobody, store: "memory" } });
  const failure = refused.failures.get("one");
  assert.ok(failure instanceof AuthError);
  assert.ok(failure.authTrace.length > 2);
  await assert.rejects(refused.reconnect("one"), (error) => error.authTrace.length > failure.authTrace.length);
  await refused.close();
});

test("a workload's JWT and a user's identity come from functions", async (t) => {
  const oauth = await OAuth.start(t);
  const url = await guarded(t, oauth);
  const wanted = [];
  const assertion = async (what) => {
    wanted.push(what);
    throw new TimeoutError("the platform is slow");
  };
  for (const auth of [
    { grant: "jwt_bearer", clientId: "job", assertion },
    {
      clientId: "job",
      clientSecret: "x",
      identity: { tokenEndpoint: `${oauth.issuer}/token`, clientId: "idp" },
      assertion,
    },
  ]) {
    await assert.rejects(connect(url, { auth: { ...auth, store: "memory" } }), /the platform is slow/);
  }
  assert.deepEqual(wanted[0], { issuer: oauth.issuer, resource: url });
  assert.equal(wanted.length, 2);
});

test("wrong options are named before anybody is asked", async (t) => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  for (const [auth, why] of [
    [5, /auth: expected an object, or true/],
    [{ brwser: browse }, /unknown option "brwser", did you mean "browser"/],
    [{ browser: "firefox" }, /auth: browser: expected a function, got a string/],
    [{ clientId: "us", clientSecret: 53_17 }, /auth: clientSecret: expected a string, got a number/],
    [{ token: 53_17 }, /auth: token: expected a string or a function, got a number/],
    [{ assertion: ["5317"] }, /auth: assertion: expected a string or a function, got a list/],
    [{ privateKey: { pem: "5317" } }, /auth: privateKey: expected a string, got an object/],
    [{ issuer: null }, /auth: issuer: expected a string, got null/],
    [{ scopes: "5317" }, /auth: scopes: expected a list of strings, got a string/],
    [{ scopes: ["read", 53_17] }, /auth: scopes: expected a list of strings, got a number in it/],
    [{ scopes: ["read write"] }, /auth: scopes: expected one scope in each string, got "read write": split it/],
    [{ noBrowser: "5317" }, /auth: noBrowser: expected a boolean, got a string/],
    [{ loginTimeout: -1 }, /"loginTimeout": expected milliseconds of at least 0, got -1/],
    [{ redirectPort: 70_000 }, /auth: redirectPort: expected a port, 0 to 65535, got 70000/],
    [{ identity: "5317" }, /auth: identity: expected an object, got a string/],
    [{ identity: { tokenEndpoint: "https://idp/", clientId: "x", token: 53_17 } }, /auth: identity: token: expected a/],
    [{ identity: { tokenEndpoint: "https://idp/", cliendId: "x" } }, /did you mean "clientId"/],
    [{ redirectUri: "http://localhost:9/" }, /"redirectUri" and "callback" go together/],
    [{ redirectUri: "http://example.com/", callback: () => "" }, /https/],
    [{ store: "disk" }, /"store": expected "memory", "file", "keychain" or a store's URL, got another string/],
    [{ store: {} }, /it has no function "load"/],
    [{ loginTimeout: Number.NaN }, /auth: loginTimeout: expected a finite number of milliseconds/],
    [{ grant: "clientCredentials" }, /grant: expected one of authorization_code, client_credentials/],
    [{ grant: "client_credentials", clientId: "robot" }, /"clientSecret"/],
    [{ clientSecret: "s3cret" }, /"clientId"/],
    [
      { identity: { tokenEndpoint: "http://example.com/token", clientId: "x", token: "y" } },
      /"identity": expected an https URL/,
    ],
  ]) {
    await assert.rejects(connect(url, { auth }), (error) => {
      assert.ok(error instanceof MisuseError, inspect(error));
      assert.match(error.message, why);
      assert.doesNotMatch(error.message, /s3cret|5317/);
      return true;
    });
  }
  assert.equal(asked, 0);
});
