#!/usr/bin/env node
// Packs what is published: `tricorn`, JavaScript and types only, and one package with a compiled module for each file
// given, as in `tricorn.linux-x64-gnu.node`. Without files: what is compiled here.
//
//   node bindings-node/scripts/pack.mjs [--out target/dist/npm] [file ...]
//
// In the folder are the tarballs then, and below `unpacked` what is in them. Compiled and built before: `npm run build`.

import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const binding = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(binding);
const dist = join(binding, "dist");
const json = (file) => JSON.parse(readFileSync(file, "utf8"));
const manifest = json(join(root, "package.json"));
const platforms = json(join(binding, "lib/bridge/platforms.json"));
const LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"];

function fail(message) {
  console.error(`pack: ${message}`);
  process.exit(1);
}

const { values, positionals } = parseArgs({ options: { out: { type: "string" } }, allowPositionals: true });
const out = resolve(values.out ?? join(root, "target/dist/npm"));
if (!existsSync(join(dist, "core.js")))
  fail('there is no JavaScript in bindings-node/dist: "npm run build:ts" makes it');
const compiled = readdirSync(dist).filter((name) => name.endsWith(".node"));
const addons =
  positionals.length > 0 ? positionals.map((file) => resolve(file)) : compiled.map((file) => join(dist, file));
if (addons.length === 0) {
  fail('there is no compiled module: "npm run build:native" makes that of this platform, or name files');
}

/** The platform that a file is for. */
function platformOf(file) {
  if (!existsSync(file)) fail(`there is no file ${file}`);
  const [, name] = /^tricorn\.(.+)\.node$/.exec(basename(file)) ?? [];
  const names = platforms.map((known) => `tricorn.${known.name}.node`).join(", ");
  const found = platforms.find((known) => known.name === name);
  return found ?? fail(`${basename(file)} is the file of no platform: expected one of ${names}`);
}

/** An empty folder with the licences and a manifest. */
function begin(name, own) {
  const folder = join(out, "unpacked", name);
  mkdirSync(folder, { recursive: true });
  for (const licence of LICENCES) copyFileSync(join(root, licence), join(folder, licence));
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
  return folder;
}

/** The manifest of the checkout, with the paths of the package, and without what is for its development. */
function published() {
  const { scripts: _, devDependencies: __, files: ___, ...rest } = manifest;
  const shorter = JSON.parse(JSON.stringify(rest).replaceAll("./bindings-node/dist/", "./dist/"));
  const all = platforms.map(({ name }) => [`@tricorn/${name}`, manifest.version]);
  return { ...shorter, optionalDependencies: Object.fromEntries(all) };
}

function main() {
  const folder = begin("tricorn", published());
  copyFileSync(join(root, "README.md"), join(folder, "README.md"));
  // The sources are what the maps of the types and of the code point to.
  cpSync(join(binding, "lib"), join(folder, "lib"), { recursive: true });
  const isCode = (path) => !/\.(node|jsonl|new|old)$/.test(path);
  cpSync(dist, join(folder, "dist"), { recursive: true, filter: isCode });
  return folder;
}

function platform(file) {
  const { name, os, cpu, libc } = platformOf(file);
  const { version, license, engines } = manifest;
  const folder = begin(`@tricorn/${name}`, {
    name: `@tricorn/${name}`,
    version,
    description: `The compiled module of tricorn for ${name}`,
    license,
    engines,
    type: "commonjs",
    main: `./${basename(file)}`,
    os: [os],
    cpu: [cpu],
    ...(libc ? { libc: [libc] } : {}),
    // Yarn keeps packages in archives, from which no system loads.
    preferUnplugged: true,
  });
  copyFileSync(file, join(folder, basename(file)));
  // The crates in it, as `cargo xtask dist` writes them beside it.
  for (const beside of ["THIRD-PARTY-LICENSES.txt", "sbom.cdx.json"]) {
    const path = join(dirname(file), beside);
    if (existsSync(path)) copyFileSync(path, join(folder, beside));
  }
  writeFileSync(join(folder, "README.md"), `The compiled module of tricorn for ${name}.\n`);
  return folder;
}

addons.forEach(platformOf);
mkdirSync(out, { recursive: true });
rmSync(join(out, "unpacked"), { recursive: true, force: true });
for (const name of readdirSync(out)) if (/^tricorn-.*\.tgz$/.test(name)) rmSync(join(out, name));
const folders = [main(), ...addons.map(platform)];
const [command, shell] = process.platform === "win32" ? ["npm.cmd", true] : ["npm", false];
for (const folder of folders) {
  const args = ["pack", "--silent", "--ignore-scripts", "--pack-destination", relative(folder, out)];
  const { status, error } = spawnSync(command, args, { cwd: folder, shell, stdio: ["ignore", "pipe", "inherit"] });
  if (status !== 0) fail(`npm pack failed in ${folder}${error ? `: ${error.message}` : ""}`);
}
for (const name of readdirSync(out)) if (name.endsWith(".tgz")) console.error(join(out, name));
