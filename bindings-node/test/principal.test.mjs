// Whose a request is, as a function of the server says: states between rounds, and tasks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MisuseError } from "tricorn";
import { asks, form, MODERN } from "./rounds.mjs";

/** A shop that asks, and users who send what they like. */
function shop(t) {
  const { app, errors } = asks({ tasks: true });
  t.after(() => app.close());
  app
    .tool("buy", async (_, ctx) => `bought ${(await ctx.elicit("What?", form("a"))).content.a}`)
    .tool("bake", { taskSupport: "required" }, () => "a cake");
  const ask = async (user, method, name, params) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": {
        elicitation: {},
        extensions: { "io.modelcontextprotocol/tasks": {} },
      },
    };
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      "mcp-name": name,
      ...(user && { "x-user": user }),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
    const response = await app.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body }));
    const text = await response.text();
    const event = text.split("\n").findLast((line) => line.startsWith("data: {"));
    return JSON.parse(event ? event.slice("data: ".length) : text);
  };
  return {
    app,
    errors,
    call: (user, name, more = {}) => ask(user, "tools/call", name, { name, arguments: {}, ...more }),
    task: (user, taskId) => ask(user, "tasks/get", taskId, { taskId }),
  };
}

/** The same call in its next round. */
const again = ({ result: { requestState, inputRequests } }) => ({
  requestState,
  inputResponses: Object.fromEntries(
    Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { a: "milk" } }]),
  ),
});

const header = ({ request }) => request.headers["x-user"];

test("states and tasks are their users'", async (t) => {
  for (const of of [header, async (ctx) => header(ctx) ?? null]) {
    const { app, errors, call, task } = shop(t);
    assert.equal(app.principal(of), app);
    const next = again(await call("ada", "buy"));
    const { taskId } = (await call("ada", "bake")).result;
    for (const other of ["bob", undefined]) {
      assert.equal((await call(other, "buy", next)).error.code, -32602);
      assert.equal((await task(other, taskId)).error.code, -32602);
    }
    assert.equal((await call("ada", "buy", next)).result.content[0].text, "bought milk");
    assert.equal((await task("ada", taskId)).result.taskId, taskId);
    const nobodys = again(await call(undefined, "buy"));
    assert.equal((await call("ada", "buy", nobodys)).error.code, -32602);
    assert.ok((await call(undefined, "buy", nobodys)).result);
    assert.deepEqual(errors, []);
  }
});

test("what middleware found out is there", async (t) => {
  const { app, call } = shop(t);
  app
    .principal(({ values }) => values.get("user"))
    .middleware((request, context, next) => {
      context.values.set("user", `user of ${header(context)}`);
      return next(request, context);
    });
  const next = again(await call("ada", "buy"));
  assert.equal((await call("bob", "buy", next)).error.code, -32602);
  assert.ok((await call("ada", "buy", next)).result);
});

test("what cannot be said ends the request", async (t) => {
  const { app, errors, call } = shop(t);
  const broken = (ctx) => {
    throw new RangeError(`no user ${header(ctx)}`);
  };
  const curious = async (ctx) => (await ctx.elicit("who?", form("a"))).content.a;
  for (const [of, why, type] of [
    [broken, "it failed", RangeError],
    [() => 7, "it failed", MisuseError],
    [curious, "it must not ask the client"],
  ]) {
    app.principal(of);
    for (const name of ["buy", "bake"]) {
      const { error } = await call("ada", name);
      assert.deepEqual(error, { code: -32603, message: `the server's principal: ${why}` });
    }
    const heard = errors.splice(0).map(([name, error]) => [name, error.constructor]);
    assert.deepEqual(heard, type ? Array(2).fill(["principal", type]) : []);
  }
  app.principal(header).middleware(async (request, context, next) => {
    await context.elicit("who?", form("a"));
    return next(request, context);
  });
  assert.equal((await call("ada", "buy")).error.code, -32603);
});

test("what is no function is refused", (t) => {
  const { app } = shop(t);
  assert.throws(() => app.principal("ada"), MisuseError);
});
