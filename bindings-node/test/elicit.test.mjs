// Forms and pages for the user: what becomes of a schema, and of what the user does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MisuseError, PeerMisbehavedError, RpcError, Server, UrlElicitationRequiredError } from "tricorn";
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
