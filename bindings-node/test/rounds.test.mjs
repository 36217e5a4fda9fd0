// Questions in every revision that has them: one handler, asked by requests or in rounds.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { InputRequired, MisuseError, Question, RpcError, TricornError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { bridge } from "../dist/core.js";
import { deferred, within } from "./program.mjs";
import { asks, everywhere, form, MODERN, named, REVISIONS } from "./rounds.mjs";

test("rounds: a question is accepted, declined or cancelled", async () => {
  const made = asks();
  made.app.tool("name", async (_, ctx) => {
    const { action, content } = await ctx.elicit("name?", z.object({ name: z.string() }));
    return content ? `hello ${content.name}` : action;
  });
  for (const [answer, text] of [
    [{ name: "Ada" }, "hello Ada"],
    ["decline", "decline"],
    ["cancel", "cancel"],
  ]) {
    await everywhere(
      made,
      () => answer,
      async (client, { asked }) => {
        assert.equal((await client.callTool("name")).text, text);
        assert.deepEqual(asked, ["name?"]);
      },
    );
  }
});

test("rounds: one question after the other, and a step that is done once", async () => {
  const made = asks();
  let steps = 0;
  let runs = 0;
  made.app.tool("three", async (_, ctx) => {
    runs++;
    const order = await ctx.step("order", async () => ({ id: ++steps, at: new Date(0) }));
    await ctx.step("nothing", () => {}).then((value) => assert.equal(value, null));
    await ctx.step("null", () => null).then((value) => assert.equal(value, null));
    const given = [];
    // The same question twice is two questions.
    for (const name of ["a", "b", "b"]) given.push((await ctx.elicit(`${name}?`, form(name))).content[name]);
    return `${order.id} ${order.at}: ${given.join(" ")}`;
  });
  await everywhere(made, named, async (client, { asked, rounds }) => {
    [steps, runs] = [0, 0];
    const expected = "1 1970-01-01T00:00:00.000Z: <a> <b> <b>";
    assert.equal((await client.callTool("three")).text, expected);
    assert.deepEqual(asked, ["a?", "b?", "b?"]);
    assert.equal(runs, rounds ? 4 : 1);
    // Another request is another matter.
    assert.equal((await client.callTool("three")).text, expected.replace("1", "2"));
  });
});

test("rounds: a step that fails is not done", async () => {
  const made = asks();
  let tries = 0;
  made.app.tool("flaky", async (_, ctx) => {
    const work = async () => {
      if (++tries === 1) throw new Error("not now");
      return tries;
    };
    const done = await ctx.step("work", work).catch((error) => error.message);
    const { content } = await ctx.elicit("a?", form("a"));
    return `${done} ${content.a}`;
  });
  await everywhere(made, named, async (client, { rounds }) => {
    tries = 0;
    assert.equal((await client.callTool("flaky")).text, rounds ? "2 <a>" : "not now <a>");
    assert.equal(tries, rounds ? 2 : 1);
  });
});

test("rounds: a step that is at work when the run ends is done once, too", async () => {
  const made = asks();
  let steps = 0;
  const work = async () => {
    for (let n = 0; n < 20; n++) await turn();
    return ++steps;
  };
  made.app
    .tool("both", async (_, ctx) => {
      const [n, { content }] = await Promise.all([ctx.step("slow", work), ctx.elicit("a?", form("a"))]);
      return `${n} ${content.a}`;
    })
    .tool("hand", async (_, ctx) => {
      const step = ctx.step("slow", work);
      const { a } = ctx.inputResponses;
      if (!a) return new InputRequired({ a: Question.elicit("a?", form("a")) }, { state: 1 });
      return `${await step} ${a.content.a}`;
    });
  for (const tool of ["both", "hand"]) {
    await everywhere(made, named, async (client) => {
      steps = 0;
      assert.equal((await client.callTool(tool)).text, "1 <a>", tool);
      assert.equal(steps, 1);
    });
  }
});

