// Calls that go on after their answer, as the extension of revision 2026-07-28 has them.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { CancelledError, InputRequired, MisuseError, Question, RpcError, TaskHandle, UnsupportedError } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { deferred, LIMIT, within } from "./program.mjs";
import { asks, form, MODERN } from "./rounds.mjs";

const EXTENSION = "io.modelcontextprotocol/tasks";

/** A client that sends what it likes. */
function caller(app, extensions = { [EXTENSION]: {} }) {
  const post = async (method, name, params) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions },
    };
    const response = await app.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": MODERN,
          "mcp-method": method,
          "mcp-name": name,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
      }),
    );
    const text = await response.text();
    const event = text.split("\n").findLast((line) => line.startsWith("data: {"));
    return JSON.parse(event ? event.slice("data: ".length) : text);
  };
  const call = (name, more = {}) => post("tools/call", name, { name, arguments: {}, ...more });
  const task = (method, taskId, more = {}) => post(method, taskId, { taskId, ...more });
  return {
    call,
    task,
    /** Calls what becomes a task. Returns its id. */
    async start(name, more = {}) {
      const { result, error } = await call(name, more);
      assert.equal(result?.resultType, "task", JSON.stringify(result ?? error));
      return result.taskId;
    },
    /** The task, as soon as it is so. */
    async until(id, status) {
      const end = Date.now() + LIMIT;
      for (;;) {
        const { result } = await task("tasks/get", id);
        if (result?.status === status) return result;
        assert.ok(Date.now() < end, `${JSON.stringify(result)} is not ${status} within ${LIMIT} ms`);
        await turn();
      }
    },
  };
}

/** Answers to all that is asked. */
const answered = ({ inputRequests }, content) =>
  Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: "accept", content }]));

/** The same call in its next round. */
const again = (asked, content) => ({ requestState: asked.requestState, inputResponses: answered(asked, content) });

const textOf = ({ content }) => content[0].text;

/** A server that a test that fails leaves nothing of. */
function server(t, options) {
  const made = asks(options);
  t.after(() => made.app.close());
  return made;
}

/** Ends a test: nothing has failed, and nothing is left. */
async function over({ app, errors }) {
  await app.close();
  const end = Date.now() + LIMIT;
  for (;;) {
    const { calls, ops } = bridgeMetrics();
    if (calls + ops === 0) break;
    assert.ok(Date.now() < end, `${calls} calls and ${ops} operations are left`);
    await turn();
  }
  assert.deepEqual(errors, []);
}

test("a tool becomes a task, and what it asks waits there", async (t) => {
  const made = server(t, { tasks: true });
  const ids = [];
  made.app
    .tool("asks", { taskSupport: "optional" }, async (_, ctx) => {
      ids.push(ctx.request.taskId);
      ctx.setStatus("looking around");
      const { content } = await ctx.elicit("Who?", form("name"));
      return `Hello, ${content.name}!`;
    })
    .tool("by_hand", { taskSupport: "required" }, (_, ctx) => {
      const { who } = ctx.inputResponses;
      return who ? who.content.name : new InputRequired({ who: Question.elicit("Who else?", form("name")) });
    });
  const client = caller(made.app);
  const id = await client.start("asks");
  const asked = await client.until(id, "input_required");
  assert.deepEqual(ids, [id]);
  assert.equal(asked.statusMessage, "looking around");
  const [{ method, params }, ...others] = Object.values(asked.inputRequests);
  assert.deepEqual([method, params.message, others], ["elicitation/create", "Who?", []]);
  const update = await client.task("tasks/update", id, { inputResponses: answered(asked, { name: "Ada" }) });
  assert.equal(update.result.resultType, "complete");
  const done = await client.until(id, "completed");
  assert.deepEqual([textOf(done.result), done.inputRequests], ["Hello, Ada!", undefined]);

  const other = await client.start("by_hand");
  const question = await client.until(other, "input_required");
  assert.equal(Object.values(question.inputRequests)[0].params.message, "Who else?");
  await client.task("tasks/update", other, { inputResponses: answered(question, { name: "Eve" }) });
  assert.equal(textOf((await client.until(other, "completed")).result), "Eve");

  // Who takes no tasks is answered as ever.
  const plain = caller(made.app, {});
  const { result } = await plain.call("asks");
  assert.equal(result.resultType, "input_required");
  assert.equal(textOf((await plain.call("asks", again(result, { name: "Bob" }))).result), "Hello, Bob!");
  assert.deepEqual(ids, [id, undefined, undefined]);
  assert.equal((await plain.call("by_hand")).error.code, -32021);
  await over(made);
});

