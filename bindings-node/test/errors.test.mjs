// Whose errors a client learns of: those of its own call, and not what other peers said to the program.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  connect,
  connectMany,
  MisuseError,
  ResourceNotFoundError,
  RpcError,
  Server,
  TimeoutError,
  ToolError,
  UrlElicitationRequiredError,
} from "tricorn";
import { withClient } from "tricorn/testing";
import { asking, legacy } from "./program.mjs";

test("what another peer said is not passed on by accident", async () => {
  const upstream = new Server("upstream")
    .tool("refuse", () => {
      throw new RpcError(-32001, "user 7 of the database is locked", { secret: 1 });
    })
    .tool("wait", (_, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", reject)));
  const client = await connect(upstream);
  const heard = [];
  const app = new Server("front", { onError: (error) => heard.push(error.message) })
    .tool("refuse", () => client.callTool("refuse"))
    .tool("wait", () => client.callTool("wait", {}, { timeout: 1 }))
    .tool("own", () => {
      throw new RpcError(-32010, "made here", { a: 1 });
    })
    .tool("late", () => {
      throw new TimeoutError("the door is closed");
    })
    .tool("told", () => client.callTool("refuse").catch(({ code }) => Promise.reject(new RpcError(code, "refused"))))
    .prompt("refuse", async () => (await client.callTool("refuse")).text);
  await withClient(app, async (front) => {
    assert.equal((await front.callTool("refuse")).text, 'tool "refuse" failed: RpcError');
    assert.equal((await front.callTool("wait")).text, 'tool "wait" failed: TimeoutError');
    await assert.rejects(front.getPrompt("refuse"), { code: -32603, message: 'prompt "refuse" failed: RpcError' });
    await assert.rejects(front.callTool("own"), { code: -32010, message: "made here" });
    await assert.rejects(front.callTool("told"), { code: -32001, message: "refused" });
    assert.equal((await front.callTool("late")).text, "the door is closed");
  });
  assert.equal(heard.length, 3);
  assert.match(heard[0], /user 7/);
  await client.close();
});

test("of several errors at once the one that is meant for the client is the answer", async () => {
  const locked = () => new RpcError(-32001, "locked", { a: 1 });
  const thrown = {
    first: () => new AggregateError([new Error("secret"), new ToolError("sold out"), new ToolError("later")]),
    both: () => new AggregateError([locked(), new ToolError("sold out")]),
    nested: () => new AggregateError([new AggregateError([new ToolError("sold out")])]),
    code: () => new AggregateError([new Error("secret"), locked()]),
    codes: () => new AggregateError([locked(), locked()]),
    none: () => new AggregateError([new Error("secret")], "secret"),
  };
  const heard = [];
  const app = new Server("several", { onError: (error) => heard.push(error) });
  for (const [name, make] of Object.entries(thrown)) {
    app.tool(name, () => {
      throw make();
    });
  }
  const refused = await connect(
    new Server("upstream").tool("refuse", () => {
      throw locked();
    }),
  );
  app.tool("any", () => Promise.any([Promise.reject(new ToolError("sold out")), Promise.reject(new Error("secret"))]));
  app.tool("foreign", () => Promise.any([refused.callTool("refuse")]));
  app.resource("test://missing", {}, () => {
    throw new AggregateError([new ResourceNotFoundError("test://missing")]);
  });
  app.middleware(async (request, _context, next) => {
    if (request.params?.name !== "middleware") return next(request);
    throw new AggregateError([new ToolError("not today")]);
  });
  await withClient(app, async (client) => {
    for (const name of ["first", "both", "nested", "any"]) {
      const { isError, text } = await client.callTool(name);
      assert.deepEqual([isError, text], [true, "sold out"]);
    }
    await assert.rejects(client.callTool("code"), { code: -32001, message: "locked", data: { a: 1 } });
    await assert.rejects(client.readResource("test://missing"), ResourceNotFoundError);
    const { isError, text } = await client.callTool("middleware");
    assert.deepEqual([isError, text], [true, "not today"]);
    // The failures beside it are told to the program.
    assert.equal(heard.length, 3);
    for (const name of ["codes", "none"]) {
      assert.equal((await client.callTool(name)).text, `tool "${name}" failed: AggregateError`);
    }
    // Errors of other peers stay hidden, and the program hears of all.
    assert.equal((await client.callTool("foreign")).text, 'tool "foreign" failed: RpcError');
    assert.deepEqual(
      heard.map((error) => error.constructor),
      Array(6).fill(AggregateError),
    );
  });
  await refused.close();
});

test("an error that answers a question fails the call with its code and message", async () => {
  const sampling = () => {
    throw new RpcError(-1, "the user does not want to");
  };
  const app = new Server("own").tool("ask", (_, ctx) => ctx.sample("?", { maxTokens: 1 }));
  await withClient(
    app,
    async (client) => {
      const { isError, text } = await client.callTool("ask");
      assert.deepEqual([isError, text], [true, "the question was answered with error -1: the user does not want to"]);
    },
    { ...legacy, sampling },
  );
  // Kept by one call and thrown by another it is as foreign as any other.
  let kept;
  await asking((ctx) => ctx.sample("?", { maxTokens: 1 }), { sampling }).catch((error) => {
    kept = error;
  });
  const other = new Server("other", { onError: () => {} }).tool("ask", () => {
    throw kept;
  });
  await withClient(other, async (client) => {
    assert.equal((await client.callTool("ask")).text, 'tool "ask" failed: RpcError');
  });
});

test("a page to visit keeps what else its error says", async () => {
  const data = { elicitations: [{ mode: "url", elicitationId: "1", url: "https://example.com/" }], hint: { a: 1 } };
  const app = new Server("url").tool("visit", () => {
    throw new RpcError(-32042, "visit", data);
  });
  await withClient(
    app,
    async (client) => {
      const error = await client.callTool("visit").catch((error) => error);
      assert.ok(error instanceof UrlElicitationRequiredError);
      assert.deepEqual([error.message, error.data], ["visit", data]);
    },
    { ...legacy, elicitation: { url: () => "accept" } },
  );
});

test("a user is sent to web pages only", () => {
  const page = { elicitationId: "1", url: "https://example.com/", message: "m" };
  assert.equal(new UrlElicitationRequiredError([page]).data.elicitations[0].mode, "url");
  assert.throws(() => new UrlElicitationRequiredError([]), MisuseError);
  for (const url of ["javascript:alert(1)", "ftp://example.com/", "example.com", ""]) {
    const made = () => new UrlElicitationRequiredError([page, { ...page, url }]);
    assert.throws(made, { name: "MisuseError", message: /elicitations\[1\]: "url": expected an http or https URL/ });
  }
});

test("options that are wrong are refused by their own names", async () => {
  const app = new Server("options");
  const refused = (options, message) =>
    assert.rejects(connect(app, options), (error) => error instanceof MisuseError && message.test(error.message));
  await refused({ roots: "x" }, /^roots: expected a list/);
  await refused({ onLog: 5 }, /^onLog: expected a function/);
  await refused({ samplng: () => "" }, /unknown option "samplng", did you mean "sampling"\?/);
  await refused({ onNotifications: () => {} }, /did you mean "onNotification"\?/);
  await refused({ probeTimeuot: 5 }, /unknown option "probeTimeuot", did you mean "probeTimeout"\?/);
  assert.throws(() => new Server("x", { onErorr: () => {} }), /did you mean "onError"\?/);
  assert.throws(() => new Server("x", { onError: "log" }), /^MisuseError: onError: expected a function/);
});

test("options of one request that are wrong are refused", async () => {
  const app = new Server("options", { tasks: true, onError: () => {} })
    .tool("a", { taskSupport: "optional" }, () => "a")
    .tool("ask", (_, ctx) => ctx.listRoots({ timeuot: 1 }))
    .resource("a://a", "a")
    .prompt("a", () => "a");
  const wrong = { timeuot: 1 };
  const message = /: unknown option "timeuot", did you mean "timeout"\?$/;
  await withClient(
    app,
    async (client) => {
      for (const asked of [
        () => client.callTool("a", {}, wrong),
        () => client.callToolTask("a", {}, wrong),
        () => client.readResource("a://a", wrong),
        () => client.getPrompt("a", {}, wrong),
        () => client.listTools(wrong),
        () => client.listToolsPage(undefined, wrong),
        () => client.tools(wrong).next(),
        () => client.ping(wrong),
        () => client.setLogLevel("info", wrong),
        () => client.request("ping", {}, wrong),
      ]) {
        await assert.rejects(asked, { name: "MisuseError", message });
      }
      await assert.rejects(client.callTool("a", {}, { onprogress: () => {} }), /tools\/call: .*mean "onProgress"/);
      await assert.rejects(client.ping({ meta: {} }), /ping: unknown option "meta"/);
      assert.equal((await client.callTool("a", {}, { timeout: 1000, meta: {}, task: undefined })).text, "a");
      assert.match((await client.callTool("ask")).text, /failed: MisuseError/);
    },
    { ...legacy, roots: [] },
  );
  const group = await connectMany({ a: app });
  await assert.rejects(group.listTools(wrong), { name: "MisuseError", message });
  await assert.rejects(group.callTool("a", {}, wrong), { name: "MisuseError", message });
  await assert.rejects(group.setLogLevel("info", wrong), { name: "MisuseError", message });
  await group.close();
});

test("an error is shown without control characters, and with an end", () => {
  const text = `\x1b[31mred\x9b\x00\r\n\tend${"x".repeat(200_000)}`;
  for (const error of [new RpcError(-32000, text), new TimeoutError(text)]) {
    assert.equal(error.message, text);
    for (const shown of [String(error), error.stack, inspect(error)]) {
      assert.ok(shown.includes("\\x1b[31mred\\x9b\\x00\\x0d\n\tend"), shown.slice(0, 100));
      assert.ok(shown.length < 20_000);
    }
  }
  assert.equal(String(new TimeoutError("plain, ünïcode\nlines")), "TimeoutError: plain, ünïcode\nlines");
});
