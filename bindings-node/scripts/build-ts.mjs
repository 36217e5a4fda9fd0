#!/usr/bin/env node
// Makes the JavaScript and the types of the package, in dist/:
//
//   core.js          all of the code but tricorn/otel, in one file: a program loads two files, and not sixty
//   index.js, ...    the entry points, which give what is in core.js, so that all of them share its classes
//   command.js       the command `tricorn`
//   *.d.ts, *.map    the types of each source file, and the places in lib/ that they and core.js come from
//   cjs/             the same entry points and types for programs in the form of CommonJS

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const binding = dirname(dirname(fileURLToPath(import.meta.url)));
const lib = join(binding, "lib");
const dist = join(binding, "dist");
const cjs = join(dist, "cjs");
const { exports: entries, version } = JSON.parse(readFileSync(join(dirname(binding), "package.json"), "utf8"));

/** Names of the entry points, as `package.json` has them. */
const names = Object.values(entries)
  .flatMap((entry) => entry.import?.default ?? [])
  .map((path) => /([^/]+)\.js$/.exec(path)[1]);

/** Those of the code that a previous build made, with their folders; the compiled module stays. */
function sweep() {
  for (const entry of readdirSync(dist, { withFileTypes: true })) {
    if (entry.isDirectory() || /\.(js|ts|map)$/.test(entry.name)) rmSync(join(dist, entry.name), { recursive: true });
  }
  mkdirSync(cjs);
}

function types() {
  const tsc = createRequire(import.meta.url)
    .resolve("typescript/package.json")
    .replace(/package\.json$/, "bin/tsc");
  const args = [tsc, "-p", binding, "--emitDeclarationOnly"];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
  copyFileSync(join(lib, "bridge/addon.d.ts"), join(dist, "bridge/addon.d.ts"));
}

const options = {
  absWorkingDir: binding,
  outdir: dist,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  define: { TRICORN_VERSION: JSON.stringify(version) },
  sourcemap: "linked",
  // They are in the package, for the maps of the types.
  sourcesContent: false,
  logLevel: "warning",
};

/** Takes from core.js what another source file exports. */
const shared = (core) => ({
  name: "shared",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\.\// }, ({ kind }) => (kind === "entry-point" ? undefined : { path: core, external: true })),
});

/** The names that an entry point exports. */
async function exported(name) {
  const { metafile } = await build({
    ...options,
    entryPoints: [join(lib, `${name}.ts`)],
    metafile: true,
    sourcemap: false,
    write: false,
  });
  return Object.values(metafile.outputs)[0].exports;
}

async function code() {
  await build({ ...options, entryPoints: [join(lib, "core.ts")] });
  ownNames(join(dist, "core.js"));
  const whole = new Set(await exported("core"));
  for (const name of names) {
    if (name === "otel") {
      await otel();
      continue;
    }
    const exports = (await exported(name)).sort();
    const from = exports.every((one) => whole.has(one)) ? "core" : name;
    writeFileSync(join(dist, `${name}.js`), facade(from, exports));
    writeFileSync(join(cjs, `${name}.js`), facadeOfCommonJs(from, exports));
  }
  writeFileSync(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
}

/** The package's `bin`, which needs the compiled module alone: a file of its own, so that it starts at once. */
async function command() {
  await build({ ...options, entryPoints: [join(lib, "command.ts")], banner: { js: "#!/usr/bin/env node" } });
  chmodSync(join(dist, "command.js"), 0o755);
}

/** Apart from the rest, as its dependency is loaded by those alone who import it. It has no class and no state. */
async function otel() {
  const own = { ...options, entryPoints: [join(lib, "otel.ts")] };
  await build({ ...own, plugins: [shared("./core.js")] });
  await build({ ...own, outdir: cjs, format: "cjs", plugins: [shared("../core.js")] });
}

// esbuild calls a class that refers to itself `_Name`, which is what programs would see of it.
function ownNames(file) {
  const code = readFileSync(file, "utf8");
  const renamed = [...code.matchAll(/^var (\w+) = class _\1\b/gm)].map(([, name]) => name);
  if (renamed.length === 0) return;
  writeFileSync(file, code.replace(new RegExp(`\\b_(${renamed.join("|")})\\b`, "g"), "$1"));
}

/** An entry point: names of core.js, or of an object that core.js exports. */
function facade(from, exports) {
  if (exports.length === 0) return "export {};\n";
  const list = exports.join(",\n  ");
  if (from === "core") return `export {\n  ${list},\n} from "./core.js";\n`;
  return `import { ${from} } from "./core.js";\nexport const {\n  ${list},\n} = ${from};\n`;
}

// Node loads modules by `require`, too. A second copy of the code would have classes and a state of its own.
function facadeOfCommonJs(from, exports) {
  const load = from === "core" ? "const core" : `const { ${from} }`;
  const lines = exports.map((name) => `exports.${name} = ${from}.${name};\n`);
  return `"use strict";\n${lines.length > 0 ? `${load} = require("../core.js");\n` : ""}${lines.join("")}`;
}

// To TypeScript, what a file is decides what its types are.
function typesOfCommonJs() {
  const types = readdirSync(dist, { recursive: true }).filter((name) => /\.d\.ts(\.map)?$/.test(name));
  for (const name of types) {
    mkdirSync(join(cjs, dirname(name)), { recursive: true });
    if (name.endsWith(".d.ts")) copyFileSync(join(dist, name), join(cjs, name));
    if (!name.endsWith(".d.ts.map")) continue;
    const map = JSON.parse(readFileSync(join(dist, name), "utf8"));
    map.sources = map.sources.map((source) => `../${source}`);
    writeFileSync(join(cjs, name), JSON.stringify(map));
  }
}

mkdirSync(dist, { recursive: true });
sweep();
types();
await code();
await command();
typesOfCommonJs();