test("a handler goes on as a task, after a first round", async (t) => {
  const made = server(t, { tasks: true });
  const handler = async (_, ctx) => {
    const name = await ctx.elicit("Name?", form("name"));
    const isTask = ctx.runAsTask();
    assert.equal(ctx.runAsTask(), isTask);
    ctx.setStatus("getting old");
    await turn();
    assert.equal(ctx.progress(1), true);
    const age = await ctx.elicit("Age?", form("age"));
    return `${name.content.name} ${age.content.age} ${isTask}`;
  };
  made.app.tool("ages", handler);
  const client = caller(made.app);
  const first = (await client.call("ages")).result;
  assert.equal(first.resultType, "input_required");
  const id = await client.start("ages", again(first, { name: "Ada" }));
  const asked = await client.until(id, "input_required");
  assert.equal(asked.statusMessage, "getting old");
  assert.deepEqual(
    Object.values(asked.inputRequests).map(({ params }) => params.message),
    ["Age?"],
  );
  await client.task("tasks/update", id, { inputResponses: answered(asked, { age: "36" }) });
  assert.equal(textOf((await client.until(id, "completed")).result), "Ada 36 true");

  // Who declares nothing, and whose server has none, has nothing but rounds.
  const none = server(t);
  none.app.tool("ages", handler);
  for (const plain of [caller(made.app, {}), caller(none.app)]) {
    const name = (await plain.call("ages")).result;
    const age = (await plain.call("ages", again(name, { name: "Bob" }))).result;
    assert.equal(age.resultType, "input_required");
    assert.equal(textOf((await plain.call("ages", again(age, { age: "7" }))).result), "Bob 7 false");
  }
  await over(made);
});

test("tasks/cancel reaches the handler, and what it waits for", async (t) => {
  const made = server(t, { tasks: true });
  const ends = { waits: deferred(), asks: deferred() };
  made.app
    .tool("waits", async (_, ctx) => {
      ctx.runAsTask();
      await once(ctx.signal, "abort");
      ends.waits.resolve([ctx.signal.reason.name, ctx.setStatus("too late")]);
      throw ctx.signal.reason;
    })
    .tool("asks", { taskSupport: "required" }, async (_, ctx) => {
      const error = await ctx.elicit("Who?", form("name")).catch((error) => error);
      ends.asks.resolve([error.name, ctx.cancelled]);
      throw error;
    });
  const client = caller(made.app);
  for (const [name, status, end] of [
    ["waits", "working", ["AbortError", false]],
    ["asks", "input_required", ["AbortError", true]],
  ]) {
    const id = await client.start(name);
    await client.until(id, status);
    assert.equal((await client.task("tasks/cancel", id)).result.resultType, "complete");
    assert.deepEqual(await within(ends[name].promise, `the end of "${name}"`), end);
    const cancelled = await client.until(id, "cancelled");
    assert.deepEqual([cancelled.result, cancelled.error], [undefined, undefined]);
  }
  await over(made);
});

test("why there is no task", async (t) => {
  const made = server(t, { tasks: { maxTasks: 1 } });
  const heard = [];
  const open = deferred();
  let context;
  made.app
    .tool("early", async (_, ctx) => {
      const question = ctx.elicit("Who?", form("name"));
      await question.catch(() => {});
      assert.throws(() => ctx.runAsTask(), MisuseError);
      heard.push("early");
    })
    .tool("job", async (_, ctx) => {
      context = ctx;
      ctx.runAsTask();
      await open.promise;
      return "done";
    })
    .tool("more", (_, ctx) => {
      assert.throws(() => ctx.runAsTask(), RpcError);
      return "no room";
    })
    .tool("fails", (_, ctx) => String(ctx.runAsTask()));
  const client = caller(made.app);
  assert.equal((await client.call("early")).result.resultType, "input_required");
  assert.deepEqual(heard, ["early"]);
  const id = await client.start("job");
  assert.equal(textOf((await client.call("more")).result), "no room");
  assert.equal((await client.call("fails")).error.code, -32603);
  open.resolve();
  assert.equal(textOf((await client.until(id, "completed")).result), "done");
  assert.throws(() => context.runAsTask(), { name: "CancelledError" });
  await over(made);
});

test("what middleware gave the handler stays when the middleware is done", async (t) => {
  const storage = new AsyncLocalStorage();
  const made = server(t, { tasks: true });
  const [began, ended] = [deferred(), deferred()];
  let open;
  const job = async (_, ctx) => {
    ctx.runAsTask();
    await open.promise;
    return `${ctx.values.get("user")} ${storage.getStore()}`;
  };
  const seen = [];
  made.app
    .middleware(async (request, context, next) => {
      if (request.method !== "tools/call") return next(request, context);
      context.values.set("user", "Ada");
      const result = await storage.run("traced", () => next(request, context));
      seen.push(result.resultType);
      return result;
    })
    .middleware((request, context, next) => next(request, context))
    .tool("from_the_beginning", { taskSupport: "optional" }, job)
    .tool("later", job)
    .tool("endless", async (_, ctx) => {
      ctx.runAsTask();
      began.resolve();
      await once(ctx.signal, "abort");
      ended.resolve(ctx.values.get("user"));
    });
  const client = caller(made.app);
  for (const name of ["from_the_beginning", "later"]) {
    open = deferred();
    const id = await client.start(name);
    open.resolve();
    assert.equal(textOf((await client.until(id, "completed")).result), "Ada traced", name);
  }
  const id = await client.start("endless");
  await within(began.promise, "the call");
  await client.task("tasks/cancel", id);
  assert.equal(await within(ended.promise, "the end of the handler"), "Ada");
  assert.deepEqual(seen, ["task", "task", "task"]);
  await over(made);
});

