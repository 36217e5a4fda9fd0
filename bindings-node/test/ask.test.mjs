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
  PeerMisbehavedError,
  RpcError,
  Server,
  TimeoutError,
  UnsupportedError,
  UrlElicitationRequiredError,
  user,
} from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";
import { deferred, legacy, path, within } from "./program.mjs";

const quiet = { onError: () => {} };

/** What `ask` comes to in a tool, seen from outside. */
async function asking(ask, options) {
  let outcome;
  const app = new Server("asking").tool("ask", async (_, ctx) => {
    outcome = await ask(ctx).then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
  });
  await withClient(app, (client) => client.callTool("ask"), { ...legacy, ...options });
  if (outcome.error) throw outcome.error;
  return outcome.value;
}

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

const size = z.object({
  size: z.enum(["S", "M", "L"]),
  count: z.int().min(1).default(1),
  mail: z.email().optional(),
  gift: z.boolean().default(false),
  extras: z.array(z.enum(["a", "b"])).optional(),
});

test("elicitation: a form from a schema, its answer as its type", async () => {
  let seen;
  const elicitation = (params) => {
    seen = params;
    return { size: "M", extras: ["a"] };
  };
  const answer = await asking((ctx) => ctx.elicit("Which size?", size), { elicitation });
  assert.deepEqual(answer, { action: "accept", content: { size: "M", count: 1, gift: false, extras: ["a"] } });
  assert.equal(seen.message, "Which size?");
  assert.deepEqual(seen.requestedSchema, {
    type: "object",
    properties: {
      size: { type: "string", enum: ["S", "M", "L"] },
      count: { type: "integer", minimum: 1, default: 1 },
      mail: { type: "string", format: "email" },
      gift: { type: "boolean", default: false },
      extras: { type: "array", items: { type: "string", enum: ["a", "b"] } },
    },
    required: ["size"],
  });
  const plain = { type: "object", properties: { a: { type: "string", "x-own": 1 } }, required: ["a"] };
  const raw = await asking((ctx) => ctx.elicit("?", plain), {
    elicitation: (params) => {
      seen = params;
      return { action: "accept", content: { a: "b" } };
    },
  });
  assert.deepEqual(raw, { action: "accept", content: { a: "b" } });
  assert.deepEqual(seen.requestedSchema, plain);
});

test("elicitation: what else the user may do", async () => {
  const form = z.object({ a: z.string().optional() });
  for (const [answer, action] of [
    ["decline", "decline"],
    ["cancel", "cancel"],
    [{ action: "cancel" }, "cancel"],
    [null, "decline"],
    [undefined, "decline"],
    [false, "decline"],
  ]) {
    const got = await asking((ctx) => ctx.elicit("?", form), { elicitation: async () => answer });
    assert.deepEqual(got, { action });
  }
  for (const answer of ["accept", true, {}]) {
    const got = await asking((ctx) => ctx.elicit("?", form), { elicitation: () => answer });
    assert.deepEqual(got, { action: "accept", content: {} });
  }
  // The client checks what its own function says; what only the schema library knows is checked where it is.
  const wrong = asking((ctx) => ctx.elicit("?", size), { elicitation: () => ({ size: "XXL" }) });
  await assert.rejects(wrong, { code: -32603, message: /answer "size": expected one of/ });
  const even = z.object({ n: z.int().refine((n) => n % 2 === 0, "must be even") });
  const odd = asking((ctx) => ctx.elicit("?", even), { elicitation: () => ({ n: 3 }) });
  await assert.rejects(odd, (error) => error instanceof PeerMisbehavedError && /field "n": must be even/.test(error));
});

test("elicitation: a form is flat", async () => {
  const refused = async (schema, message) => {
    const asked = asking((ctx) => ctx.elicit("?", schema), { elicitation: () => ({}) });
    await assert.rejects(asked, (error) => error instanceof MisuseError && message.test(error.message));
  };
  await refused(z.object({ deep: z.object({ a: z.string() }) }), /property "deep": type "object" is not allowed/);
  await refused(z.object({ list: z.array(z.string()) }), /property "list": /);
  await refused({ type: "string" }, /expected "type": "object"/);
});

test("elicitation: a page to visit", async () => {
  const seen = [];
  const url = (params) => {
    seen.push(params);
    return "accept";
  };
  const visit = async (ctx) => {
    const action = await ctx.elicitUrl("Sign in", new URL("https://example.com/in?id=7"), "7");
    ctx.notify("notifications/elicitation/complete", { elicitationId: "7" });
    return action;
  };
  const heard = deferred();
  const onNotification = (method, params) => heard.resolve([method, params.elicitationId]);
  assert.equal(await asking(visit, { elicitation: { form: () => ({}), url }, onNotification }), "accept");
  const asked = { mode: "url", message: "Sign in", url: "https://example.com/in?id=7", elicitationId: "7" };
  assert.deepEqual(seen, [asked]);
  assert.deepEqual(await within(heard.promise, "the end"), ["notifications/elicitation/complete", "7"]);
  // Who declares pages only is not asked for forms.
  const form = (ctx) => ctx.elicit("?", z.object({}));
  await assert.rejects(asking(form, { elicitation: { url } }), /UnsupportedError: .*"elicitation.form"/);
});

test("a page that has to be visited first", async () => {
  const pages = [{ elicitationId: "1", url: "https://example.com/in", message: "Sign in" }];
  const app = new Server("required").tool("mail", () => {
    throw new UrlElicitationRequiredError(pages);
  });
  await withClient(
    app,
    async (client) => {
      const error = await client.callTool("mail").then(assert.fail, (error) => error);
      assert.ok(error instanceof UrlElicitationRequiredError && error instanceof RpcError);
      assert.deepEqual([error.code, error.elicitations[0].url], [-32042, "https://example.com/in"]);
      assert.deepEqual(error.data, { elicitations: [{ mode: "url", ...pages[0] }] });
    },
    { ...legacy, elicitation: { url: () => "accept" } },
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
  await withClient(app, (client) => assert.rejects(client.callTool("ask"), { code: -1, message: "no" }), {
    ...legacy,
    sampling,
  });
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

test("clients keep their AsyncLocalStorage, and wrong options are refused", async () => {
  const storage = new AsyncLocalStorage();
  const app = new Server("scope").tool("ask", async (_, ctx) => (await ctx.sample("?", { maxTokens: 1 })).text);
  const client = await storage.run("here", () => connect(app, { ...legacy, sampling: () => storage.getStore() }));
  assert.equal((await client.callTool("ask")).text, "here");
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
