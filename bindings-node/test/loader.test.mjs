// The compiled module: where it is found, and what is said where it is not.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import * as tricorn from "tricorn";
import { libcOf } from "../dist/core.js";
import { dist, native, platform, root } from "./package.mjs";

const run = promisify(execFile);
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const own = `@tricorn/${platform}`;
const other = platform === "darwin-arm64" ? "darwin-x64" : "darwin-arm64";

const PROGRAM = `import { connect, Server } from "tricorn";
const client = await connect(new Server("loaded").tool("add", ({ a, b }) => a + b));
process.stdout.write((await client.callTool("add", { a: 1, b: 2 })).text);
await client.close();
`;

/** A project with `tricorn` installed in it, by default without the package of any platform. */
function project(t, { modules = "node_modules", lock, manager = "package-lock.json", platforms = [] } = {}) {
  const place = mkdtempSync(join(tmpdir(), "tricorn-loader-"));
  t.after(() => rmSync(place, { recursive: true, force: true }));
  const folder = join(place, modules, "tricorn");
  mkdirSync(folder, { recursive: true });
  const manifest = { name: "tricorn", version, type: "module", exports: "./dist/index.js" };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  const isCode = (path) => !path.endsWith(".node");
  cpSync(dist, join(folder, "dist"), { recursive: true, filter: isCode });
  for (const name of platforms) installed(join(place, modules), name);
  if (lock) writeFileSync(join(place, manager), lock);
  writeFileSync(join(place, "program.mjs"), PROGRAM);
  return place;
}

/** A package of a platform: with the compiled module, or with other code in its place. */
function installed(modules, name, code) {
  const folder = join(modules, "@tricorn", name);
  mkdirSync(folder, { recursive: true });
  const main = code === undefined ? "module.node" : "module.js";
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: `@tricorn/${name}`, version, main }));
  if (code === undefined) symlinkSync(native, join(folder, main));
  else writeFileSync(join(folder, main), code);
}

/** Output of the program, or the last line of its error. */
async function says(place, { env = {}, before = "", program = "program.mjs" } = {}) {
  const { TRICORN_ADDON: _, ...rest } = process.env;
  const args = before ? ["--import", `data:text/javascript,${encodeURIComponent(before)}`] : [];
  return run(process.execPath, [...args, join(place, program)], {
    env: { ...rest, ...env },
    timeout: 30_000,
  }).then(
    ({ stdout, stderr }) => stdout + stderr,
    ({ stderr }) => /^.*Error: .*$/m.exec(stderr)?.[0] ?? stderr,
  );
}

/** Packages that `tricorn` may need, as lockfiles name them whatever is there. */
const optionalDependencies = { [own]: version, [`@tricorn/${other}`]: version };

/** A lockfile of npm with these packages of platforms. */
function npmLock(...names) {
  const packages = { "node_modules/tricorn": { version, optionalDependencies } };
  for (const name of names) packages[`node_modules/@tricorn/${name}`] = { version, optional: true };
  return JSON.stringify({ lockfileVersion: 3, packages }, null, 2);
}

const pretend = (what) =>
  Object.entries(what)
    .map(
      ([name, value]) =>
        `Object.defineProperty(process, ${JSON.stringify(name)}, { value: ${JSON.stringify(value)} });`,
    )
    .join("");

test("the package of the platform is found", async (t) => {
  assert.equal(await says(project(t, { platforms: [platform] })), "3");
});

test("the package of the platform is found where only this package sees it, as with pnpm", async (t) => {
  const place = project(t, { modules: `node_modules/.pnpm/tricorn@${version}/node_modules`, platforms: [platform] });
  symlinkSync(`.pnpm/tricorn@${version}/node_modules/tricorn`, join(place, "node_modules", "tricorn"));
  assert.equal(await says(place), "3");
});

test("the file beside the code is taken before the package, and the one that is named before both", async (t) => {
  const place = project(t);
  const dead = 'throw new Error("not this one")';
  installed(join(place, "node_modules"), platform, dead);
  assert.match(await says(place), /not this one/);
  const beside = join(place, "node_modules/tricorn/dist", basename(native));
  symlinkSync(native, beside);
  assert.equal(await says(place), "3");
  rmSync(beside);
  writeFileSync(beside, "no module");
  assert.equal(await says(place, { env: { TRICORN_ADDON: native } }), "3");
  assert.match(
    await says(place, { env: { TRICORN_ADDON: "none.node" } }),
    /TRICORN_ADDON: there is no file .*none\.node/,
  );
});

