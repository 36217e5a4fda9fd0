// What stands around requests: functions of the user, and what the engine has.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import {
  CallToolResult,
  concurrencyLimit,
  connect,
  logging,
  MisuseError,
  RpcError,
  rateLimit,
  Server,
  ToolError,
  timing,
} from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { both, deferred, within } from "./program.mjs";

const quiet = { onError: () => {} };
const texts = (result) => result.content.map((block) => block.text);

test("middleware sees the request and changes it, and the result", async () => {
  const seen = [];
  const app = new Server("around")
    .tool("echo", ({ text }) => text)
    .resource("test://a", "contents")
    .prompt("greet", ({ name }) => `Greet ${name}.`)
    .middleware(async (request, context, next) => {
      seen.push([request.method, context.request.method]);
      if (request.method !== "tools/call") return next(request, context);
      const { name, arguments: args } = request.params;
      const result = await next({ ...request, params: { name, arguments: { text: `${args.text}, twice` } } }, context);
      return { ...result, content: [...result.content, ...result.content] };
    });
  await both(app, async (client) => {
    seen.length = 0;
    assert.deepEqual(texts(await client.callTool("echo", { text: "a" })), ["a, twice", "a, twice"]);
    assert.equal((await client.readResource("test://a")).text, "contents");
    assert.equal((await client.getPrompt("greet", { name: "Ann" })).messages[0].content.text, "Greet Ann.");
    const methods = ["tools/call", "resources/read", "prompts/get"];
    assert.deepEqual(
      seen.filter(([method]) => methods.includes(method)),
      methods.map((method) => [method, method]),
    );
  });
});

test("the first is the outermost; values and AsyncLocalStorage go along", async () => {
  const storage = new AsyncLocalStorage();
  const order = [];
  const app = new Server("values")
    .middleware(async (request, context, next) => {
      context.values.set("path", ["outer"]);
      const result = await storage.run("traced", () => next(request, context));
      order.push(...context.values.get("path"));
      return result;
    })
    .middleware(async function inner(request, context, next) {
      context.values.get("path").push("inner");
      return next(request, context);
    })
    .tool("path", (_, ctx) => {
      ctx.values.get("path").push("handler");
      return storage.getStore();
    })
    .tool("late", async (_, ctx) => {
      await null;
      ctx.values.get("path").push(storage.getStore());
    });
  await both(app, async (client) => {
    order.length = 0;
    assert.equal((await client.callTool("path")).text, "traced");
    assert.deepEqual(order.splice(0), ["outer", "inner", "handler"]);
    await client.callTool("late");
    assert.deepEqual(order.splice(0), ["outer", "inner", "traced"]);
  });
  // Only the handler has values when nobody stands around.
  const alone = new Server("alone").tool("own", (_, ctx) => ctx.values.set("a", 1).size);
  await withClient(alone, async (client) => assert.equal((await client.callTool("own")).text, "1"));
});

test("values that only the handler set are seen around it", async () => {
  let seen;
  const app = new Server("up")
    .middleware(async (request, context, next) => {
      const result = await next(request, context);
      if (request.method === "tools/call") seen = [...context.values];
      return result;
    })
    .middleware((request, context, next) => next(request, context))
    .tool("set", (_, ctx) => void ctx.values.set("user", 7));
  await withClient(app, (client) => client.callTool("set"));
  assert.deepEqual(seen, [["user", 7]]);
});

test("middleware need not go on", async () => {
  const errors = [];
  const app = new Server("stop", { onError: (error, name) => errors.push([error.message, name]) })
    .middleware(async function guard(request, context, next) {
      const { name, uri } = request.params ?? {};
      if (uri === "test://guarded") throw new ToolError("ask somebody else");
      if (name === "own") return { content: [{ type: "text", text: "from the cache" }] };
      if (name === "object") return new CallToolResult({ content: [], isError: true });
      if (name === "rpc") throw new RpcError(-32001, "not today", { when: "tomorrow" });
      if (name === "tool") throw new ToolError("ask somebody else");
      if (name === "bug") throw new TypeError("secret");
      if (name === "nothing") return undefined;
      return next(request, context);
    })
    .resource("test://guarded", "secret")
    .tool("real", () => "real");
  await both(app, async (client) => {
    errors.length = 0;
    assert.equal((await client.callTool("own")).text, "from the cache");
    assert.equal((await client.callTool("object")).isError, true);
    await assert.rejects(client.callTool("rpc"), (error) => {
      assert.deepEqual([error.code, error.message, error.data], [-32001, "not today", { when: "tomorrow" }]);
      return error instanceof RpcError;
    });
    const failed = await client.callTool("tool");
    assert.deepEqual([failed.isError, failed.text], [true, "ask somebody else"]);
    await assert.rejects(client.readResource("test://guarded"), { code: -32603, message: "ask somebody else" });
    for (const name of ["bug", "nothing"]) {
      await assert.rejects(client.callTool(name), { code: -32603, message: 'middleware "guard" failed: TypeError' });
    }
    assert.deepEqual(errors, [
      ["secret", "guard"],
      ["middleware must return a result object: that of next, or another one", "guard"],
    ]);
    assert.equal((await client.callTool("real")).text, "real");
    // What it is answered with otherwise passes.
    await assert.rejects(client.callTool("none"), { code: -32602, message: /none/ });
  });
});

