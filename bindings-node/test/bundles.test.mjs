// The package in bundles, and in programs of other forms than its own.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { native, platform, root, tsc } from "./package.mjs";

const run = promisify(execFile);

const PROGRAM = `import { connect, Server } from "tricorn";
const app = new Server("bundled").tool("add", ({ a, b }) => a + b);
connect(app).then(async (client) => {
  process.stdout.write((await client.callTool("add", { a: 1, b: 2 })).text);
  await client.close();
});
`;

/** A folder of its own with the package installed. */
function folder(t) {
  const place = mkdtempSync(join(tmpdir(), "tricorn-bundle-"));
  t.after(() => rmSync(place, { recursive: true, force: true }));
  mkdirSync(join(place, "node_modules"));
  symlinkSync(root, join(place, "node_modules", "tricorn"));
  return place;
}

async function bundled(t, format) {
  const place = folder(t);
  const entry = join(place, "program.mjs");
  writeFileSync(entry, PROGRAM);
  const outfile = join(place, "out", format === "cjs" ? "bundle.cjs" : "bundle.mjs");
  await build({ entryPoints: [entry], outfile, bundle: true, platform: "node", format, logLevel: "silent" });
  return outfile;
}

async function says(file, env = {}) {
  const { TRICORN_ADDON: _, ...rest } = process.env;
  return run(process.execPath, [file], { env: { ...rest, ...env }, timeout: 30_000 }).then(
    ({ stdout }) => stdout,
    ({ stderr }) => stderr,
  );
}

for (const format of ["esm", "cjs"]) {
  test(`a bundle (${format}) says what to do, and works with the module beside it or named`, async (t) => {
    const file = await bundled(t, format);
    const lost = await says(file);
    assert.match(lost, /tricorn is a part of the bundle .*bundle\.[cm]js/);
    assert.match(lost, /--external:tricorn.*serverExternalPackages.*beside the bundle.*TRICORN_ADDON/);
    assert.ok(lost.includes(`tricorn.${platform}.node of the package @tricorn/${platform}`), lost);
    assert.equal(await says(file, { TRICORN_ADDON: native }), "3");
    assert.match(await says(file, { TRICORN_ADDON: "none.node" }), /TRICORN_ADDON: there is no file .*none\.node/);
    copyFileSync(native, join(dirname(file), basename(native)));
    assert.equal(await says(file), "3");
  });
}

test("a program in the form of CommonJS requires it", async (t) => {
  const file = join(folder(t), "program.cjs");
  const required = 'const { connect, Server } = require("tricorn");';
  writeFileSync(file, PROGRAM.replace(/^import.*$/m, required));
  assert.equal(await says(file), "3");
});

const TYPED = `import { Server } from "tricorn";
import { withClient } from "tricorn/testing";
const app = new Server("typed", { version: undefined }).tool("add", ({ a }) => a);
export const done: Promise<void> = withClient(app, async (client) => void (await client.listTools()));
`;

for (const [kind, type] of [
  ["CommonJS", "commonjs"],
  ["modules", "module"],
]) {
  test(`TypeScript finds the types of ${kind} (module: node16)`, async (t) => {
    const place = folder(t);
    writeFileSync(join(place, "package.json"), JSON.stringify({ type }));
    writeFileSync(join(place, "program.ts"), TYPED);
    const compilerOptions = {
      module: "node16",
      target: "es2022",
      lib: ["es2023", "esnext.disposable", "dom"],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      types: [],
    };
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    const types = dirname(dirname(createRequire(import.meta.url).resolve("@types/node/package.json")));
    const typeRoots = ["--typeRoots", types, "--types", "node"];
    const said = await run(process.execPath, [tsc, "-p", place, ...typeRoots]).catch(({ stdout }) => ({ stdout }));
    assert.equal(said.stdout, "");
  });
}