test("optional dependencies that were left out", async (t) => {
  const place = project(t, { lock: npmLock(platform, other) });
  const said = await says(place);
  assert.ok(said.includes(`the package ${own}, its compiled module for this platform, is not installed`), said);
  assert.match(said, /package-lock\.json names it, so the optional dependencies .*--omit=optional/);
  assert.match(said, /run "npm install --include=optional"\. TRICORN_ADDON names/);
});

test("a lockfile of npm without the package", async (t) => {
  const said = await says(project(t, { lock: npmLock(other) }));
  assert.ok(said.includes(`the package ${own}, its compiled module for this platform, is not installed`), said);
  assert.match(said, /package-lock\.json does not name it, as npm writes it .*npm\/cli#4828/);
  assert.match(said, /remove node_modules and package-lock\.json, and run "npm install"/);
});

test("node_modules of another platform", async (t) => {
  const copied = await says(project(t, { lock: npmLock(platform, other), platforms: [other] }));
  assert.ok(copied.includes(`There is @tricorn/${other}: node_modules is of another platform. `), copied);
  assert.match(copied, /remove node_modules and run "npm install" on the system that the program runs on/);
  const locked = await says(project(t, { lock: npmLock(other), platforms: [other] }));
  assert.match(locked, /is of another platform, and so is .*package-lock\.json, which does not name @tricorn/);
  assert.match(locked, /remove node_modules and package-lock\.json/);
});

test("other package managers are named by their lockfiles", async (t) => {
  for (const [manager, name] of [
    ["pnpm-lock.yaml", "pnpm"],
    ["yarn.lock", "yarn"],
    ["bun.lock", "bun"],
  ]) {
    const left = await says(project(t, { manager, lock: `tricorn@${version}: ${own} ${version}\n${own}@${version}:` }));
    assert.match(left, new RegExp(`${manager} names it.*run "${name} install" without that`));
    const without = await says(project(t, { manager, lock: `tricorn@${version}: ${own} ${version}` }));
    assert.match(
      without,
      new RegExp(`${manager} does not name it\\..*remove node_modules and ${manager}.*"${name} install"`),
    );
  }
});

test("without a lockfile both are said", async (t) => {
  const said = await says(project(t));
  assert.match(said, /As a rule the optional dependencies .* were left out .*, or node_modules comes from another/);
  assert.match(said, /"npm install --include=optional", or remove node_modules and run "npm install"/);
});

test("a platform that there is no module for", async (t) => {
  const said = await says(project(t), { before: pretend({ platform: "freebsd", arch: "riscv64" }) });
  assert.match(
    said,
    /no compiled module for freebsd-riscv64; there are modules for linux-x64-gnu, .* and win32-arm64-msvc\./,
  );
});

test("a module of another version", async (t) => {
  const place = project(t);
  installed(join(place, "node_modules"), platform, 'exports.version = () => "0.0.1"');
  const said = await says(place);
  assert.ok(said.includes(`tricorn is ${version} and its compiled module ${own} is 0.0.1`), said);
  assert.match(said, /a lockfile or an override that names @tricorn\/.* must say/);
  const file = join(place, "old.js");
  writeFileSync(file, 'exports.version = () => "0.0.2"');
  assert.match(
    await says(place, { env: { TRICORN_ADDON: file } }),
    /old\.js is 0\.0\.2; .*Put the file of .* in its place/,
  );
});

test("a module that the system cannot load", async (t) => {
  const place = project(t);
  installed(join(place, "node_modules"), platform, "process.dlopen({ exports: {} }, __filename)");
  const said = await says(place);
  assert.ok(said.includes(`the compiled module ${own} is installed and cannot be loaded (`), said);
});

test("a checkout without a module", async (t) => {
  const place = project(t, { modules: "node_modules/tricorn/x" });
  const folder = join(place, "node_modules/tricorn");
  cpSync(join(folder, "x/tricorn/dist"), join(folder, "x/dist"), { recursive: true });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "tricorn", type: "module", exports: "./x/dist/index.js" }),
  );
  assert.match(await says(place), /a checkout without a compiled module for .*"npm install" in the checkout builds it/);
});

