// The corpus of tests/corpus: every example has its type and goes through JavaScript's values without loss.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { tsc } from "./package.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (file) => readFileSync(join(root, file), "utf8");
const { cases } = JSON.parse(read("tests/corpus/index.json"));

/** The text without white space, strings in one spelling; order of keys and numbers as they were written. */
function canonical(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (token) =>
    token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : "",
  );
}

test("the official examples are all there", () => {
  assert.equal(cases.filter((example) => example.official).length, 129);
});

for (const { file, inexact_in: inexact } of cases) {
  test(`round trip: ${file}`, () => {
    const source = canonical(read(file));
    const again = JSON.stringify(JSON.parse(source));
    if (inexact.includes("node")) {
      // Doubles cannot hold these numbers. Everything else, and their nearest doubles, come through.
      assert.notEqual(again, source, "no longer inexact");
      assert.deepEqual(JSON.parse(again), JSON.parse(source));
    } else {
      assert.equal(again, source);
    }
  });
}

test("a dropped field is noticed", () => {
  const source = '{"a":1,"b":{"c":null}}';
  for (const lossy of [
    (key, value) => (key === "c" ? undefined : value),
    (key, value) => (key === "a" ? undefined : value),
  ]) {
    assert.notEqual(JSON.stringify(JSON.parse(source, lossy)), canonical(source));
  }
});

test("every example has the type that the compiler knows", () => {
  // The official examples are checked as literals, so a property without a name in the type is an error; ours may
  // have more. What does not fit on purpose must not compile.
  const lines = [
    'import type * as Types from "../../bindings-node/lib/types.js";',
    "const open = <T>() => <V extends T>(value: V): T => value;",
    "export const examples: unknown[] = [",
  ];
  for (const { file, type, official, typed } of cases) {
    const literal = canonical(read(file));
    lines.push(typed ? `// ${file}` : `// @ts-expect-error: ${file}`);
    lines.push(official ? `(${literal}) satisfies Types.${type},` : `open<Types.${type}>()(${literal}),`);
  }
  lines.push("];", "");
  mkdirSync(join(root, "target"), { recursive: true });
  const folder = mkdtempSync(join(root, "target", "corpus-types-"));
  try {
    const program = join(folder, "examples.ts");
    writeFileSync(program, lines.join("\n"));
    const options =
      "--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --module nodenext --target es2022 --types";
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...options.split(" "), "", program], {
      encoding: "utf8",
    });
    assert.equal(status, 0, stdout);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