test("rounds: what a step has to be", async () => {
  const wrong = [];
  const { app } = asks();
  app.tool("wrong", async (_, ctx) => {
    await ctx.step("a", () => 1);
    for (const step of [
      () => ctx.step("a", () => 2),
      () => ctx.step("b", () => () => 3),
      () => ctx.step("c"),
      () => ctx.step(1),
    ]) {
      wrong.push(await step().then(assert.fail, (error) => [error.constructor, error.message]));
    }
  });
  for (const revision of REVISIONS) {
    await withClient(app, (client) => client.callTool("wrong"), { revision });
    const [again, none, ...others] = wrong.splice(0);
    assert.ok([again, none, ...others].every(([type]) => type === MisuseError));
    assert.match(again[1], /step "a": there are two of this name/);
    assert.match(none[1], /step "b": .*not JSON/);
    assert.deepEqual(
      others.map(([, message]) => message),
      ['step "c": expected a function', "step: name: expected a string, got 1"],
    );
  }
});

test("rounds: questions that are asked at the same time go out together", async () => {
  let runs = 0;
  const made = asks();
  const answers = ([a, b]) => `${a.content.a} ${b.content.b}`;
  made.app
    .tool("all", async (_, ctx) => {
      runs++;
      return answers(await Promise.all([ctx.elicit("a?", form("a")), ctx.elicit("b?", form("b"))]));
    })
    .tool("settled", async (_, ctx) => {
      runs++;
      const outcomes = await Promise.allSettled([ctx.elicit("a?", form("a")), ctx.elicit("b?", form("b"))]);
      return answers(outcomes.map(({ value, reason }) => value ?? assert.fail(reason)));
    })
    // The first ends the run: nobody waits for the second, and that is no unhandled rejection.
    .tool("started", async (_, ctx) => {
      runs++;
      const [a, b] = [ctx.elicit("a?", form("a")), ctx.elicit("b?", form("b"))];
      return answers([await a, await b]);
    })
    .tool("askAll", async (_, ctx) => {
      runs++;
      return answers(
        await ctx.askAll([Question.elicit("a?", form("a")), Question.elicit("b?", z.object({ b: z.string() }))]),
      );
    });
  const unhandled = [];
  const listener = (error) => unhandled.push(error);
  process.on("unhandledRejection", listener);
  try {
    for (const tool of ["all", "settled", "started", "askAll"]) {
      await everywhere(made, named, async (client, { asked, rounds, revision }) => {
        runs = 0;
        assert.equal((await client.callTool(tool)).text, "<a> <b>", `${tool} ${revision}`);
        assert.deepEqual(asked.sort(), ["a?", "b?"], `${tool} ${revision}`);
        assert.equal(runs, rounds ? 2 : 1, `${tool} ${revision}`);
      });
    }
    await turn();
  } finally {
    process.off("unhandledRejection", listener);
  }
  assert.deepEqual(unhandled, []);
});

test("askAll: every kind of question, and its answer", async () => {
  const made = asks();
  made.app.tool("all", async (_, ctx) => {
    const [name, page, said, roots] = await ctx.askAll([
      Question.elicit("name?", z.object({ name: z.string().transform((text) => text.length) })),
      Question.elicitUrl("page?", new URL("https://example.com/in"), "7"),
      Question.sample("Hello?", { maxTokens: 5 }),
      Question.listRoots(),
    ]);
    assert.deepEqual(await ctx.askAll([]), []);
    return [name.content.name, page.action, said.text, roots.map((root) => root.uri).join()].join(" ");
  });
  const options = { sampling: () => "hello", roots: ["file:///a", "file:///b"] };
  for (const revision of ["2025-11-25", MODERN]) {
    const elicitation = { form: () => ({ name: "Ada" }), url: () => "accept" };
    await withClient(
      made.app,
      async (client) => assert.equal((await client.callTool("all")).text, "3 accept hello file:///a,file:///b"),
      { ...options, elicitation, revision },
    );
  }
  assert.deepEqual(made.errors, []);
});

test("askAll: when one fails, the others are cancelled", async () => {
  const cancelled = deferred();
  const { app } = asks();
  let seen;
  app.tool("all", async (_, ctx) => {
    await assert.rejects(ctx.askAll("?"), { name: "MisuseError", message: /askAll: expected a list of questions/ });
    const questions = [Question.elicit("a?", form("a")), Question.sample("?", { maxTokens: 1 })];
    seen = await ctx.askAll(questions).then(assert.fail, (error) => error);
    throw seen;
  });
  const asked = deferred();
  const elicitation = async (_, ctx) => {
    asked.resolve();
    await once(ctx.signal, "abort");
    cancelled.resolve();
  };
  const sampling = async () => {
    await asked.promise;
    throw new RpcError(7, "no model");
  };
  const test = async (client) => {
    const failed = await within(client.callTool("all"), "the failure");
    assert.deepEqual([failed.isError, failed.text], [true, "the question was answered with error 7: no model"]);
    assert.ok(seen instanceof RpcError);
    await within(cancelled.promise, "the cancellation");
  };
  await withClient(app, test, { elicitation, sampling, revision: "2025-11-25" });
});

