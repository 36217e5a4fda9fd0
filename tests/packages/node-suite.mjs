// The suite of the Node package, `bindings-node/test`, against what is installed and not against the checkout: a project
// with the packages of a folder (`bindings-node/scripts/pack.mjs`) in node_modules, and the tests beside it.
//
//   node tests/packages/node-suite.mjs [target/dist/npm] [--only name ...]
//
// The output is that of `node --test` (TAP). `--only`: files of tests whose names contain one of these.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { fail, must, root, target } from "./tools.mjs";

const options = { only: { type: "string", multiple: true } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const dist = resolve(positionals[0] ?? join(root, "target/dist/npm"));
const place = join(target, "node-suite");
const binding = join(place, "bindings-node");
const modules = join(place, "node_modules");

/** The packages, and whatever the tests need besides, as the checkout has it. */
async function install() {
  const tarballs = readdirSync(dist).filter((name) => name.endsWith(".tgz"));
  if (!tarballs.some((name) => /^tricorn-\d/.test(name))) fail(`${dist}: there is no tarball of tricorn`);
  for (const name of tarballs) {
    const { stdout } = await must("tar", ["-xzOf", join(dist, name), "package/package.json"]);
    const folder = join(modules, JSON.parse(stdout).name);
    mkdirSync(folder, { recursive: true });
    await must("tar", ["-xzf", join(dist, name), "--strip-components=1", "-C", folder]);
  }
  for (const name of readdirSync(join(root, "node_modules"))) {
    const other = join(root, "node_modules", name);
    if (!existsSync(join(modules, name))) symlinkSync(other, join(modules, name));
  }
}

/** The tests, and the files that they read, where they look for them. */
function lay() {
  writeFileSync(join(place, "package.json"), JSON.stringify({ name: "suite", version: "1.0.0", type: "module" }));
  cpSync(join(root, "bindings-node/test"), join(binding, "test"), { recursive: true });
  cpSync(join(root, "bindings-node/tsconfig.json"), join(binding, "tsconfig.json"));
  for (const name of ["tests", "schema"]) symlinkSync(join(root, name), join(place, name));
  symlinkSync(join(root, "bindings-node/scripts"), join(binding, "scripts"));
  symlinkSync(join(modules, "tricorn/lib"), join(binding, "lib"));
  mkdirSync(join(binding, "dist"));
  const code = join(modules, "tricorn/dist");
  for (const name of readdirSync(code)) symlinkSync(join(code, name), join(binding, "dist", name));
  // The compiler's description of the module is in no package.
  const description = join(root, "bindings-node/dist/addon.exports.jsonl");
  if (existsSync(description)) symlinkSync(description, join(binding, "dist/addon.exports.jsonl"));
}

/** The checkout has a package of the same name, which is not what is tested. */
async function isInstalled() {
  const program = 'console.log(import.meta.resolve("tricorn"))';
  const { stdout } = await must(process.execPath, ["--input-type=module", "-e", program], { cwd: binding });
  const { href } = new URL(`file://${join(modules, "tricorn/dist/index.js")}`);
  if (stdout.trim() !== href) fail(`the tests import ${stdout.trim()}, and not ${href}`);
}

rmSync(place, { recursive: true, force: true });
mkdirSync(modules, { recursive: true });
mkdirSync(binding);
await install();
lay();
await isInstalled();
const tsc = join(modules, "typescript/bin/tsc");
const types = spawnSync(process.execPath, [tsc, "-p", join(binding, "test")], { stdio: "inherit" });
if (types.status !== 0) fail("the types of the tests do not fit those of the package");
const tests = readdirSync(join(binding, "test")).filter((name) => name.endsWith(".test.mjs"));
const wanted = values.only ? tests.filter((name) => values.only.some((part) => name.includes(part))) : tests;
const args = ["--test", "--test-reporter=tap", ...wanted.map((name) => join(binding, "test", name))];
const { TRICORN_ADDON: _, ...env } = process.env;
const { status } = spawnSync(process.execPath, args, { cwd: place, env, stdio: "inherit" });
process.exitCode = status ?? 1;
