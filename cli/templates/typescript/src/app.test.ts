import assert from "node:assert/strict";
import { test } from "node:test";
import { withClient } from "tricorn/testing";
import { app } from "./app.ts";

test("adds", () =>
  withClient(app, async (client) => {
    const result = await client.callTool("add", { a: 1, b: 2 });
    assert.equal(result.text, "3");
  }));

test("says what is wrong with arguments", () =>
  withClient(app, async (client) => {
    const result = await client.callTool("add", { a: "one", b: 2 });
    assert.ok(result.isError);
    assert.match(result.text, /"a"/);
  }));
