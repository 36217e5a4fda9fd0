// What a server asks its client during a call, and how clients answer.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  assistant,
  CancelledError,
  CreateMessageResult,
  connect,
  MisuseError,
  RpcError,
  Server,
  TimeoutError,
  UnsupportedError,
  user,
} from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";
import { asking, deferred, legacy, path, within } from "./program.mjs";

const quiet = { onError: () => {} };

test("sampling: text in, text out", async () => {
  const seen = [];
  const sampling = async (params, ctx) => {
    seen.push(params);
    assert.equal(ctx.request.method, "sampling/createMessage");
    return "four";
  };
  const result = await asking((ctx) => ctx.sample("two and two?", { maxTokens: 100 }), { sampling });
  assert.ok(result instanceof CreateMessageResult);
  assert.deepEqual([result.text, result.role, result.stopReason], ["four", "assistant", "endTurn"]);
  assert.deepEqual(seen, [
    { messages: [{ role: "user", content: { type: "text", text: "two and two?" } }], maxTokens: 100 },
  ]);
});

test("sampling: everything that can be said", async () => {
  const how = {
    maxTokens: 5,
    systemPrompt: "be brief",
    temperature: 0.5,
    stopSequences: ["."],
    modelPreferences: { hints: [{ name: "small" }], speedPriority: 1 },
    includeContext: "none",
    metadata: { a: 1 },
    tools: [{ name: "t", inputSchema: { type: "object" } }],
    toolChoice: { mode: "auto" },
  };
  const content = [
    { type: "text", text: "a" },
    { type: "tool_use", id: "1", name: "t", input: {} },
    { type: "text", text: "b" },
  ];
  let seen;
  const answer = (params) => {
    seen = params;
    return { role: "assistant", content, model: "m", stopReason: "toolUse" };
  };
  const messages = ["a", assistant("b"), { role: "user", content: "c" }, user("d")];
  const result = await asking((ctx) => ctx.sample(messages, { ...how, meta: { "com.example/a": 1 } }), {
    sampling: { answer, tools: true },
  });
  assert.deepEqual([result.text, result.model, result.stopReason], ["a\nb", "m", "toolUse"]);
  assert.deepEqual(result.content, content);
  const { messages: sent, _meta, ...rest } = seen;
  assert.deepEqual(rest, how);
  assert.equal(_meta["com.example/a"], 1);
  assert.deepEqual(
    sent.map(({ role, content }) => `${role} ${content.text}`),
    ["user a", "assistant b", "user c", "user d"],
  );
  const text = await asking((ctx) => ctx.sample("?", { maxTokens: 1 }), {
    sampling: () => ({ content: "short", model: "m" }),
  });
  assert.deepEqual([text.text, text.role, text.model], ["short", "assistant", "m"]);
});

test("a server hears that roots have changed", async () => {
  const heard = deferred();
  const app = new Server("roots").onRootsChanged(async (ctx) => heard.resolve(await ctx.listRoots()));
  await withClient(
    app,
    async (client) => {
      client.setRoots(["file:///b"]);
      assert.deepEqual(await within(heard.promise, "the change"), [{ uri: "file:///b" }]);
    },
    { ...legacy, roots: ["file:///a"] },
  );
});

test("a function's roots are said to have changed", async () => {
  const heard = deferred();
  const app = new Server("roots").onRootsChanged(async (ctx) => heard.resolve(await ctx.listRoots()));
  const roots = ["file:///a"];
  await withClient(
    app,
    async (client) => {
      roots[0] = "file:///b";
      client.rootsChanged();
      assert.deepEqual(await within(heard.promise, "the change"), [{ uri: "file:///b" }]);
    },
    { ...legacy, roots: () => roots },
  );
  const refused = { name: "MisuseError", message: /roots\.listChanged/ };
  for (const options of [legacy, {}]) {
    await withClient(app, async (client) => assert.throws(() => client.rootsChanged(), refused), options);
  }
});

