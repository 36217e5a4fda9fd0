// Values of which JSON would make something else: said with their place, and never sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Server, text } from "tricorn";
import { withClient } from "tricorn/testing";

async function returned(value) {
  const failures = [];
  const app = new Server("emptied", { onError: (error) => failures.push(error.message) });
  app.tool("t", () => value());
  return withClient(app, async (client) => {
    const { isError, text, content, structured } = await client.callTool("t");
    return { isError, text, content, structured, why: failures[0] };
  });
}

async function* slowly() {
  yield 1;
}

const odd = [
  ["a Map", () => new Map([["a", 1]]), /^a Map is not JSON; give its Object\.fromEntries\(\)/],
  [
    "a Set within",
    () => ({ deep: [{ all: new Set([1]) }] }),
    /^"deep\[0\]\.all": a Set is not JSON; give a list of it/,
  ],
  ["an Error", () => ({ error: new Error("x") }), /^"error": an Error is not JSON; throw it, or give its message/],
  ["a generator", () => ({ rows: [1].values() }), /^"rows": an iterator is not JSON; give a list/],
  ["an async generator", () => slowly(), /^what comes bit by bit is not JSON/],
  ["bytes", () => ({ file: new Uint8Array([1, 2]) }), /^"file": bytes are not JSON/],
  ["no bytes", () => ({ file: new Uint8Array() }), /^"file": bytes are not JSON/],
  ["a Buffer", () => ({ file: Buffer.from("x") }), /^"file": bytes are not JSON/],
  ["an ArrayBuffer", () => [new ArrayBuffer(2)], /^"\[0\]": bytes are not JSON/],
  ["numbers in a row", () => ({ v: new Float64Array([1]) }), /^"v": a Float64Array is not JSON; give a list of it/],
  ["a date that is none", () => ({ at: new Date("x") }), /^"at": the date is none/],
  ["a promise within", () => ({ later: Promise.resolve(1) }), /^"later": a Promise is not JSON; await it/],
  ["a response", () => ({ got: new Response("{}") }), /^"got": a Response is not JSON; give what its text\(\)/],
  ["a file's bytes", () => new Blob(["x"]), /^a Blob is not JSON/],
  ["a pattern", () => ({ p: /x/ }), /^"p": a RegExp is not JSON/],
  ["a number that is none", () => ({ deep: { n: Number.NaN } }), /^"deep\.n": NaN is not JSON/],
  [
    "an image without data",
    () => ({ content: [{ type: "image", mimeType: "image/png" }] }),
    /^content\[0\]\.data: expected bytes/,
  ],
  [
    "text without text",
    () => ({ content: [{ type: "text", text: 5 }] }),
    /^content\[0\]\.text: expected text, got a number/,
  ],
  [
    "an image whose data is a path",
    () => ({ content: [{ type: "image", data: "a.png", mimeType: "image/png" }] }),
    /^content\[0\]\.data: expected bytes, or base64 text, got "a\.png": read the file/,
  ],
  [
    "text without text beside a block",
    () => [text("a"), { type: "text" }],
    /^\[1\]\.text: expected text, got undefined/,
  ],
  [
    "a link without a name",
    () => ({ content: [{ type: "resource_link", uri: "a:b" }] }),
    /^content\[0\]\.name: expected text/,
  ],
  [
    "a resource without contents",
    () => ({ content: [{ type: "resource", resource: { uri: "a:b" } }] }),
    /resource\.text/,
  ],
];
for (const [name, value, message] of odd) {
  test(`${name} is an error with its place`, async () => {
    const { isError, why } = await returned(value);
    assert.equal(isError, true);
    assert.match(why, message);
  });
}

test("bytes in blocks made by hand are base64, and what is no block is a value", async () => {
  const { content } = await returned(() => ({
    content: [
      { type: "image", data: new Uint8Array([1, 2]), mimeType: "image/png" },
      { type: "resource", resource: { uri: "a:b", blob: new Uint8Array([3]) } },
    ],
  }));
  assert.deepEqual([content[0].data, content[1].resource.blob], ["AQI=", "Aw=="]);
  const page = { content: [{ type: "section" }] };
  assert.deepEqual((await returned(() => page)).structured, page);
});

test("what is empty, and what says what its JSON is, stays as it is", async () => {
  class Row {
    toJSON() {
      return { a: null };
    }
  }
  const value = { none: {}, list: [], nothing: null, row: new Row(), own: Object.create(null), at: new Date(0) };
  assert.deepEqual((await returned(() => value)).structured, {
    none: {},
    list: [],
    nothing: null,
    row: { a: null },
    own: {},
    at: "1970-01-01T00:00:00.000Z",
  });
});