test("askAll: what is no JSON is named as where it is asked alone", async () => {
  const { app } = asks();
  const wrong = Question.sample("?", { maxTokens: 1, metadata: { a: [1n] } });
  app.tool("all", async (_, ctx) => {
    const expected = {
      name: "MisuseError",
      message: /^sampling\/createMessage: "metadata\.a\[0\]": a bigint is not JSON/,
    };
    await assert.rejects(ctx.ask(wrong.method, wrong.params), expected);
    await assert.rejects(ctx.askAll([Question.elicit("a?", form("a")), wrong]), expected);
    await assert.rejects(ctx.askAll([wrong, Question.elicit("a?", form("a"))]), expected);
    let looked = false;
    const metadata = {
      get once() {
        if (looked) return 1;
        looked = true;
        throw new RangeError("not yet");
      },
    };
    const late = ctx.askAll([Question.elicit("a?", form("a")), Question.sample("?", { maxTokens: 1, metadata })]);
    await assert.rejects(late, { name: "MisuseError", message: "sampling/createMessage: not yet" });
    return "named";
  });
  const elicitation = () => assert.fail("it was asked");
  for (const revision of ["2025-11-25", MODERN]) {
    const run = async (client) => assert.equal((await client.callTool("all")).text, "named");
    await withClient(app, run, { elicitation, sampling: () => assert.fail("it was asked"), revision });
  }
});

test("askAll: when the client cannot be asked one of them, it is asked none", async () => {
  const { app } = asks();
  app.tool("all", (_, ctx) => ctx.askAll([Question.elicit("a?", form("a")), Question.sample("?", { maxTokens: 1 })]));
  const elicitation = () => assert.fail("it was asked");
  for (const revision of ["2025-11-25", MODERN]) {
    await withClient(
      app,
      async (client) => {
        const said = await client.callTool("all").then(
          (result) => result.isError && result.text,
          (error) => error.code === -32021 && error.message,
        );
        assert.match(said, /"sampling"/);
      },
      { elicitation, revision },
    );
  }
});

test("rounds: prompts and resources ask, too", async () => {
  const made = asks();
  made.app
    .prompt("letter", async (_, ctx) => `to ${(await ctx.elicit("to?", form("to"))).content.to}`)
    .resource("memo://x", async (_, ctx) => `memo ${(await ctx.elicit("which?", form("which"))).content.which}`)
    .resource("memo://{day}/x", async ({ day }, ctx) => `${day} ${(await ctx.elicit("w?", form("w"))).content.w}`);
  await everywhere(made, named, async (client) => {
    assert.equal((await client.getPrompt("letter")).messages[0].content.text, "to <to>");
    assert.equal((await client.readResource("memo://x")).text, "memo <which>");
    assert.equal((await client.readResource("memo://7/x")).text, "7 <w>");
  });
});

test("rounds: the end of a run is no failure, whatever the handler makes of it", async () => {
  const made = asks();
  let seen = [];
  const ask = (ctx) => ctx.elicit("a?", form("a"));
  const caught = (error) => {
    seen.push(error);
    return error;
  };
  const handlers = {
    swallows: async (ctx) => (await ask(ctx).catch(caught)).content?.a ?? "nobody asked",
    wraps: (ctx) =>
      ask(ctx).then(
        ({ content }) => content.a,
        (cause) => {
          throw new Error("wrapped", { cause: caught(cause) });
        },
      ),
    gathers: async (ctx) => (await Promise.any([ask(ctx), ask(ctx)])).content.a,
    replaces: async (ctx) => {
      try {
        return (await ask(ctx)).content.a;
      } catch (error) {
        caught(error);
        throw new TypeError("of its own");
      }
    },
    breaks: async (ctx) => (await ask(ctx).catch(caught)).content?.a ?? (() => "not JSON"),
    returns: async (ctx) => {
      const answer = await ask(ctx).catch(caught);
      return answer.content?.a ?? answer;
    },
  };
  for (const [name, handler] of Object.entries(handlers)) made.app.tool(name, (_, ctx) => handler(ctx));
  for (const name of Object.keys(handlers)) {
    await everywhere(
      made,
      (message) => (name === "gathers" ? { a: "<a>" } : named(message)),
      async (client, { rounds, revision }) => {
        seen = [];
        assert.equal((await client.callTool(name)).text, "<a>", `${name} ${revision}`);
        assert.equal(seen.length, rounds && name !== "gathers" ? 1 : 0);
        for (const error of seen) {
          assert.ok(error instanceof InputRequired && error instanceof TricornError);
          assert.deepEqual([error.kind, error.name], ["input_required", "InputRequired"]);
        }
      },
    );
  }
});