test("changed roots need not be told where they are asked for when they are needed", async () => {
  const app = new Server("roots").tool("where", async (_, ctx) => (await ctx.listRoots())[0].uri);
  const roots = ["file:///a"];
  await withClient(
    app,
    async (client) => {
      roots[0] = "file:///b";
      client.rootsChanged();
      assert.equal((await client.callTool("where")).text, "file:///b");
    },
    { roots: () => roots },
  );
});

test("roots: a list that changes, and a function", async () => {
  let changes = 0;
  const list = async (_, ctx) => ctx.listRoots();
  const app = new Server("roots").tool("list", list);
  const folder = pathToFileURL(tmpdir()).href;
  const roots = [tmpdir(), new URL("file:///a%20b"), { uri: "file:///c", name: "C" }, "file:///d"];
  await withClient(
    app,
    async (client) => {
      const listed = async () => JSON.parse((await client.callTool("list")).text);
      assert.deepEqual(await listed(), [
        { uri: folder },
        { uri: "file:///a%20b" },
        { uri: "file:///c", name: "C" },
        { uri: "file:///d" },
      ]);
      client.setRoots(["file:///e"]);
      assert.deepEqual(await listed(), [{ uri: "file:///e" }]);
      assert.throws(() => client.setRoots([{ uri: "https://example.com" }]), MisuseError);
      assert.throws(() => client.setRoots(["https://example.com"]), MisuseError);
    },
    { ...legacy, roots },
  );
  const computed = () => [`file:///${++changes}`];
  await withClient(
    app,
    async (client) => {
      assert.equal((await client.callTool("list")).text, '[{"uri":"file:///1"}]');
      assert.equal((await client.callTool("list")).text, '[{"uri":"file:///2"}]');
      assert.throws(() => client.setRoots([]), MisuseError);
    },
    { ...legacy, roots: computed },
  );
});

test("a function of roots that returns none is told what is expected", async () => {
  const expected = "roots: expected the function to return a list of paths, URLs or roots, or an object with roots";
  for (const [returned, got] of [
    [undefined, "undefined"],
    ["file:///a", "'file:///a'"],
    [{ roots: "file:///a" }, "{ roots: 'file:///a' }"],
  ]) {
    const seen = [];
    const onError = (error, method) => seen.push([method, error.name, error.message]);
    const asked = asking((ctx) => ctx.listRoots(), { roots: async () => returned, onError });
    await assert.rejects(asked, { code: -32603, message: 'the answer to "roots/list" failed: MisuseError' });
    assert.deepEqual(seen, [["roots/list", "MisuseError", `${expected}, got ${got}`]]);
  }
});

test("what is not declared is not asked for", async () => {
  const asks = {
    sampling: (ctx) => ctx.sample("?", { maxTokens: 1 }),
    elicitation: (ctx) => ctx.elicit("?", z.object({})),
    roots: (ctx) => ctx.listRoots(),
  };
  for (const [capability, ask] of Object.entries(asks)) {
    const refused = (error) => {
      assert.ok(error instanceof UnsupportedError, error);
      assert.match(error.message, new RegExp(`was not sent: .*"${capability}"`));
      return true;
    };
    await assert.rejects(asking(ask, {}), refused);
  }
  const tools = (ctx) => ctx.sample("?", { maxTokens: 1, tools: [] });
  await assert.rejects(asking(tools, { sampling: () => "" }), /"sampling.tools"/);
  const page = (ctx) => ctx.elicitUrl("?", "https://example.com", "1");
  await assert.rejects(asking(page, { elicitation: () => null }), /"elicitation.url"/);
  await assert.rejects(
    asking((ctx) => ctx.ask("no/method"), { sampling: () => "" }),
    /no\/method/,
  );
});

