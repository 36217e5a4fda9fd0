// What cannot be written as JSON: every request is answered all the same, and the place is named.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  connect,
  connectMany,
  errorFrom,
  loggable,
  MisuseError,
  ResourceNotFoundError,
  RpcError,
  result,
  Server,
  ToolError,
} from "../dist/core.js";

const circle = {};
circle.me = circle;
const hidden = new Proxy({}, { getPrototypeOf: () => assert.fail("looked at"), get: () => assert.fail("looked at") });
const awkward = {
  get message() {
    return assert.fail("looked at");
  },
};
const getters = Object.defineProperty(new Error("x"), "name", { get: () => assert.fail("looked at") });

/** Thrown values, and what `onError` hears of them. */
const unsent = {
  bigint: [() => new RpcError(4242, "m", { b: [1n] }), /"b\[0\]": a bigint is not JSON/],
  circle: [() => new RpcError(4242, "m", { circle }), /"circle.me": it holds itself/],
  function: [() => new RpcError(4242, "m", () => 1), /a function is not JSON/],
  nan: [() => new RpcError(4242, "m", { x: Number.NaN }), /"x": NaN is not JSON/],
  code: [() => Object.assign(new RpcError(1, "m"), { code: "x" }), /i64/],
  message: [() => Object.assign(new RpcError(1, "m"), { message: 5 }), /String/],
  text: [() => Object.assign(new ToolError("m"), { message: undefined }), /String/],
  proxy: [() => hidden, /looked at/],
};

for (const [name, [make, why]] of Object.entries(unsent)) {
  for (const isAsync of [false, true]) {
    test(`an error that cannot be sent is answered: ${name}${isAsync ? ", later" : ""}`, async (t) => {
      const heard = [];
      const app = new Server("test", { onError: (error, tool) => heard.push([error, tool]) });
      app.tool("fail", {}, () => {
        if (isAsync) return Promise.reject(make());
        throw make();
      });
      const client = await connect(app);
      t.after(() => client.close());
      await assert.rejects(client.callTool("fail", {}, { timeout: 10_000 }), (error) => {
        assert.ok(error instanceof RpcError);
        assert.equal(error.code, -32603);
        assert.match(error.message, /^tool "fail" failed: its \w+ cannot be sent$/);
        return true;
      });
      const [[error, tool], ...more] = heard;
      assert.ok(error instanceof MisuseError);
      assert.match(error.message, why);
      assert.deepEqual([tool, more], ["fail", []]);
    });
  }
}

test("anything may be thrown", async (t) => {
  const heard = [];
  const app = new Server("test", { onError: (error) => heard.push(error) });
  const thrown = [null, undefined, Symbol("x"), Object.create(null), { constructor: null }, 5, getters];
  app.tool("fail", {}, ({ at }) => {
    throw thrown[at];
  });
  const client = await connect(app);
  t.after(() => client.close());
  for (const at of thrown.keys()) {
    const { isError, text } = await client.callTool("fail", { at }, { timeout: 10_000 });
    assert.equal(isError, true);
    assert.match(text, /^tool "fail" failed: (object|undefined|symbol|number|error)$/);
  }
  assert.deepEqual(heard, thrown);
});

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`a client's handler, a prompt and middleware, ${revision}`, async (t) => {
    const refuse = () => {
      throw new RpcError(1, "m", 1n);
    };
    const app = new Server("test", { onError: () => {} });
    app.prompt("p", {}, refuse);
    app.tool("ask", {}, async (_, ctx) => `${(await ctx.elicit("A?", { type: "object", properties: {} })).action}`);
    app.middleware(({ params }, ctx, next) => (params?.name === "around" ? refuse() : next({ params }, ctx)));
    app.tool("around", {}, () => "x");
    const outward = ({ method }, ctx, next) => {
      if (method === "prompts/get") throw awkward;
      return next({}, ctx);
    };
    const client = await connect(app, { revision, elicitation: { form: refuse }, onError: () => {} });
    t.after(() => client.close());
    if (revision === "2026-07-28") {
      await assert.rejects(client.callTool("ask", {}, { timeout: 10_000 }), /its RpcError cannot be sent/);
    } else {
      assert.match((await client.callTool("ask", {}, { timeout: 10_000 })).text, /its RpcError cannot be sent/);
    }
    await assert.rejects(client.callTool("around", {}, { timeout: 10_000 }), /its RpcError cannot be sent/);
    await assert.rejects(client.getPrompt("p", {}, { timeout: 10_000 }), /its RpcError cannot be sent/);
    const other = await connect(app, { revision, middleware: [outward] });
    t.after(() => other.close());
    await assert.rejects(other.getPrompt("p", {}, { timeout: 10_000 }), (error) => error === awkward);
  });
}

