#!/usr/bin/env node
// Compiles the addon and puts it and its description into dist/.
//
// The package needs cargo and nothing from npm for this, so it also works in installs without
// development dependencies. Its arguments are for cargo.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const binding = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(binding, "dist");

function fail(message) {
  console.error(`tricorn: ${message}`);
  process.exit(1);
}

function compile() {
  const args = ["build", "--release", "--locked", "-p", "tricorn-node", "--message-format=json-render-diagnostics"];
  args.push(...process.argv.slice(2));
  const { error, status, stdout } = spawnSync("cargo", args, {
    cwd: dirname(binding),
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (error?.code === "ENOENT") {
    fail("the engine is written in Rust and cargo is not installed. Get it from https://rustup.rs and try again.");
  }
  if (error) fail(`cargo could not be started: ${error.message}`);
  if (status !== 0) fail("cargo build failed; what it said is above.");
  const messages = stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  // Also there, from cargo's memory, when nothing had to be compiled.
  const ours = messages.filter((message) => /\btricorn-node\b|bindings-node/.test(message.package_id ?? ""));
  const library = ours
    .filter((message) => message.reason === "compiler-artifact" && message.target.kind.includes("cdylib"))
    .flatMap((message) => message.filenames)
    .find((name) => /\.(so|dylib|dll)$/.test(name));
  const description = ours.find((message) => message.reason === "build-script-executed")?.out_dir;
  if (!library) fail("cargo built no library.");
  return { library, description: description && join(description, "tricorn-node") };
}

function abi() {
  if (process.platform === "win32") return "-msvc";
  if (process.platform !== "linux") return "";
  // As Node itself was built: the addon is loaded into it. The report is slow, which is fine here.
  return process.report.getReport().header.glibcVersionRuntime ? "-gnu" : "-musl";
}

// Renaming, not overwriting: programs that have the old file loaded keep it.
function put(source, name) {
  const target = join(dist, name);
  copyFileSync(source, `${target}.new`);
  try {
    renameSync(`${target}.new`, target);
  } catch (error) {
    if (process.platform !== "win32") throw error;
    // There a file that is loaded cannot be replaced, but can get another name.
    renameSync(target, `${target}.${Date.now()}.old`);
    renameSync(`${target}.new`, target);
  }
}

const { library, description } = compile();
mkdirSync(dist, { recursive: true });
put(library, `tricorn.${process.platform}-${process.arch}${abi()}.node`);
if (description && existsSync(description)) put(description, "addon.exports.jsonl");