test("what a client's functions throw", async () => {
  const seen = [];
  const failing = (error) => ({
    sampling: async () => {
      throw error;
    },
    onError: (error, method) => seen.push([method, error.message]),
  });
  const ask = (ctx) => ctx.sample("?", { maxTokens: 1 });
  await assert.rejects(asking(ask, failing(new RpcError(-1, "the user says no", { a: 1 }))), (error) => {
    assert.ok(error instanceof RpcError);
    assert.deepEqual([error.code, error.message, error.data], [-1, "the user says no", { a: 1 }]);
    return true;
  });
  await assert.rejects(asking(ask, failing(new TypeError("secret"))), (error) => {
    assert.equal(error.code, -32603);
    assert.equal(error.message, 'the answer to "sampling/createMessage" failed: TypeError');
    return true;
  });
  assert.deepEqual(seen, [["sampling/createMessage", "secret"]]);
  const nonsense = asking(ask, { ...quiet, sampling: () => 7 });
  await assert.rejects(nonsense, { code: -32603 });
});

test("a refusal that nobody catches is the tool's", async () => {
  const app = new Server("uncaught").tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  const sampling = () => {
    throw new RpcError(-1, "no");
  };
  app.prompt("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  app.tool("around", () => "x");
  app.middleware(async (request, ctx, next) => {
    if (request.params?.name === "around") await ctx.ask("sampling/createMessage", { messages: [], maxTokens: 1 });
    return next(request, ctx);
  });
  const told = "the question was answered with error -1: no";
  const asked = async (client) => {
    for (const tool of ["ask", "around"]) {
      const { isError, text } = await client.callTool(tool);
      assert.deepEqual([isError, text], [true, told], tool);
    }
    await assert.rejects(client.getPrompt("ask"), { code: -32603, message: told });
  };
  await withClient(app, asked, { ...legacy, sampling });
});

test("what became of a question is told, when nobody catches it", async () => {
  const onError = () => assert.fail("it is no secret");
  const app = new Server("told", { onError })
    .tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 }, { timeout: 50 })).text)
    .prompt("ask", async (_, ctx) => (await ctx.listRoots()).join());
  const sampling = (_, ctx) => new Promise(() => ctx.signal.addEventListener("abort", () => {}));
  await withClient(
    app,
    async (client) => {
      const { isError, text } = await client.callTool("ask");
      assert.equal(isError, true);
      assert.match(text, /^no answer to "sampling\/createMessage" within/);
      await assert.rejects(client.getPrompt("ask"), { code: -32603, message: /"roots"/ });
    },
    { ...legacy, sampling },
  );
  await withClient(app, async (client) => assert.match((await client.callTool("ask")).text, /"sampling"/), legacy);
});

test("what a model wrote is part of the next question", async () => {
  const conversation = async (ctx) => {
    const first = await ctx.sample("one", { maxTokens: 1 });
    return (await ctx.sample(["one", first, "two"], { maxTokens: 1 })).text;
  };
  const sampling = ({ messages }) => messages.map(({ role, content }) => `${role} ${content.text}`).join();
  assert.equal(await asking(conversation, { sampling }), "user one,assistant user one,user two");
});

test("cancelling a call cancels what it asked, on both sides", async () => {
  const asked = deferred();
  const gone = deferred();
  const over = deferred();
  const app = new Server("cancel").tool("ask", async (_, ctx) => {
    try {
      await ctx.elicit("?", z.object({}));
    } catch (error) {
      over.resolve(error);
      throw error;
    }
  });
  const elicitation = (_, ctx) => {
    asked.resolve();
    return new Promise(() => ctx.signal.addEventListener("abort", () => gone.resolve(ctx.signal.reason.name)));
  };
  await withClient(
    app,
    async (client) => {
      const controller = new AbortController();
      const call = client.callTool("ask", {}, { signal: controller.signal });
      await within(asked.promise, "the question");
      controller.abort();
      await assert.rejects(call, { name: "AbortError" });
      assert.equal((await within(over.promise, "the end of the handler")).name, "AbortError");
      assert.equal(await within(gone.promise, "the end of the question"), "AbortError");
    },
    { ...legacy, elicitation },
  );
});

