// One judge for a type: with a schema library, that alone decides on arguments and results, in its own words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type } from "arktype";
import { connect, Extension, jsonSchema, MisuseError, result, Server, user } from "tricorn";
import { withClient } from "tricorn/testing";
import * as v from "valibot";
import { z } from "zod";
import { z as z3 } from "zod3";
import { within } from "./program.mjs";

/** The answer of a tool with this input: the arguments of its handler, or the text for the model. */
async function called(input, args, more = {}) {
  let seen;
  const app = new Server("judge").tool("t", { input, ...more }, (given) => {
    seen = given;
  });
  return withClient(app, async (client) => {
    const { isError, text } = await client.callTool("t", args);
    return isError ? text : seen;
  });
}

/** The answers of a tool with this output to clients of both eras, with the schema that they were told. */
async function returned(output, value, more = {}) {
  const failures = [];
  const app = new Server("judge", { onError: (error) => failures.push(error.message) });
  app.tool("t", { output, ...more }, () => value);
  const all = [];
  for (const revision of ["2026-07-28", "2025-11-25"]) {
    await withClient(
      app,
      async (client) => {
        const [{ outputSchema }] = await client.listTools();
        const got = await client.callTool("t");
        all.push({ outputSchema, got });
      },
      { revision },
    );
  }
  const [{ outputSchema, got }] = all;
  return { outputSchema, structured: got.structured, text: got.text, isError: got.isError, failures, all };
}

test("coercion, preprocessing and fallbacks see what came", async () => {
  const input = z.object({
    n: z.coerce.number(),
    list: z.preprocess((given) => String(given).split(","), z.array(z.string())),
    mode: z.enum(["a", "b"]).catch("a"),
    yes: z.stringbool(),
    day: z.coerce.date(),
    size: z.number().default(2),
    word: z.string().transform((word) => word.length),
  });
  const seen = await called(input, { n: "12", list: "x,y", mode: 5, yes: "yes", day: "2026-01-02", word: "four" });
  assert.deepEqual(seen, {
    n: 12,
    list: ["x", "y"],
    mode: "a",
    yes: true,
    day: new Date("2026-01-02"),
    size: 2,
    word: 4,
  });
});

test("the words of the library come after the argument's path", async () => {
  const input = z.object({
    at: z.iso.datetime(),
    mail: z.email(),
    id: z.string().regex(/^V\d+$/, "an id looks like V12"),
    n: z.number({ error: "n is a count" }),
    deep: z.object({ list: z.array(z.object({ a: z.int() })) }),
    gone: z.string(),
    either: z.union([z.string(), z.object({ a: z.number() })]),
  });
  const text = await called(input, {
    at: "no",
    mail: "no",
    id: "12",
    n: "x",
    deep: { list: [{ a: 1 }, { a: 1.5 }] },
    either: { a: "x" },
  });
  assert.deepEqual(text.split("; argument").join(";argument").split(";"), [
    'argument "at": Invalid ISO datetime',
    'argument "mail": Invalid email address',
    'argument "id": an id looks like V12',
    'argument "n": n is a count',
    'argument "deep.list[1].a": Invalid input: expected int, received number',
    'argument "gone": Invalid input: expected string, received undefined',
    'argument "either": Invalid input (Invalid input: expected string, received object',
    ' or "a": Invalid input: expected number, received string)',
  ]);
  const many = await called(z.object({ all: z.array(z.number()) }), { all: Array.from({ length: 100 }, () => "x") });
  assert.match(many, /; and 84 more$/);
});

test("other libraries judge, too", async () => {
  const input = v.object({ n: v.pipe(v.number(), v.maxValue(3, "three at most")), d: v.optional(v.string(), "x") });
  assert.deepEqual(await called(input, { n: 1, more: 1 }), { n: 1, d: "x" });
  assert.equal(await called(input, { n: 4 }), 'argument "n": three at most');
  const ark = type({ n: "number > 3", "day?": "string.date.iso.parse" });
  assert.deepEqual(await called(ark, { n: 4 }), { n: 4 });
  assert.match(await called(ark, { n: 1 }), /^argument "n": n must be more than 3/);
  const old = z3.object({ n: z3.coerce.number().max(9), word: z3.string().default("x") });
  assert.deepEqual(await called(old, { n: "5", more: 1 }), { n: 5, word: "x" });
  assert.equal(await called(old, { n: "12" }), 'argument "n": Number must be less than or equal to 9');
  for (const output of [v.object({ id: v.number() }), z3.object({ id: z3.number() })]) {
    const { structured, outputSchema, isError } = await returned(output, { id: 1, secret: 2 });
    assert.deepEqual([structured, isError], [{ id: 1 }, false]);
    assert.equal(outputSchema.properties.id.type, "number");
  }
});

