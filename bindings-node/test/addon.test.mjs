// The hand-written types of the addon against what was compiled.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { addon } from "../dist/core.js";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");

/** `Class.method(parameters): type`, sorted. */
function signatures(lines) {
  return lines.map((line) => line.trim()).sort();
}

/** Returns the signatures that the compiler of the addon wrote down about it. */
function compiled() {
  const found = [];
  for (const line of read("../dist/addon.exports.jsonl").split("\n").filter(Boolean)) {
    const { kind, name, def } = JSON.parse(line);
    const code = def.replaceAll(/\/\*\*[\s\S]*?\*\//g, "");
    if (kind === "fn") found.push(code.trim());
    if (kind === "impl") found.push(...members(code).map((member) => `${name}.${member}`));
  }
  return signatures(found);
}

/** One signature per line again, where the formatter wrapped one. */
const flat = (code) =>
  code
    .replaceAll(/\(\s+/g, "(")
    .replaceAll(/,\s+\)/g, ")")
    .replaceAll(/,\s+/g, ", ");

/** Returns the signatures in `lib/bridge/addon.d.ts`. */
function written() {
  const code = read("../lib/bridge/addon.d.ts").replaceAll(/\/\*\*[\s\S]*?\*\//g, "");
  const found = [...code.matchAll(/^export declare (function [^;]*);$/gm)].map(([, signature]) => flat(signature));
  for (const [, name, body] of code.matchAll(/^export declare class (\w+) \{\n([\s\S]*?)^\}/gm)) {
    // One member per line again, where the formatter wrapped one.
    const flat = body
      .replaceAll(/\(\s+/g, "(")
      .replaceAll(/,\s+\)/g, ")")
      .replaceAll(/,\s+/g, ", ");
    found.push(...members(flat.replaceAll(";", "")).map((member) => `${name}.${member}`));
  }
  return signatures(found);
}

const members = (body) =>
  body
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

test("addon.d.ts says what was compiled", () => {
  const both = compiled();
  assert.ok(both.length > 30, "the description of the compiled addon was not found");
  assert.deepEqual(written(), both);
});

const OF_ANY_FUNCTION = ["arguments", "caller", "length", "name", "prototype"];

test("the loaded module has exactly these names", () => {
  const loaded = [];
  for (const [name, value] of Object.entries(addon)) {
    // Functions made by Node-API have a prototype as well, but only classes have members.
    if (Object.getOwnPropertyNames(value.prototype ?? {}).length < 2) {
      loaded.push(name);
      continue;
    }
    const statics = Object.getOwnPropertyNames(value).filter((member) => !OF_ANY_FUNCTION.includes(member));
    const methods = Object.getOwnPropertyNames(value.prototype).filter((member) => member !== "constructor");
    loaded.push(...[...statics, ...methods].map((member) => `${name}.${member}`));
  }
  const names = written()
    .map((signature) => signature.replace(/^function |static /, "").replace(/\(.*/, ""))
    .filter((name) => !name.endsWith(".constructor"));
  assert.deepEqual(loaded.sort(), names.sort());
});

test("a panic is an ordinary error", () => {
  const bridge = new addon.Bridge(() => {});
  assert.throws(() => bridge.panic("on purpose"), { message: /on purpose/ });
  assert.equal(addon.take(bridge.handle()), null);
  bridge.close();
  bridge.close();
});

test("wrong types are ordinary errors", () => {
  assert.throws(() => new addon.Bridge(1));
  assert.throws(() => new addon.Server({}, 1, "{}"));
  const bridge = new addon.Bridge(() => {});
  assert.throws(() => addon.answerText(bridge.handle(), "x", 1));
  assert.throws(() => addon.take(bridge));
  assert.throws(() => addon.take({}));
});