test("a question that takes too long, or is given up", async () => {
  const gone = [];
  const sampling = (_, ctx) =>
    new Promise((_resolve, reject) => {
      ctx.signal.addEventListener("abort", () => {
        gone.push(ctx.cancelled);
        reject(ctx.signal.reason);
      });
    });
  await assert.rejects(
    asking((ctx) => ctx.sample("?", { maxTokens: 1 }, { timeout: 50 }), { sampling }),
    TimeoutError,
  );
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 50);
  await assert.rejects(
    asking((ctx) => ctx.sample("?", { maxTokens: 1 }, { signal: controller.signal }), { sampling }),
    /enough/,
  );
  assert.ok(gone.every(Boolean));
});

test("progress of an answer, and several questions at once", async () => {
  const sampling = async ({ messages: [{ content }] }, ctx) => {
    ctx.progress(1, 2, "half");
    return content.text.toUpperCase();
  };
  const heard = [];
  const onProgress = (progress) => heard.push([progress.progress, progress.total, progress.message]);
  await asking((ctx) => ctx.sample("a", { maxTokens: 1 }, { onProgress }), { sampling });
  assert.deepEqual(heard, [[1, 2, "half"]]);
  const names = ["a", "b", "c"];
  const all = (ctx) => Promise.all(names.map(async (name) => (await ctx.sample(name, { maxTokens: 1 })).text));
  assert.deepEqual(await asking(all, { sampling }), ["A", "B", "C"]);
});

test("prompts and resources may ask, too", async () => {
  const sampled = async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text;
  const app = new Server("all").resource("test://ask", sampled).prompt("ask", sampled);
  await withClient(
    app,
    async (client) => {
      assert.equal((await client.readResource("test://ask")).text, "sampled");
      assert.equal((await client.getPrompt("ask")).messages[0].content.text, "sampled");
    },
    { ...legacy, sampling: () => "sampled" },
  );
});

test("a question runs in the AsyncLocalStorage of its call, and wrong options are refused", async () => {
  const storage = new AsyncLocalStorage();
  const app = new Server("scope").tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  const client = await storage.run("connect", () => connect(app, { ...legacy, sampling: () => storage.getStore() }));
  assert.equal((await storage.run("here", () => client.callTool("ask"))).text, "here");
  await client.close();
  await assert.rejects(connect(app, { sampling: {} }), MisuseError);
  await assert.rejects(connect(app, { elicitation: {} }), MisuseError);
  await assert.rejects(connect(app, { roots: ["https://example.com", { uri: "x" }] }), MisuseError);
  assert.deepEqual(bridgeMetrics(), { queued: 0, calls: 0, ops: 0, dropped: 0 });
});

test("a policy is an object with methods", async () => {
  class Policy {
    name = "policy";
    roots() {
      return [`file:///${this.name}`];
    }
    sampling() {
      return this.name;
    }
    elicitation() {
      return { said: this.name };
    }
  }
  class Parts {
    name = "parts";
    answer() {
      return this.name;
    }
    form() {
      return { said: this.name };
    }
  }
  const all = async (ctx) => [
    (await ctx.sample("?", { maxTokens: 1 })).text,
    (await ctx.elicit("?", z.object({ said: z.string() }))).content.said,
    (await ctx.listRoots()).map(({ uri }) => uri),
  ];
  const connected = async (options) => {
    let outcome;
    const app = new Server("policy").tool("ask", async (_, ctx) => {
      outcome = await all(ctx);
    });
    const client = await connect(app, options);
    await client.callTool("ask");
    await client.close();
    return outcome;
  };
  const policy = new Policy();
  policy.revision = legacy.revision;
  assert.deepEqual(await connected(policy), ["policy", "policy", ["file:///policy"]]);
  const parts = new Parts();
  const options = { ...legacy, sampling: parts, elicitation: parts, roots: [] };
  assert.deepEqual(await connected(Object.assign(options, { name: "own" })), ["parts", "parts", []]);
});

