// The packages of a folder (`bindings-node/scripts/pack.mjs`) as a user gets them: published to a registry of our own on
// a loopback port, installed from there in empty folders with an empty home and without Rust, and used.
//
//   node tests/packages/node.mjs [target/dist/npm] [--quick] [--within seconds]
//   node tests/packages/node.mjs [target/dist/npm] --node program --os linux --cpu arm64 [--libc glibc]
//
// `--quick`: npm and Node alone. `--within`: the most that may pass between `npm install` and the answer. One line for each thing that holds; the first that does not ends it with status 1.
// `--node`: a program that runs Node of another platform, which npm installs for. Its output is a file: wine has no pipes for it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { must, platforms, root, run, said, tool, tools, which } from "./tools.mjs";

const options = {
  quick: { type: "boolean" },
  within: { type: "string", default: "Infinity" },
  node: { type: "string" },
  os: { type: "string" },
  cpu: { type: "string" },
  libc: { type: "string" },
};
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const dist = resolve(positionals[0] ?? join(root, "target/dist/npm"));
const place = mkdtempSync(join(tmpdir(), "tricorn-registry-"));

const SERVER = `const { Server } = await import("tricorn");
await new Server("installed").tool("add", ({ a, b }) => a + b).run();
`;

/** Calls a server in memory, and one that is another process. */
const PROGRAM = `
async function main({ connect, Server }) {
  const local = new Server("local").tool("add", ({ a, b }) => a + b);
  const [, , program, ...args] = process.argv;
  const command = program === "self" ? process.execPath : program;
  const { OUTPUT } = process.env;
  const fs = await import("node:fs");
  const say = (text) => (OUTPUT ? fs.appendFileSync(OUTPUT, text + "\\n") : console.log(text));
  for (const target of [local, { command, args }]) {
    const client = await connect(target);
    say((await client.callTool("add", { a: 1, b: 2 })).text);
    await client.close();
  }
}
`;
const PROGRAMS = {
  "server.mjs": SERVER,
  "program.mjs": `import * as tricorn from "tricorn";${PROGRAM}await main(tricorn);\n`,
  "program.cjs": `const tricorn = require("tricorn");${PROGRAM}main(tricorn);\n`,
};