/** The beginning of a program that the loader at this path loads. */
function elf(t, loader) {
  const path = join(mkdtempSync(join(tmpdir(), "tricorn-elf-")), "program");
  t.after(() => rmSync(dirname(path), { recursive: true }));
  const file = Buffer.alloc(8192);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  file.writeBigUInt64LE(64n, 0x20);
  file.writeUInt16LE(56, 0x36);
  file.writeUInt16LE(2, 0x38);
  // The table: a segment of another kind, and the loader's name, which is in another page.
  file.writeUInt32LE(1, 64);
  file.writeUInt32LE(3, 64 + 56);
  file.writeBigUInt64LE(5000n, 64 + 56 + 8);
  file.writeBigUInt64LE(BigInt(loader.length + 1), 64 + 56 + 0x20);
  file.write(`${loader}\0`, 5000, "latin1");
  writeFileSync(path, file);
  return path;
}

test("the C library of a Linux is that of the program", async (t) => {
  assert.equal(libcOf(elf(t, "/lib/ld-musl-x86_64.so.1")), "musl");
  assert.equal(libcOf(elf(t, "/lib64/ld-linux-x86-64.so.2")), "gnu");
  assert.equal(libcOf(elf(t, "/nix/store/0-glibc-2.40/lib/ld-linux-aarch64.so.1")), "gnu");
  assert.equal(libcOf(elf(t, "/lib/ld-uClibc.so.0")), undefined);
  const text = join(dirname(elf(t, "")), "text");
  writeFileSync(text, "#!/bin/sh\n");
  assert.equal(libcOf(text), undefined);
  assert.equal(libcOf(join(tmpdir(), "no", "such", "program")), undefined);
  if (process.platform === "linux") {
    const { glibcVersionRuntime } = process.report.getReport().header;
    assert.equal(libcOf(process.execPath), glibcVersionRuntime ? "gnu" : "musl");
  }
});

test("a program of musl asks for the module of musl, and one that tells nothing takes what fits", async (t) => {
  if (platform !== "linux-x64-gnu") return t.skip("written for a Linux with glibc on x64");
  const place = project(t, { lock: npmLock(platform), platforms: [platform] });
  const said = await says(place, { before: pretend({ execPath: elf(t, "/lib/ld-musl-x86_64.so.1") }) });
  assert.match(said, /the package @tricorn\/linux-x64-musl, its compiled module/);
  assert.match(said, /There is @tricorn\/linux-x64-gnu: node_modules is of another platform/);
  assert.equal(await says(place, { before: pretend({ execPath: elf(t, "/lib/other") }) }), "3");
});

test("all entry points, modules and CommonJS, share one copy of the code", async (t) => {
  const { createRequire } = await import("node:module");
  const require = createRequire(import.meta.url);
  assert.equal(require("tricorn").Server, tricorn.Server);
  assert.equal(require("tricorn/testing").bridgeMetrics, (await import("tricorn/testing")).bridgeMetrics);
  assert.equal((await import("tricorn/apps")).uiExtension, tricorn.apps.uiExtension);
  assert.equal(require("tricorn/apps").uiExtension, tricorn.apps.uiExtension);
  assert.equal(typeof require("tricorn/otel").telemetry(), typeof (await import("tricorn/otel")).telemetry());
  for (const name of ["tricorn", "tricorn/testing", "tricorn/apps", "tricorn/otel", "tricorn/types"]) {
    assert.deepEqual(Object.keys(require(name)).sort(), Object.keys(await import(name)).sort(), name);
  }
  // Node says nothing of modules that are required, wherever the program is.
  const place = project(t, { platforms: [platform] });
  const manifest = { name: "tricorn", type: "module", exports: { require: "./dist/cjs/index.js" } };
  writeFileSync(join(place, "node_modules/tricorn/package.json"), JSON.stringify(manifest));
  writeFileSync(join(place, "program.cjs"), 'console.log(typeof require("tricorn").Server)');
  assert.equal(await says(place, { program: "program.cjs" }), "function\n");
});

test("classes and functions have the names that they are exported by", () => {
  for (const [name, value] of Object.entries(tricorn)) {
    if (typeof value === "function") assert.equal(value.name, name);
  }
});

test("a program loads few files", async () => {
  const files = readFileSync(join(dist, "index.js"), "utf8").match(/from "\.[^"]*"/g);
  assert.deepEqual(files, ['from "./core.js"']);
  const code = readFileSync(join(dist, "core.js"), "utf8");
  assert.equal(code.match(/^import .* from "(?!node:)/m), null);
  // They take longer to load than all the rest, and few programs need them.
  assert.equal(
    code.match(/^import .* from "node:(http|http2|worker_threads|child_process|crypto|net|tls|stream)"/m),
    null,
  );
});