test("rounds: a failure of the handler's own is reported", async () => {
  const made = asks();
  made.app.tool("bug", async (_, ctx) => {
    const { content } = await ctx.elicit("a?", form("a"));
    throw new TypeError(content.a);
  });
  for (const revision of REVISIONS) {
    await withClient(made.app, (client) => client.callTool("bug"), { elicitation: () => ({ a: "secret" }), revision });
    assert.deepEqual(
      made.errors.splice(0).map(([name, error]) => [name, error.message]),
      [["bug", "secret"]],
    );
  }
});

test("rounds: a handler that asks something else is told of both", async () => {
  const made = asks();
  let runs = 0;
  made.app.tool("odd", async (_, ctx) => (await ctx.elicit(`question ${runs++}?`, form("x"))).content.x);
  await withClient(
    made.app,
    (client) =>
      assert.rejects(client.callTool("odd"), { name: "RpcError", code: -32603, message: /question 0\?.*question 1\?/ }),
    { elicitation: () => ({ x: "y" }), revision: MODERN },
  );
});

test("rounds: who cannot be asked is not", async () => {
  const { app, errors } = asks();
  app.tool("name", async (_, ctx) => (await ctx.elicit("name?", form("name"))).content.name);
  for (const revision of REVISIONS) {
    await withClient(
      app,
      async (client) => {
        if (revision === MODERN) {
          const data = { requiredCapabilities: { elicitation: {} } };
          await assert.rejects(client.callTool("name"), { code: -32021, data });
        } else {
          const result = await client.callTool("name");
          assert.ok(result.isError && result.text.includes('"elicitation"'), result.text);
        }
      },
      { revision },
    );
  }
  assert.deepEqual(errors, []);
});

test("rounds: middleware asks, too", async () => {
  const made = asks();
  const results = [];
  made.app
    // What it makes of a result that is none yet is not the answer.
    .middleware(async (request, ctx, next) => {
      const result = await next(request, ctx);
      if (request.method !== "tools/call") return result;
      results.push(result.resultType ?? "complete");
      return { ...result, content: [...result.content, { type: "text", text: "!" }] };
    })
    .middleware(async (request, ctx, next) => {
      if (request.method === "tools/call") {
        const { action } = await ctx.elicit("sure?", form("sure"));
        if (action !== "accept") return { content: [{ type: "text", text: "not sure" }] };
      }
      return next(request, ctx);
    })
    .tool("name", async (_, ctx) => (await ctx.elicit("name?", form("name"))).content.name);
  await everywhere(made, named, async (client, { asked, rounds }) => {
    assert.equal((await client.callTool("name")).text, "<name>\n!");
    assert.deepEqual(asked, ["sure?", "name?"]);
    const before = rounds ? ["input_required", "input_required"] : [];
    assert.deepEqual(results.splice(0), [...before, "complete"]);
  });
  await everywhere(
    made,
    () => "decline",
    async (client) => assert.equal((await client.callTool("name")).text, "not sure\n!"),
  );
});

// Another round may be run by a server in another language, which reads it as it stands.
test("rounds: a step's result is kept as plain JSON", async (t) => {
  const stepped = t.mock.method(Object.getPrototypeOf(bridge), "stepped");
  const { app } = asks();
  app.tool("steps", async (_, ctx) => {
    await ctx.step("number", () => 7);
    await ctx.step("nothing", () => {});
  });
  await withClient(app, (client) => client.callTool("steps"), { revision: MODERN });
  const kept = stepped.mock.calls.map(({ arguments: [, name, text] }) => [name, text]);
  assert.deepEqual(kept, [
    ["number", "7"],
    ["nothing", "null"],
  ]);
});