test("an output strips, fills and converts", async () => {
  const row = z.object({ id: z.number(), seats: z.number().default(2) });
  const output = z.object({ rows: z.array(row), total: z.number().optional() });
  const whole = await returned(output, { rows: [{ id: 1, secret: "x" }], secret: "y", total: undefined });
  assert.deepEqual(whole.structured, { rows: [{ id: 1, seats: 2 }] });
  assert.ok(!whole.text.includes("secret"));
  assert.deepEqual(whole.outputSchema.properties.rows.items.required, ["id", "seats"]);
  for (const { got } of whole.all) assert.equal(got.isError, false);

  const length = await returned(z.object({ word: z.string().transform((word) => word.length) }), { word: "four" });
  assert.deepEqual([length.structured, length.failures], [{ word: 4 }, []]);

  const at = new Date("2026-01-02T03:04:05.000Z");
  const dated = await returned(z.object({ at: z.date() }), { at, more: 1 });
  assert.deepEqual(dated.structured, { at: at.toISOString() });
  assert.deepEqual(dated.outputSchema.properties.at, { type: "string", format: "date-time" });
  const text = await returned(z.object({ at: z.string() }), { at });
  assert.deepEqual(text.structured, { at: at.toISOString() });
  const codec = z.codec(z.iso.datetime(), z.date(), {
    decode: (text) => new Date(text),
    encode: (date) => date.toISOString(),
  });
  const coded = await returned(z.object({ at: codec }), { at, more: 1 });
  assert.deepEqual(coded.structured, { at: at.toISOString() });
  assert.equal(coded.outputSchema.properties.at.format, "date-time");

  const made = await returned(row, result({ structured: { id: 1, more: 1 }, meta: { a: 1 } }));
  assert.deepEqual([made.structured, made.all[0].got.meta.a], [{ id: 1, seats: 2 }, 1]);
  const list = await returned(z.array(row), [{ id: 1, more: 1 }]);
  assert.deepEqual(list.structured, [{ id: 1, seats: 2 }]);
  const later = await returned(
    z.object({ id: z.number().refine(async (n) => n > 0) }),
    Promise.resolve({ id: 1, more: 1 }),
  );
  assert.deepEqual(later.structured, { id: 1 });
  const loose = await returned(z.looseObject({ id: z.number() }), { id: 1, more: 1 });
  assert.deepEqual(loose.structured, { id: 1, more: 1 });
});

test("a result that does not fit says where to the program, and not to the client", async () => {
  const { isError, text, failures } = await returned(z.object({ a: z.object({ b: z.number() }) }), { a: { b: "x" } });
  assert.equal(isError, true);
  assert.equal(text, 'tool "t" failed: the result does not fit the outputSchema');
  assert.deepEqual(
    [...new Set(failures)],
    ['the result does not fit the outputSchema: result "a.b": Invalid input: expected number, received string'],
  );
  const nothing = await returned(z.object({ a: z.number() }), undefined);
  assert.equal(nothing.isError, true);
  const blocks = await returned(z.object({ a: z.number() }), result({ content: [] }));
  assert.match(blocks.failures[0], /structuredContent is missing/);
});

test("plain JSON Schema is the engine's to check", async () => {
  const input = jsonSchema({ type: "object", properties: { n: { type: "number" } }, required: ["n"] });
  assert.equal(await called(input, { n: "12x" }), 'argument "n": expected number, got "12x"');
  assert.deepEqual(await called(input, { n: "12" }), { n: 12 }, "some hosts write numbers as text");
  const { isError } = await returned(jsonSchema({ type: "object", required: ["id"] }), { more: 1 });
  assert.equal(isError, true);
  // Beside it the JSON Schema is what is listed, and nothing else.
  const beside = { inputSchema: { type: "object", properties: { n: { type: "string" } } } };
  assert.deepEqual(await called(z.object({ n: z.coerce.number() }), { n: "12" }, beside), { n: 12 });
});

test("prompts, templates and requests of extensions are judged so, too", async () => {
  const input = z.object({ n: z.coerce.number().max(5, "five at most"), at: z.iso.date().optional() });
  const search = new Extension("com.example/search").method("com.example/search", ({ n }) => ({ n }), {
    schema: input,
  });
  const app = new Server("judge", { extensions: [search] })
    .prompt("p", { input }, ({ n }) => `${typeof n} ${n}`)
    .resource("n://{n}", { input: input.pick({ n: true }) }, ({ n }) => `${typeof n} ${n}`);
  await withClient(
    app,
    async (client) => {
      assert.equal((await client.getPrompt("p", { n: "3" })).messages[0].content.text, "number 3");
      await assert.rejects(client.getPrompt("p", { n: "7" }), /argument "n": five at most/);
      await assert.rejects(client.getPrompt("p", { n: "1", at: "x" }), /argument "at": Invalid ISO date/);
      assert.equal((await client.readResource("n://3")).text, "number 3");
      await assert.rejects(client.readResource("n://7"), /argument "n": five at most/);
      assert.deepEqual((await client.request("com.example/search", { n: "4" })).n, 4);
      await assert.rejects(client.request("com.example/search", { n: 7 }), /"n": five at most/);
    },
    { extensions: { "com.example/search": {} } },
  );
});