test("a code and a message that are none", () => {
  for (const code of [1.5, "x", Number.NaN, 2 ** 60, undefined, null, 1n]) {
    assert.throws(() => new RpcError(code, "m"), /^MisuseError: RpcError: code: expected an integer/);
  }
  assert.throws(() => new RpcError(1), /^MisuseError: RpcError: message: expected a string, got undefined/);
  const { code, message } = errorFrom({ kind: "rpc", code: 2 ** 60, message: "a peer's" });
  assert.deepEqual([code, message], [2 ** 60, "a peer's"]);
});

test("parameters that the protocol does not have", async (t) => {
  const app = new Server("test");
  app.tool("t", {}, () => "x");
  app.prompt("p", {}, () => "x");
  app.resource("notes://1", {}, () => "x");
  const client = await connect(app);
  t.after(() => client.close());
  const group = await connectMany({ only: app });
  t.after(() => group.close());
  const cases = (one) => [
    [() => one.callTool(5), /callTool: name: expected a string, got 5/],
    [() => one.callTool("t", null), /callTool: arguments: expected an object/],
    [() => one.callTool("t", []), /callTool: arguments: expected an object.*got a list/],
    [() => one.callTool("t", "x"), /callTool: arguments: expected an object.*got a string/],
    [() => one.callTool("t", new Map()), /callTool: arguments: .*Map; give its Object.fromEntries/],
    [() => one.callTool("t", { a: [{ b: 1n }] }), /"arguments.a\[0\].b": a bigint is not JSON/],
    [() => one.callTool("t", { circle }), /"arguments.circle.me": it holds itself/],
    [() => one.callTool("t", { a: Number.NaN }), /"arguments.a": NaN is not JSON/],
    [() => one.callTool("t", {}, { meta: 5 }), /callTool: meta: expected an object/],
    [() => one.callTool("t", {}, { meta: { a: 1n } }), /"_meta.a": a bigint/],
    [() => one.getPrompt(null), /getPrompt: name: expected a string/],
    [() => one.getPrompt("p", [1]), /getPrompt: arguments: expected an object/],
    [() => one.getPrompt("p", { a: 1n }), /getPrompt: "arguments.a": a bigint/],
    [() => one.readResource(undefined), /readResource: uri: expected a string/],
    [() => one.subscribe(5), /subscribe: uri: expected a string/],
    [() => one.complete("p", "a", ""), /complete: ref: expected an object/],
    [() => one.complete({ type: "ref/prompt", name: "p" }, 5, ""), /complete: argument: expected a string/],
    [() => one.complete({ type: "ref/prompt", name: "p" }, "a", "", [1]), /complete: args: expected an object/],
  ];
  for (const one of [client, group]) {
    for (const [call, why] of cases(one)) {
      if (one === group && call === undefined) continue;
      await assert.rejects(
        async () => call(),
        (error) => {
          assert.ok(error instanceof MisuseError, `${call}: ${error}`);
          assert.match(error.message, why);
          return true;
        },
      );
    }
  }
  for (const [call, why] of [
    [() => client.callToolTask("t", [1]), /callToolTask: arguments: expected an object/],
    [() => client.callTool("t", {}, 5), /tools\/call: options: expected an object/],
    [() => client.callTool("t", {}, null), /tools\/call: options: expected an object/],
    [() => client.request("x/y", [1]), /x\/y: parameters: expected an object/],
    [async () => client.notify("x/y", [1]), /x\/y: parameters: expected an object/],
  ]) {
    await assert.rejects(call, (error) => error instanceof MisuseError && why.test(error.message));
  }
  assert.throws(
    () => new Server("x", { requestStateKeys: [] }),
    /"requestStateKeys": expected secrets.*, got none; without the option/,
  );
});