test("a client follows its calls, or takes the task", async (t) => {
  const made = server(t, { tasks: { taskPollInterval: 50 } });
  const ended = deferred();
  made.app
    .tool("asks", { taskSupport: "optional" }, async (_, ctx) => {
      const { content } = await ctx.elicit("Who?", form("name"));
      return `Hello, ${content.name}!`;
    })
    .tool("later", async (_, ctx) => {
      const { content } = await ctx.elicit("First?", form("name"));
      return `${content.name} ${ctx.runAsTask()}`;
    })
    .tool("waits", { taskSupport: "required" }, async (_, ctx) => {
      await once(ctx.signal, "abort");
      ended.resolve();
    })
    .tool("fails", { taskSupport: "required" }, () => {
      throw new RpcError(-31050, "no such thing");
    })
    .tool("plain", () => "at once");
  const elicitation = ({ message }) => ({ name: message.slice(0, -1) });
  await withClient(
    made.app,
    async (client) => {
      assert.equal((await client.callTool("asks")).text, "Hello, Who!");
      assert.equal((await client.callTool("later")).text, "First true");
      await assert.rejects(client.callTool("fails"), { code: -31050 });

      const task = await client.callToolTask("asks");
      assert.ok(task instanceof TaskHandle);
      assert.equal((await within(task.wait(), "the end of the task")).status, "completed");
      assert.equal((await client.task(task.id).result()).text, "Hello, Who!");
      const followed = await client.callToolTask("asks");
      const statuses = [];
      const follow = async () => {
        for await (const { status } of followed.changes()) statuses.push(status);
      };
      await within(follow(), "the end of the task");
      assert.equal(statuses.at(-1), "completed");
      assert.equal((await followed.result()).text, "Hello, Who!");
      const failing = await client.callToolTask("fails");
      await assert.rejects(failing.result(), { code: -31050 });
      assert.equal((await failing.status()).status, "failed");
      const plain = await client.callToolTask("plain");
      assert.deepEqual([(await plain.status()).status, (await plain.result()).text], ["completed", "at once"]);

      const waits = await client.callToolTask("waits");
      const result = assert.rejects(waits.result(), CancelledError);
      assert.equal((await waits.cancel()).status, "cancelled");
      await within(ended.promise, "the end of the handler");
      await within(result, "the end of the task");
      // It stays as it is.
      assert.equal((await waits.cancel()).status, "cancelled");
    },
    { revision: MODERN, tasks: true, elicitation },
  );
  // Both sides have to declare it.
  const none = server(t);
  none.app.tool("plain", () => "at once");
  for (const [app, options] of [
    [made.app, { elicitation }],
    [none.app, { tasks: true }],
  ]) {
    await withClient(app, (client) => assert.rejects(client.callToolTask("plain"), UnsupportedError), {
      revision: MODERN,
      ...options,
    });
  }
  await over(made);
});

test("tasks are listened to by their ids", async (t) => {
  const made = server(t, { tasks: true });
  const goesOn = deferred();
  made.app.tool("work", { taskSupport: "required" }, async () => {
    await goesOn.promise;
    return "done";
  });
  const options = { revision: MODERN, tasks: true };
  await withClient(
    made.app,
    async (client) => {
      const [handle, other] = [await client.callToolTask("work"), await client.callToolTask("work")];
      const changes = client.listen({ tasks: [handle] });
      const honoured = { tools: false, prompts: false, resources: false, uris: [], tasks: [handle.id], extensions: {} };
      assert.deepEqual(await changes.honoured, honoured);
      goesOn.resolve();
      for (;;) {
        const { value } = await within(changes.next(), "a change");
        assert.deepEqual([value.type, value.task.taskId], ["taskChanged", handle.id]);
        if (value.task.status !== "completed") continue;
        assert.equal(textOf(value.task.result), "done");
        break;
      }
      changes.close();
      const known = client.listen({ tasks: [other.id, "unknown"] });
      assert.deepEqual((await known.honoured).tasks, [other.id]);
      known.close();
      for (const wrong of [handle.id, [7]]) assert.throws(() => client.listen({ tasks: wrong }), MisuseError);
      assert.throws(
        () => client.listen({ extensions: { taskIds: ["x"] } }),
        /say tools, prompts, resources, uris or tasks/,
      );
    },
    options,
  );
  await withClient(made.app, (client) => assert.rejects(client.listen({ tasks: ["x"] }).honoured, UnsupportedError), {
    revision: MODERN,
  });
  await over(made);
});