test("next may be called again", async () => {
  let calls = 0;
  const app = new Server("retry")
    .middleware(async (request, context, next) => {
      for (let left = 2; ; left--) {
        const result = await next(request, context);
        if (!result.isError || left === 0) return result;
      }
    })
    .tool("flaky", () => {
      if (++calls < 3) throw new ToolError("again");
      return calls;
    });
  await withClient(app, async (client) => assert.equal((await client.callTool("flaky")).text, "3"));
});

test("cancelling the request cancels the function and what runs inside", async () => {
  const began = deferred();
  const ends = [];
  const over = deferred();
  const stopped = deferred();
  const app = new Server("cancel", quiet)
    .middleware(async (request, context, next) => {
      if (request.method !== "tools/call") return next(request, context);
      context.signal.addEventListener("abort", () => ends.push("signal"));
      try {
        return await next(request, context);
      } catch (error) {
        ends.push(error.name);
        over.resolve();
        throw error;
      }
    })
    .tool("wait", async (_, ctx) => {
      const aborted = new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
      began.resolve();
      await aborted.catch((error) => {
        ends.push("handler");
        stopped.resolve();
        throw error;
      });
    });
  await withClient(app, async (client) => {
    const controller = new AbortController();
    const call = client.callTool("wait", {}, { signal: controller.signal });
    await within(began.promise, "the call");
    controller.abort();
    await assert.rejects(call, { name: "AbortError" });
    await within(over.promise, "the end of the middleware");
    await within(stopped.promise, "the end of the handler");
    assert.deepEqual(ends.sort(), ["AbortError", "handler", "signal"]);
  });
});

test("middleware that does not wait cancels what runs inside", async () => {
  for (const give of ["return", "signal"]) {
    const began = deferred();
    const stopped = deferred();
    const app = new Server("hasty", quiet)
      .middleware(async (request, context, next) => {
        if (request.method !== "tools/call") return next(request, context);
        const controller = new AbortController();
        const inside = next(request, context, { signal: controller.signal });
        await began.promise;
        if (give === "signal") {
          controller.abort(new Error("enough"));
          await assert.rejects(inside, /enough/);
          await within(stopped.promise, "the end of the handler");
        }
        return { content: [{ type: "text", text: "no time" }] };
      })
      .tool("slow", async (_, ctx) => {
        ctx.signal.addEventListener("abort", () => stopped.resolve());
        began.resolve();
        await stopped.promise;
      });
    await withClient(app, async (client) => {
      assert.equal((await client.callTool("slow")).text, "no time");
      await within(stopped.promise, "the end of the handler");
    });
  }
  assert.deepEqual([bridgeMetrics().calls, bridgeMetrics().ops], [0, 0]);
});

test("a client's middleware", async () => {
  class Refused extends Error {}
  const refused = new Refused("not for us");
  const methods = [];
  const app = new Server("far")
    .tool("echo", ({ text }) => text)
    .tool("fail", () => {
      throw new RpcError(-32001, "no", { a: 1 });
    });
  const middleware = [
    async (request, context, next) => {
      methods.push(request.method);
      context.values.set("prefix", "> ");
      if (request.params?.name === "own") return { content: [{ type: "text", text: "mine" }] };
      if (request.params?.name === "refused") throw refused;
      return next(request, context);
    },
    async (request, context, next) => {
      if (request.params?.name !== "echo") return next(request, context);
      const { arguments: args, ...rest } = request.params;
      const text = context.values.get("prefix") + args.text;
      return next({ ...request, params: { ...rest, arguments: { text } } }, context);
    },
  ];
  await both(
    app,
    async (client) => {
      methods.length = 0;
      assert.equal((await client.callTool("echo", { text: "a" })).text, "> a");
      assert.equal((await client.callTool("own")).text, "mine");
      // The very same error, and a peer's as it was.
      assert.equal(await client.callTool("refused").catch((error) => error), refused);
      const error = await client.callTool("fail").catch((error) => error);
      assert.deepEqual([error instanceof RpcError, error.code, error.data], [true, -32001, { a: 1 }]);
      await client.listTools();
      assert.deepEqual(methods, ["tools/call", "tools/call", "tools/call", "tools/call", "tools/list"]);
    },
    { middleware },
  );
  await assert.rejects(connect(app, { middleware: () => {} }), MisuseError);
  await assert.rejects(connect(app, { middleware: [7] }), MisuseError);
});

