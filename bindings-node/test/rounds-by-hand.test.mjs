// Handlers that keep their rounds themselves, and the states that clients carry between rounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { InputRequired, MisuseError, Question, Server } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { within } from "./program.mjs";
import { asks, everywhere, form, MODERN, REVISIONS } from "./rounds.mjs";

test("rounds by hand: questions by key, and a state", async () => {
  const made = asks();
  const seen = [];
  const ask = (ctx) => {
    const { round = 0 } = ctx.requestState ?? {};
    const { who } = ctx.inputResponses;
    seen.push([round, who?.action, Object.keys(ctx.inputResponses).length]);
    if (round < 2)
      return new InputRequired({ who: Question.elicit(`${round}?`, form("x")) }, { state: { round: round + 1 } });
    return `${round}: ${who.content.x}`;
  };
  const thrown = (ctx) => {
    const value = ask(ctx);
    if (value instanceof InputRequired) throw value;
    return value;
  };
  made.app
    .tool("returned", (_, ctx) => ask(ctx))
    .tool("later", async (_, ctx) => ask(ctx))
    .tool("thrown", (_, ctx) => thrown(ctx))
    .tool("rejected", async (_, ctx) => thrown(ctx))
    .tool("typed", { output: z.object({ a: z.string() }) }, (_, ctx) => {
      const text = ask(ctx);
      return typeof text === "string" ? { a: text } : text;
    })
    .prompt("letter", (_, ctx) => ask(ctx))
    .resource("memo://x", (_, ctx) => ask(ctx));
  const calls = {
    ...Object.fromEntries(
      ["returned", "later", "thrown", "rejected"].map((name) => [
        name,
        async (client) => (await client.callTool(name)).text,
      ]),
    ),
    typed: async (client) => (await client.callTool("typed")).structured.a,
    letter: async (client) => (await client.getPrompt("letter")).messages[0].content.text,
    memo: async (client) => (await client.readResource("memo://x")).text,
  };
  for (const [name, call] of Object.entries(calls)) {
    await everywhere(
      made,
      (message) => ({ x: message }),
      async (client, { asked, revision }) => {
        seen.length = 0;
        assert.equal(await call(client), "2: 1?", `${name} ${revision}`);
        assert.deepEqual(asked, ["0?", "1?"], name);
        assert.deepEqual(seen, [
          [0, undefined, 0],
          [1, "accept", 1],
          [2, "accept", 1],
        ]);
      },
    );
  }
});

test("rounds by hand: a state alone, in every revision", async () => {
  const { app, errors } = asks();
  app.tool("later", async (_, ctx) => {
    if (ctx.requestState === 2) return "done";
    throw new InputRequired({}, { state: (ctx.requestState ?? 0) + 1 });
  });
  for (const revision of ["2024-11-05", "2025-03-26", ...REVISIONS]) {
    await withClient(app, async (client) => assert.equal((await client.callTool("later")).text, "done"), { revision });
  }
  assert.deepEqual(errors, []);
});

test("rounds by hand: what is wrong is said", async () => {
  const { app, errors } = asks();
  let context;
  app
    .tool("nothing", () => new InputRequired())
    .tool("circle", () => {
      const state = {};
      state.own = state;
      throw new InputRequired({}, { state });
    })
    .tool("nags", (_, ctx) => {
      context = ctx;
      throw new InputRequired({ again: Question.elicit("again?", form("x")) });
    })
    .prompt("first", (_, ctx) => String(ctx.requestState));
  assert.throws(() => new InputRequired({ who: "Who?" }), {
    name: "MisuseError",
    message: /"who": expected a Question/,
  });
  assert.throws(() => new InputRequired({ who: null }), MisuseError);
  for (const revision of REVISIONS) {
    await withClient(
      app,
      async (client) => {
        await assert.rejects(client.callTool("nothing"), /InputRequired: expected a question or a state/);
        const result = await client.callTool("circle");
        assert.ok(result.isError && result.text.includes("TypeError"), result.text);
        assert.equal(errors.splice(0).length, 1);
        await assert.rejects(client.callTool("nags"), /32 rounds/);
        assert.throws(() => context.inputResponses, /the call has finished/);
        assert.throws(() => context.requestState, /the call has finished/);
        assert.equal((await client.getPrompt("first")).messages[0].content.text, "undefined");
      },
      { revision, elicitation: () => "decline" },
    );
  }
  assert.deepEqual(errors, []);
});

test("the options of states", async () => {
  const key = "a secret for tests, longer than thirty-two bytes";
  new Server("keys", { requestStateKeys: [key, `${key}, too`], requestStateTtl: 1000, maxRequestStateBytes: 1 << 20 });
  for (const [options, message] of [
    [{ requestStateKeys: ["short"] }, /"requestStateKeys"/],
    [{ requestStateTtl: -1 }, /"requestStateTtl"/],
    [{ maxRequestStateBytes: 0 }, /"maxRequestStateBytes": expected at least 1/],
  ]) {
    assert.throws(() => new Server("wrong", options), { name: "MisuseError", message });
  }
  // The secret is in no message.
  assert.throws(
    () => new Server("wrong", { requestStateKeys: ["sesame"] }),
    (error) => !error.message.includes("sesame"),
  );
  // A state that is too long is not sent.
  const small = new Server("small", { maxRequestStateBytes: 300 }).tool("ask", async (_, ctx) => {
    await ctx.step("long", () => "x".repeat(1000));
    await ctx.elicit("a?", form("a"));
  });
  await withClient(small, (client) => assert.rejects(client.callTool("ask"), { code: -32603 }), {
    elicitation: () => ({ a: "b" }),
    revision: MODERN,
  });
});

test("rounds over HTTP: any server with the secret goes on; a state holds so long", async () => {
  const secret = "a secret for tests, longer than thirty-two bytes";
  const server = (options) =>
    new Server("asks", options).tool("ask", async (_, ctx) => {
      const { content } = await ctx.elicit("first?", form("a"));
      return content.a;
    });
  const [first, second, late, alone] = [
    server({ requestStateKeys: [secret] }),
    server({ requestStateKeys: [`${secret}, the next one`, secret] }),
    server({ requestStateKeys: [secret], requestStateTtl: 1 }),
    server({}),
  ];
  const post = async (app, more = {}) => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
    };
    const params = { name: "ask", arguments: {}, _meta: meta, ...more };
    const response = await app.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": MODERN,
          "mcp-method": "tools/call",
          "mcp-name": "ask",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      }),
    );
    return response.json();
  };
  const retry = ({ result }) => ({
    requestState: result.requestState,
    inputResponses: Object.fromEntries(
      Object.keys(result.inputRequests).map((key) => [key, { action: "accept", content: { a: "x" } }]),
    ),
  });
  const again = retry(await post(first));
  assert.equal((await post(second, again)).result.content[0].text, "x");
  const { error } = await post(alone, again);
  assert.ok(error.code === -32602 && error.message.includes("requestState"), error.message);
  const short = retry(await post(late));
  const refused = async () => (await post(late, short)).error?.code === -32602;
  assert.ok(
    await within(
      (async () => {
        while (!(await refused())) await turn();
        return true;
      })(),
      "the end of the state",
    ),
  );
  await Promise.all([first, second, late, alone].map((app) => app.close()));
});