test("one policy object answers for many clients, and what is given beside it counts more", async () => {
  class Policy {
    #asked = [];
    roots = ["/srv/notes"];
    sampling({ messages }) {
      this.#asked.push(messages[0].content.text);
      return "from the policy";
    }
    elicitation({ message }) {
      this.#asked.push(message);
      return { n: 7 };
    }
    onLog({ data }) {
      this.#asked.push(data);
    }
    get asked() {
      return this.#asked;
    }
  }
  const ask = async (ctx) => {
    const said = (await ctx.sample("how?", { maxTokens: 1 })).text;
    const { n } = (await ctx.elicit("how many?", z.object({ n: z.number() }))).content;
    ctx.log("info", "logged");
    return [said, n, (await ctx.listRoots()).map(({ uri }) => uri)];
  };
  const policy = new Policy();
  const once = ["how?", "how many?", "logged"];
  for (const times of [1, 2]) {
    assert.deepEqual(await asking(ask, { policy }), ["from the policy", 7, ["file:///srv/notes"]]);
    assert.deepEqual(policy.asked, [...once, ...once].slice(0, 3 * times));
  }
  assert.equal((await asking(ask, { policy, sampling: () => "beside it", roots: undefined }))[0], "beside it");
  assert.deepEqual(policy.asked.slice(6), ["how many?", "logged"]);
  const app = new Server("none");
  for (const [nothing, message] of [
    [{ sampler: () => "x" }, /policy: the object has none of sampling, elicitation, roots, onLog/],
    [null, /policy: expected an object/],
    ["text", /policy: expected an object/],
    [{ onLog: "text" }, /onLog: expected a function/],
  ]) {
    await assert.rejects(connect(app, { policy: nothing }), { name: "MisuseError", message });
  }
});

test("the same over a pipe and over HTTP, until the client leaves", async (t) => {
  const app = new Server("http").tool("ask", async (_, ctx) => (await ctx.elicit("?", z.object({}))).action);
  const url = await new Promise((resolve) => void app.serveHttp({ port: 0, onListening: resolve }));
  t.after(() => app.close());
  const targets = [url, { command: process.execPath, args: [path("server")], stderr: "discard" }];
  for (const target of targets) {
    const asked = deferred();
    const gone = deferred();
    let wait = false;
    const elicitation = (_, ctx) => {
      if (!wait) return "decline";
      ctx.signal.addEventListener("abort", () => gone.resolve(ctx.cancelled));
      asked.resolve();
      return new Promise(() => {});
    };
    const client = await connect(target, { ...legacy, elicitation });
    assert.equal((await client.callTool("ask")).text, "decline");
    wait = true;
    const call = client.callTool("ask");
    call.catch(() => {});
    await within(asked.promise, "the question");
    await client.close();
    await assert.rejects(call);
    assert.equal(await within(gone.promise, "the end of the question"), true);
  }
});

test("a call that is over asks nothing", async () => {
  let kept;
  await asking(async (ctx) => {
    kept = ctx;
  }, {});
  await assert.rejects(kept.sample("?", { maxTokens: 1 }), CancelledError);
  assert.equal(kept.notify("notifications/message", { level: "info", data: 1 }), false);
  assert.throws(() => kept.setEnabled("tool", "ask", false), CancelledError);
});

test("ctx.notify knows what a server may say", async () => {
  await asking(async (ctx) => {
    assert.throws(() => ctx.notify("notifications/initialized"), MisuseError);
    assert.throws(() => ctx.notify("no/such"), MisuseError);
    assert.equal(ctx.notify("notifications/message", { level: "info", data: 1 }), true);
  }, {});
});