test("a client's middleware is cancelled with its request", async () => {
  const app = new Server("idle").tool("echo", () => "");
  const began = deferred();
  const stopped = deferred();
  const waits = async (request, context, next) => {
    if (request.method !== "tools/call") return next(request, context);
    began.resolve();
    context.signal.addEventListener("abort", () => stopped.resolve());
    return stopped.promise;
  };
  await withClient(
    app,
    async (client) => {
      const controller = new AbortController();
      const call = client.callTool("echo", {}, { signal: controller.signal });
      await within(began.promise, "the middleware");
      controller.abort();
      await assert.rejects(call, { name: "AbortError" });
      await within(stopped.promise, "the end of the middleware");
    },
    { middleware: [waits] },
  );
});

test("limits", async () => {
  const app = new Server("limits").middleware(rateLimit(0.01, { burst: 1 })).tool("echo", () => "once");
  const limited = await connect(app);
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => limited.callTool("echo")));
  const refused = outcomes.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  assert.ok(refused.length >= 2);
  assert.equal(refused[0].code, -32603);
  assert.ok(refused[0].data.retryAfter > 0);
  await limited.close();

  const release = deferred();
  const busy = new Server("busy").tool("hold", () => release.promise);
  const client = await connect(busy, { middleware: [concurrencyLimit(1, { maxWaiting: 0 })] });
  const first = client.callTool("hold");
  await assert.rejects(client.callTool("hold"), { code: -32603, message: /concurrency limit/ });
  release.resolve("done");
  assert.equal((await first).text, "done");
  await client.close();
});

test("built-in middleware says which option is wrong", async () => {
  const app = new Server("wrong");
  assert.throws(() => app.middleware(rateLimit(-1)), MisuseError);
  assert.throws(() => app.middleware(concurrencyLimit(0)), /"max"/);
  assert.throws(() => app.middleware(concurrencyLimit(1, { maxWating: 1 })), /maxWating|maxWaiting/);
  assert.throws(() => app.middleware(7), MisuseError);
  assert.throws(() => logging({}), MisuseError);
});

test("timing adds up", async () => {
  const app = new Server("timing").middleware(timing()).tool("echo", () => "x");
  await withClient(
    app,
    async (client) => {
      await client.callTool("echo");
      await client.callTool("none").catch(() => {});
      const { count, failed, seconds, longest } = app.metrics().timing["tools/call"];
      assert.deepEqual([count, failed], [2, 1]);
      assert.ok(longest > 0 && seconds >= longest);
      assert.equal(client.metrics().timing["tools/call"].count, 2);
    },
    { middleware: [timing()] },
  );
});

test("logging, to a function and to a logger", async () => {
  const heard = [];
  const three = deferred();
  const hear = (record) => {
    if (record.method === "tools/call" && heard.push(record) === 3) three.resolve();
  };
  const lines = [];
  const logger = {
    info: (record, text) => lines.push(["info", record.method, text]),
    warn: (record, text) => lines.push(["warn", record.method, text]),
  };
  const app = new Server("logging", quiet)
    .middleware(logging(hear))
    .middleware(logging(logger))
    .tool("echo", () => "x")
    .tool("fail", () => {
      throw new ToolError("no");
    });
  const sent = [];
  const client = await connect(app, { middleware: [logging((record) => sent.push(record.method))] });
  await client.callTool("echo");
  await client.callTool("fail");
  await client.callTool("none").catch(() => {});
  await within(three.promise, "the third record");
  assert.deepEqual(
    heard.map(({ name, error, cancelled }) => [name, error === undefined, cancelled]),
    [
      ["echo", true, false],
      ["fail", true, false],
      ["none", false, false],
    ],
  );
  assert.ok(heard.every(({ seconds }) => seconds > 0));
  const calls = lines.filter(([, method]) => method === "tools/call");
  assert.deepEqual(
    calls.map(([level]) => level),
    ["info", "info", "warn"],
  );
  assert.match(calls[0][2], /^tools\/call "echo" [\d.]+ ms ok$/);
  assert.match(calls[2][2], /^tools\/call "none" [\d.]+ ms failed: /);
  await client.close();
  assert.equal(sent.filter((method) => method === "tools/call").length, 3);
});