for (const [revision, code] of [
  ["2025-11-25", -32002],
  ["2026-07-28", -32602],
]) {
  test(`a resource that is not there, ${revision}`, async (t) => {
    const app = new Server("test");
    app.resource("notes://{n}", {}, ({ n }) => {
      if (n === "spelt") throw new RpcError(-32602, "no", { uri: "notes://Spelt otherwise" });
      if (n === "wrong") throw new RpcError(-32602, "no", { uri: 1 });
      throw new ResourceNotFoundError(`notes://${n}`);
    });
    const client = await connect(app, { revision });
    t.after(() => client.close());
    const group = await connectMany({ only: app }, { revision });
    t.after(() => group.close());
    for (const one of [client, group]) {
      for (const uri of ["notes://1", "none://x"]) {
        await assert.rejects(one.readResource(uri), (error) => {
          assert.ok(error instanceof ResourceNotFoundError);
          assert.deepEqual([error.code, error.data], [code, { uri }]);
          return true;
        });
      }
    }
    await assert.rejects(client.readResource("notes://spelt"), ResourceNotFoundError);
    await assert.rejects(client.readResource("notes://wrong"), (error) => error.constructor === RpcError);
    await assert.rejects(client.request("resources/read", { uri: "notes://1" }), RpcError);
  });
}

const half = "caf\udce9 \ud83d\ude00 C:\\ud800 \ud83d";
const sent = "caf\ufffd \ud83d\ude00 C:\\ud800 \ufffd";

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`text that is no Unicode is sent with U+FFFD, ${revision}`, async (t) => {
    const seen = [];
    const app = new Server("test", { instructions: half });
    app.tool("value", { description: half }, ({ name }) => {
      seen.push(name);
      return { [half]: half, list: [half] };
    });
    app.tool("block", {}, () => result({ content: [{ type: "text", text: half }] }));
    app.tool("fail", {}, () => {
      throw new RpcError(4242, half, { [half]: half });
    });
    app.tool("ask", {}, async (_, ctx) => {
      seen.push(await ctx.step("s", () => half));
      return (await ctx.elicit(half, { type: "object", properties: { a: { type: "string" } } })).content.a;
    });
    app.prompt("p", {}, ({ a }) => seen.push(a) && { role: "user", content: { type: "text", text: half } });
    app.resource("notes://1", { title: half }, () => ({ text: half }));
    const elicitation = ({ message }) => seen.push(message) && { a: half };
    const client = await connect(app, { revision, elicitation });
    t.after(() => client.close());
    assert.equal(client.instructions, sent);
    assert.equal((await client.listTools())[0].description, sent);
    assert.equal((await client.listResources())[0].title, sent);
    const value = { [sent]: sent, list: [sent] };
    assert.deepEqual(JSON.parse((await client.callTool("value", { name: half })).text), value);
    assert.equal((await client.callTool("block")).text, sent);
    await assert.rejects(client.callTool("fail"), ({ message, data }) => {
      assert.deepEqual([message, data], [sent, { [sent]: sent }]);
      return true;
    });
    assert.equal((await client.callTool("ask")).text, sent);
    assert.equal((await client.getPrompt("p", { a: half })).messages[0].content.text, sent);
    assert.equal((await client.readResource("notes://1")).text, sent);
    assert.deepEqual(new Set(seen), new Set([sent]));
    assert.deepEqual(JSON.parse(loggable({ [half]: half })), { [sent]: sent });
  });
}
