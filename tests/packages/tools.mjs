// The programs that these checks need, installed once in `target/packages/tools`, and how programs are run.
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** The repository. */
export const root = dirname(dirname(here));

/** Everything that is made here. */
export const target = join(root, "target", "packages");

export const platforms = JSON.parse(readFileSync(join(root, "bindings-node/lib/bridge/platforms.json"), "utf8"));

/** Says that something holds. */
export function said(line) {
  process.stdout.write(`ok: ${line}\n`);
}

/** Ends the program, saying why. */
export function fail(message) {
  console.error(message);
  process.exit(1);
}

/** The folder with the tools' `node_modules`. */
export function tools() {
  const place = join(target, "tools");
  const manifest = join(here, "tools", "package.json");
  const installed = join(place, "node_modules", ".package-lock.json");
  const copy = join(place, "package.json");
  if (existsSync(installed) && readFileSync(copy, "utf8") === readFileSync(manifest, "utf8")) return place;
  mkdirSync(place, { recursive: true });
  copyFileSync(manifest, copy);
  const { status } = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--silent"], {
    cwd: place,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) fail(`npm install failed in ${place}: the tools for the checks of packages need the registry`);
  return place;
}

/** The tool's program. */
export function tool(name) {
  return join(tools(), "node_modules", ".bin", name);
}

/** Runs a program to its end, two minutes at most. */
export function run(command, args, options = {}) {
  const { cwd, env = process.env, limit = 120_000, stdio = "pipe" } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", stdio, stdio], timeout: limit });
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      stdout += text;
    });
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** As {@link run}, and fails if the program does. */
export async function must(command, args, options) {
  const done = await run(command, args, options);
  if (done.code === 0) return done;
  throw new Error(`${command} ${args.join(" ")}: ended with ${done.code ?? done.signal}\n${done.stdout}${done.stderr}`);
}

/** The file of a program on the PATH. */
export function which(name, path = process.env.PATH ?? "") {
  const found = path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(existsSync);
  return found && realpathSync(found);
}
