// The types of the packed `tricorn`, as each way of TypeScript to find modules sees them, and its manifest.
//
//   node tests/packages/node-types.mjs [target/dist/npm]
//
// One line for each thing that holds; the first that does not ends it with status 1.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fail, must, root, said, tool, tools } from "./tools.mjs";

const dist = resolve(process.argv[2] ?? join(root, "target/dist/npm"));
const tarballs = readdirSync(dist).filter((name) => name.endsWith(".tgz"));
const main = tarballs.find((name) => /^tricorn-\d/.test(name)) ?? fail(`${dist}: there is no tarball of tricorn`);

const PROGRAM = `import { type Client, connect, Server } from "tricorn";
import { supportsUi } from "tricorn/apps";
import { telemetry } from "tricorn/otel";
import { withClient } from "tricorn/testing";
import type { Tool } from "tricorn/types";
const app = new Server("typed").tool("add", ({ a }, ctx) => (supportsUi(ctx) ? a : 0)).middleware(telemetry());
export const done: Promise<void> = withClient(app, async (client: Client) => void (await client.listTools()));
export const client: Promise<Client> = connect(app);
export type Names = Tool["name"];
// @ts-expect-error: a server has a name
new Server(1);
`;

/** Combinations of a version of TypeScript, the way modules are found, and the kind of the program. */
const WAYS = [
  ["5", "commonjs", "node10", "commonjs"],
  ["5", "node16", "node16", "commonjs"],
  ["5", "node16", "node16", "module"],
  ["5", "esnext", "bundler", "module"],
  ["7", "node16", "node16", "commonjs"],
  ["7", "node16", "node16", "module"],
  ["7", "nodenext", "nodenext", "commonjs"],
  ["7", "nodenext", "nodenext", "module"],
  ["7", "esnext", "bundler", "module"],
];

const compilers = {
  5: join(tools(), "node_modules/typescript/bin/tsc"),
  7: join(root, "node_modules/typescript/bin/tsc"),
};

async function typed(place, [version, module, moduleResolution, type]) {
  writeFileSync(join(place, "package.json"), JSON.stringify({ type }));
  const compilerOptions = {
    module,
    moduleResolution,
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ["node"],
  };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  await must(process.execPath, [compilers[version], "-p", place], { cwd: place });
  said(`TypeScript ${version}, module ${module}, moduleResolution ${moduleResolution}, a program of type ${type}`);
}

/** Editors and traces go from the types and the code to the sources. */
function mapped(folder) {
  const maps = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".map"));
  if (!maps.includes("core.js.map") || !maps.includes("index.d.ts.map")) fail("there are no maps in the package");
  for (const name of maps) {
    const file = join(folder, name);
    for (const source of JSON.parse(readFileSync(file, "utf8")).sources) {
      if (!existsSync(join(dirname(file), source)))
        fail(`dist/${name} points to ${source}, which is not in the package`);
    }
  }
  said(`${maps.length} maps point to sources that are in the package`);
}

const place = mkdtempSync(join(tmpdir(), "tricorn-types-"));
try {
  for (const name of tarballs) await must(tool("publint"), ["--strict", join(dist, name)]);
  said("publint: the manifests");
  await must(tool("attw"), [join(dist, main)]);
  said("arethetypeswrong: node10, node16 (CommonJS and modules), bundler");
  mkdirSync(join(place, "node_modules/tricorn"), { recursive: true });
  await must("tar", ["-xzf", join(dist, main), "--strip-components=1", "-C", join(place, "node_modules/tricorn")]);
  mapped(join(place, "node_modules/tricorn/dist"));
  for (const name of ["@types", "@opentelemetry", "undici-types"]) {
    symlinkSync(join(root, "node_modules", name), join(place, "node_modules", name));
  }
  writeFileSync(join(place, "program.ts"), PROGRAM);
  for (const way of WAYS) await typed(place, way);
} finally {
  rmSync(place, { recursive: true, force: true });
}