const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** A registry that knows nothing but what is published to it. */
async function registry() {
  const port = await freePort();
  const config = `
storage: ${JSON.stringify(join(place, "storage"))}
auth: { htpasswd: { file: ${JSON.stringify(join(place, "htpasswd"))} } }
uplinks: {}
packages: { "**": { access: $all, publish: $anonymous } }
max_body_size: 200mb
web: { enable: false }
log: { type: stdout, format: pretty, level: warn }
`;
  writeFileSync(join(place, "registry.yaml"), config);
  const main = join(tools(), "node_modules/verdaccio/bin/verdaccio");
  const args = [main, "--config", join(place, "registry.yaml"), "--listen", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, args, { cwd: place, stdio: ["ignore", "ignore", "pipe"] });
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    words += text;
  });
  const url = `http://127.0.0.1:${port}/`;
  for (let tries = 0; ; tries++) {
    if (
      await fetch(`${url}-/ping`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      return { child, url, port };
    if (child.exitCode !== null || tries > 300) throw new Error(`the registry did not start: ${words}`);
    await setTimeout(100);
  }
}

/** The only programs that there are: no Rust, and nothing that compiles. */
function path() {
  const bin = join(place, "bin");
  mkdirSync(bin);
  const programs = { node: process.execPath, npm: which("npm"), npx: which("npx"), sh: which("sh") };
  for (const [name, file] of Object.entries(programs)) symlinkSync(file, join(bin, name));
  for (const name of ["cargo", "rustc", "cc"]) assert.equal(which(name, bin), undefined);
  return bin;
}

/** An empty folder with a manifest and the programs, and an environment with an empty home. */
function project(name, { url, bin }) {
  const folder = join(place, name);
  const home = join(place, `${name}-home`);
  mkdirSync(folder);
  mkdirSync(home);
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user", version: "1.0.0", private: true }));
  writeFileSync(join(folder, ".npmrc"), `registry=${url}\n`);
  for (const [file, text] of Object.entries(PROGRAMS)) writeFileSync(join(folder, file), text);
  const env = {
    HOME: home,
    PATH: bin,
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
  };
  return { cwd: folder, env };
}

/** Publishes the tarballs, and in place of the platforms that are not among them packages with nothing in them. */
async function publish({ url, port, bin }) {
  const { cwd, env } = project("publish", { url, bin });
  writeFileSync(join(env.HOME, ".npmrc"), `//127.0.0.1:${port}/:_authToken=none\n`);
  const tarballs = readdirSync(dist).filter((name) => name.endsWith(".tgz"));
  if (!tarballs.some((name) => /^tricorn-\d/.test(name))) throw new Error(`${dist}: there is no tarball of tricorn`);
  for (const name of tarballs) await must("npm", ["publish", "--provenance=false", join(dist, name)], { cwd, env });
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const absent = platforms.filter(({ name }) => !tarballs.includes(`tricorn-${name}-${version}.tgz`));
  for (const { name, os, cpu, libc } of absent) {
    const folder = join(cwd, name);
    const manifest = { name: `@tricorn/${name}`, version, os: [os], cpu: [cpu], ...(libc && { libc: [libc] }) };
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    await must("npm", ["publish", folder], { cwd, env });
  }
  said(`published ${tarballs.length} tarballs, and ${absent.length} packages of other platforms with nothing in them`);
  return version;
}

/** A program prints 3 twice, and nothing else. */
async function answers(project, command, args) {
  const { stdout, stderr } = await must(command, args, project);
  assert.deepEqual({ stdout, stderr }, { stdout: "3\n3\n", stderr: "" }, `${command} ${args.join(" ")}`);
}

const node = (file) => [process.execPath, [file, process.execPath, "server.mjs"]];

/** As most people do it, with the time that it takes. */
async function npm(world) {
  const one = project("npm", world);
  const begun = performance.now();
  await must("npm", ["install", "tricorn"], one);
  const installed = seconds(begun);
  const { stdout } = await must(process.execPath, ["program.mjs", process.execPath, "server.mjs"], one);
  const whole = performance.now() - begun;
  assert.equal(stdout, "3\n3\n");
  const lock = JSON.parse(readFileSync(join(one.cwd, "node_modules/.package-lock.json"), "utf8"));
  const packages = Object.keys(lock.packages);
  assert.equal(packages.length, 2, packages.join(", "));
  assert.ok(!Object.values(lock.packages).some((entry) => entry.hasInstallScript), "a package has an install script");
  said(`npm: ${packages.length} packages, installed in ${installed}`);
  said(`npm: add(1, 2) = 3 in memory and over stdio, ${(whole / 1000).toFixed(1)} s after npm install began`);
  if (!(whole <= 1000 * values.within)) throw new Error(`more than ${values.within} s from npm install to the answer`);
  await answers(one, ...node("program.mjs"));
  said("npm, node: a module");
  await answers(one, ...node("program.cjs"));
  said("npm, node: a program in the form of CommonJS");
  const called = await must("npx", ["tricorn", "call", "server.mjs", "add", "a:=1", "b:=2"], one);
  assert.equal(called.stdout, "3\n");
  said("npx tricorn call server.mjs add a:=1 b:=2");
  return one;
}

/** A Node of another platform, for which this machine's npm installs. */
async function elsewhere(world) {
  const one = project("elsewhere", world);
  const given = ["os", "cpu", "libc"].filter((name) => values[name]).map((name) => `--${name}=${values[name]}`);
  await must("npm", ["install", ...given, "tricorn"], one);
  const windows = values.os === "win32";
  const output = join(one.cwd, "output");
  writeFileSync(output, "");
  // A program that is a script for this machine starts no process there.
  const command = windows ? "self" : values.node;
  const env = { ...process.env, ...one.env, PATH: process.env.PATH, OUTPUT: windows ? `Z:${output}` : output };
  for (const file of ["program.mjs", "program.cjs"]) {
    await must(values.node, [file, command, "server.mjs"], { ...one, env, limit: 600_000, stdio: "ignore" });
  }
  assert.equal(readFileSync(output, "utf8"), "3\n3\n3\n3\n");
  said(`npm install ${given.join(" ")}: a module and a program in the form of CommonJS, in memory and over stdio`);
}

/** The errors of the loader, as npm brings them about. */
async function absent(world) {
  const one = project("absent", world);
  const loading = () => run(process.execPath, ["program.mjs", process.execPath, "server.mjs"], one);
  await must("npm", ["install", "--omit=optional", "tricorn"], one);
  assert.match((await loading()).stderr, /package-lock\.json names it, so .*run "npm install --include=optional"/);
  await must("npm", ["install", "--include=optional"], one);
  assert.equal((await loading()).stdout, "3\n3\n");
  said("npm install --omit=optional: the error says so, and its command mends it");

  const [os, cpu] = process.platform === "darwin" ? ["linux", "x64"] : ["darwin", "arm64"];
  rmSync(join(one.cwd, "node_modules"), { recursive: true });
  await must("npm", ["install", `--os=${os}`, `--cpu=${cpu}`], one);
  assert.match((await loading()).stderr, /There is @tricorn\/.*: node_modules is of another platform/);
  rmSync(join(one.cwd, "node_modules"), { recursive: true });
  await must("npm", ["install"], one);
  assert.equal((await loading()).stdout, "3\n3\n");
  said("node_modules of another platform: the error says so, and its command mends it");

  // As npm leaves it after an installation beside node_modules of another platform.
  const lockfile = join(one.cwd, "package-lock.json");
  const lock = JSON.parse(readFileSync(lockfile, "utf8"));
  for (const name of Object.keys(lock.packages)) if (name.includes("@tricorn/")) delete lock.packages[name];
  writeFileSync(lockfile, JSON.stringify(lock));
  rmSync(join(one.cwd, "node_modules"), { recursive: true });
  await must("npm", ["install"], one);
  const { code, stderr } = await loading();
  if (code !== 0) assert.match(stderr, /package-lock\.json does not name it.*npm\/cli#4828/);
  rmSync(join(one.cwd, "node_modules"), { recursive: true, force: true });
  rmSync(lockfile);
  await must("npm", ["install"], one);
  assert.equal((await loading()).stdout, "3\n3\n");
  said(
    `a lockfile without the package: ${code === 0 ? "this npm mends it by itself" : "the error says so, and its command mends it"}`,
  );
}

/** Other package managers and runtimes. */
async function others(world, installed) {
  const deno = (file) => [tool("deno"), ["run", "-A", file, tool("deno"), "run", "-A", "server.mjs"]];
  const bun = (file) => [tool("bun"), [file, tool("bun"), "server.mjs"]];
  await answers(installed, ...deno("program.mjs"));
  said("npm, deno: a module");
  await answers(installed, ...bun("program.mjs"));
  await answers(installed, ...bun("program.cjs"));
  said("npm, bun: a module, and a program in the form of CommonJS");
  const yarn = (name) => [process.execPath, join(tools(), "node_modules", name, "bin/yarn.js")];
  for (const [manager, [command, ...args], program] of [
    ["pnpm", [tool("pnpm"), "add", "tricorn"], node],
    ["yarn 1", [...yarn("yarn"), "add", "--no-progress", "tricorn"], node],
    ["bun", [tool("bun"), "add", "tricorn"], bun],
    // Deno passes over what was published today.
    ["deno", [tool("deno"), "add", "--minimum-dependency-age=0", "npm:tricorn"], deno],
  ]) {
    const one = project(manager.replace(" ", ""), world);
    await must(command, args, one);
    await answers(one, ...program("program.mjs"));
    said(`${manager}: installs it, and a module runs`);
  }
  const pnp = project("pnp", world);
  const settings = {
    npmRegistryServer: world.url,
    unsafeHttpWhitelist: ["127.0.0.1"],
    nodeLinker: "pnp",
    npmMinimalAgeGate: 0,
    enableTelemetry: false,
  };
  writeFileSync(join(pnp.cwd, ".yarnrc.yml"), JSON.stringify(settings));
  writeFileSync(join(pnp.cwd, "yarn.lock"), "");
  const [command, main] = yarn("yarn4");
  await must(command, [main, "add", "tricorn"], pnp);
  assert.ok(!readdirSync(pnp.cwd).includes("node_modules"));
  for (const file of ["program.mjs", "program.cjs"]) {
    await answers(pnp, command, [main, "node", file, process.execPath, "server.mjs"]);
  }
  said("yarn 4, without node_modules (PnP): a module, and a program in the form of CommonJS");
}

const server = await registry();
try {
  const world = { ...server, bin: path() };
  await publish(world);
  if (values.node) await elsewhere(world);
  else {
    const installed = await npm(world);
    await absent(world);
    if (!values.quick) await others(world, installed);
  }
} finally {
  server.child.kill();
  rmSync(place, { recursive: true, force: true });
}
