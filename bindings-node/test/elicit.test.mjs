// Forms and pages for the user: what becomes of a schema, and of what the user does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Form, MisuseError, PeerMisbehavedError, RpcError, Server, UrlElicitationRequiredError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { asking, deferred, legacy, within } from "./program.mjs";

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

test("elicitation: a form that is made before anybody is asked", async () => {
  const form = new Form(size);
  assert.deepEqual(new Form(form.schema).schema, form.schema);
  const answer = await asking((ctx) => ctx.elicit("?", form), { elicitation: () => ({ size: "S" }) });
  assert.deepEqual(answer, { action: "accept", content: { size: "S", count: 1, gift: false } });
  const nested = z.object({ home: z.object({ street: z.string() }) });
  for (const [schema, message] of [
    [nested, /property "home"/],
    [z.toJSONSchema(nested), /property "home"/],
    [{ type: "array" }, /expected "type": "object"/],
  ]) {
    assert.throws(() => new Form(schema), { name: "MisuseError", message });
  }
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
  await assert.rejects(
    odd,
    (error) => error instanceof PeerMisbehavedError && /does not fit the form: answer "n": must be even/.test(error),
  );
});

test("elicitation: a form may have a field called action", async () => {
  const form = z.object({ action: z.enum(["accept", "decline"]), why: z.string().optional() });
  for (const [given, got] of [
    // A refusal is one, however the server calls its fields.
    [{ action: "decline" }, { action: "decline" }],
    [{ action: "decline", why: "x" }, { action: "decline" }],
    [{ action: "accept" }, { action: "accept", content: { action: "accept" } }],
    [
      { action: "accept", content: { action: "decline" } },
      { action: "accept", content: { action: "decline" } },
    ],
    ["decline", { action: "decline" }],
    ["cancel", { action: "cancel" }],
  ]) {
    assert.deepEqual(await asking((ctx) => ctx.elicit("?", form), { elicitation: () => given }), got);
  }
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
    const { action } = await ctx.elicitUrl("Sign in", new URL("https://example.com/in?id=7"), "7");
    ctx.elicitationComplete("7");
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

test("elicitation: a form keeps what forms have, the library checks the rest", async () => {
  let seen;
  const ask = async (schema, content) => {
    const elicitation = ({ requestedSchema }) => {
      seen = requestedSchema;
      return content;
    };
    return (await asking((ctx) => ctx.elicit("?", schema), { elicitation })).content;
  };
  const own = { "com.example/a": 1 };
  const all = z.object({
    literal: z.literal("x"),
    either: z.union([z.literal("a"), z.literal("b")]),
    id: z.uuid(),
    positive: z.number().positive(),
    count: z.int().positive().lt(10),
    step: z.number().multipleOf(5),
    nothing: z.string().nullable(),
    choice: z.enum(["a", "b"]).nullable(),
    prefix: z.string().startsWith("x").min(2),
    when: z.iso.datetime().describe("When").meta(own),
    yes: z.literal(true),
    three: z.literal(3),
    extras: z.array(z.literal("e")).nullish().default(null),
  });
  const answer = {
    ...{ literal: "x", either: "b", id: "6ff2d3a0-6d4b-4b7a-8c55-0c1d9f2a1b11", positive: 1, count: 2, step: 10 },
    ...{ prefix: "xy", when: "2026-01-01T00:00:00Z", yes: true, three: 3 },
  };
  assert.deepEqual(await ask(all, answer), { ...answer, nothing: null, choice: null, extras: null });
  const text = { type: "string" };
  assert.deepEqual(seen, {
    type: "object",
    properties: {
      literal: { ...text, enum: ["x"] },
      either: { ...text, enum: ["a", "b"] },
      id: text,
      positive: { type: "number", minimum: 0 },
      count: { type: "integer", minimum: 1, maximum: 9 },
      step: { type: "number" },
      nothing: text,
      choice: { ...text, enum: ["a", "b"] },
      prefix: { ...text, minLength: 2 },
      when: { ...text, format: "date-time", description: "When" },
      yes: { type: "boolean" },
      three: { type: "number" },
      extras: { type: "array", items: { ...text, enum: ["e"] } },
    },
    required: Object.keys(answer),
  });
  for (const wrong of [{ id: "7" }, { step: 7 }, { prefix: "yy" }, { positive: 0 }, { yes: false }]) {
    await assert.rejects(ask(all, { ...answer, ...wrong }), (error) => {
      return (
        error instanceof PeerMisbehavedError &&
        error.message.includes(`does not fit the form: answer "${Object.keys(wrong)[0]}"`)
      );
    });
  }
});

test("elicitation: one value alone", async () => {
  const ask = (schema, value) => asking((ctx) => ctx.elicit("?", schema), { elicitation: () => ({ value }) });
  assert.deepEqual(await ask(z.string().min(2), "ab"), { action: "accept", content: "ab" });
  assert.deepEqual(await ask(z.enum(["a", "b"]).nullable(), "b"), { action: "accept", content: "b" });
  assert.deepEqual(await ask(z.int().transform(String), 7), { action: "accept", content: "7" });
  assert.deepEqual(await ask(z.boolean(), false), { action: "accept", content: false });
  assert.deepEqual(await ask(z.array(z.enum(["a", "b"])), ["b"]), { action: "accept", content: ["b"] });
  await assert.rejects(ask(z.string().startsWith("x"), "y"), PeerMisbehavedError);
  await assert.rejects(ask(z.array(z.string()), ["y"]), MisuseError);
});