test("formats stay formats in what is listed", async () => {
  const app = new Server("judge").tool("t", { input: z.object({ at: z.iso.datetime(), mail: z.email() }) }, () => "");
  await withClient(app, async (client) => {
    const [{ inputSchema }] = await client.listTools();
    assert.deepEqual([inputSchema.properties.at.format, inputSchema.properties.mail.format], ["date-time", "email"]);
  });
});

const refused = [
  [
    "a shape as output",
    { output: { sum: z.number() } },
    /tool "t": output: these are schemas by name.*z\.object\(\{ sum: … \}\)/,
  ],
  ["a shape as input", { input: { sum: z.number() } }, /tool "t": input: these are schemas by name/],
  ["a shape as inputSchema", { inputSchema: { sum: z.number() } }, /tool "t": inputSchema: these are schemas by name/],
  ["a shape of zod 3", { output: { sum: z3.number() } }, /these are schemas by name/],
  [
    "a shape of schemas",
    { output: { sum: { type: "number" } } },
    /"sum" is no keyword of JSON Schema: give \{"type": "object"/,
  ],
  [
    "a schema in a JSON Schema",
    { input: { type: "object", properties: { a: z.number() } } },
    /"properties\.a" in this JSON Schema is a schema of a library/,
  ],
  ["a schema of an old version", { input: { _def: {}, parse() {} } }, /zod has it since 3\.24/],
  ["a class", { input: class {} }, /a schema such as z\.object.*got a function/],
  ["an empty object", { input: {} }, /tool "t": inputSchema: expected "type": "object" at the top/],
  ["text", { output: "string" }, /expected a JSON Schema.*got a string/],
  ["a Map", { output: new Map() }, /is a Map/],
  ["what JSON has not", { output: z.object({ a: z.bigint() }) }, /BigInt cannot be represented/],
  [
    "a date, as nobody sends one",
    { input: z.object({ a: z.date() }) },
    /a Date is not JSON: z\.coerce\.date\(\) reads it from text$/,
  ],
  [
    "a transform beside a codec",
    { output: z.object({ a: z.stringbool(), b: z.string().transform((text) => text.length) }) },
    /a codec goes the way back, which a transform beside it cannot/,
  ],
  [
    "a transform in a pipe beside a codec",
    { output: z.object({ a: z.stringbool(), b: z.preprocess(Number, z.number()) }) },
    /a codec goes the way back, which a transform beside it cannot/,
  ],
  ["both", { input: z.object({}), inputSchema: z.object({}) }, /inputSchema beside input is its JSON Schema/],
];
for (const [name, options, message] of refused) {
  test(`${name} is refused where it is registered`, () => {
    assert.throws(
      () => new Server("judge").tool("t", options, () => 1),
      (error) => error instanceof MisuseError && message.test(error.message),
    );
  });
}

test("what others call otherwise is taken, or named", async () => {
  const app = new Server("judge");
  app.tool(
    "t",
    { inputSchema: z.object({ n: z.number().default(2) }), outputSchema: z.object({ n: z.number() }) },
    (given) => ({
      ...given,
      more: 1,
    }),
  );
  await withClient(app, async (client) => {
    assert.deepEqual((await client.callTool("t")).structured, { n: 2 });
  });
  assert.throws(
    () => app.tool("x", "adds numbers", () => 1),
    /the second argument is an object: \{ description: "adds numbers" \}/,
  );
  assert.throws(
    () => app.prompt("x", "adds numbers", () => "1"),
    /prompt "x": the second argument is an object: \{ description/,
  );
  assert.throws(
    () => app.tool("x", z.object({}), () => 1),
    /the second argument is an object of options: \{ input: schema \}/,
  );
  assert.throws(
    () => app.tool("x", { a: z.number() }, () => 1),
    /"a" is a schema: those of arguments are \{ input: z\.object/,
  );
  assert.throws(() => app.resource("x", "config://x", () => "1"), /the URI comes first/);
  assert.throws(() => app.tool("x", null, () => 1), /the second argument is an object of options, got null/);
  // As other SDKs make a server.
  assert.throws(() => new Server({ name: "shop", version: "1.0.0" }), /new Server\("shop", \{ version: "1.0.0" \}\)/);
  assert.throws(() => new Server("shop", "1.0.0"), /expected options, got "1.0.0": give \{ version: "1.0.0" \}/);
  assert.throws(() => app.tool("x", { descripton: "y" }, () => 1), /did you mean "description"/);
});

test("a prompt's message of several blocks is as many messages", async () => {
  const app = new Server("judge")
    .prompt("several", () =>
      user([
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ]),
    )
    .prompt("listed", () => ({ messages: [{ role: "assistant", content: ["a", { type: "text", text: "b" }] }] }));
  await withClient(app, async (client) => {
    for (const [name, role] of [
      ["several", "user"],
      ["listed", "assistant"],
    ]) {
      assert.deepEqual(
        (await client.getPrompt(name)).messages,
        ["a", "b"].map((text) => ({ role, content: { type: "text", text } })),
      );
    }
  });
});

test("a server that was closed says so to who connects or listens", async () => {
  const app = new Server("judge").tool("t", () => "x");
  await app.close();
  for (const use of [() => connect(app), () => app.listen({ port: 0 }), () => app.serveHttp({ port: 0 })]) {
    await assert.rejects(within(use(), "the refusal"), { name: "ClosedError", message: /the server was closed/ });
  }
});

// VS Code and others take no list of tools in which an array has no items.
test("arrays say what their items are", async () => {
  const schema = type({ a: "unknown[]", b: "Array", "c?": "string[]", "d?": ["string", "number"], "e?": "Array|null" });
  const plain = { type: "object", properties: { a: { type: "array" } } };
  const app = new Server("judge")
    .tool("arktype", { input: schema, output: schema }, (args) => args)
    .tool("plain", { input: plain }, () => "x");
  await withClient(app, async (client) => {
    const [ofArktype, ofPlain] = await client.listTools();
    for (const { properties } of [ofArktype.inputSchema, ofArktype.outputSchema]) {
      assert.deepEqual(properties.a, { type: "array", items: {} });
      assert.deepEqual(properties.b, { type: "array", items: {} });
      assert.deepEqual(properties.c, { type: "array", items: { type: "string" } });
      assert.equal(properties.d.prefixItems.length, 2);
      assert.deepEqual(properties.e.anyOf, [{ type: "array", items: {} }, { type: "null" }]);
    }
    // What is written by hand is as it was written.
    assert.deepEqual(ofPlain.inputSchema, plain);
    assert.deepEqual((await client.callTool("arktype", { a: [1], b: ["x"] })).structured, { a: [1], b: ["x"] });
  });
});

// Gemini and others take no list of tools in which a choice has no type.
test("choices say what type they are", async () => {
  const text = (values) => ({ enum: values, type: "string" });
  const valibot = v.object({
    word: v.picklist(["a", "b"]),
    one: v.literal("c"),
    const: v.literal(1),
    enum: v.optional(v.literal("d"), "d"),
    default: v.array(v.literal(true)),
  });
  const ark = type({
    word: "'a'|'b'",
    one: "'c'",
    number: "1|2",
    "mixed?": "'a'|1",
    "perhaps?": "'x'|null",
    list: "('y'|'z')[]",
  });
  const app = new Server("judge")
    .tool("valibot", { input: valibot }, () => "x")
    .tool("arktype", { input: ark, output: type("'x'|'y'") }, () => "x")
    .tool("plain", { input: { type: "object", properties: { word: { enum: ["a", "b"] } } } }, () => "x");
  await withClient(app, async (client) => {
    const [ofValibot, ofArktype, plain] = await client.listTools();
    const { properties } = ofValibot.inputSchema;
    assert.deepEqual(properties.word, text(["a", "b"]));
    assert.deepEqual(properties.one, { const: "c", type: "string" });
    assert.deepEqual(properties.const, { const: 1, type: "number" });
    assert.deepEqual(properties.enum, { const: "d", default: "d", type: "string" });
    assert.deepEqual(properties.default.items, { const: true, type: "boolean" });
    const others = ofArktype.inputSchema.properties;
    assert.deepEqual(others.word, text(["a", "b"]));
    assert.deepEqual(others.one, { const: "c", type: "string" });
    assert.deepEqual(others.number, { enum: [1, 2], type: "number" });
    assert.deepEqual(others.mixed, { enum: ["a", 1] });
    assert.deepEqual(others.perhaps.anyOf, [{ const: "x", type: "string" }, { type: "null" }]);
    assert.deepEqual(others.list.items, text(["y", "z"]));
    assert.deepEqual(ofArktype.outputSchema, text(["x", "y"]));
    // What is written by hand is as it was written.
    assert.deepEqual(plain.inputSchema.properties.word, { enum: ["a", "b"] });
    const given = { word: "a", one: "c", number: 2, list: ["z"] };
    assert.equal((await client.callTool("arktype", given)).text, "x");
  });
});
