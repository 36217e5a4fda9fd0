// What people see who build the package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../scripts/build-native.mjs", import.meta.url));
const pack = fileURLToPath(new URL("../scripts/pack.mjs", import.meta.url));

test("without cargo the build says what is missing and where to get it", () => {
  const { status, stderr } = spawnSync(process.execPath, [script], { env: { PATH: "" }, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /^tricorn: .*Rust.*cargo is not installed.*https:\/\/rustup\.rs/);
});

test("a file of no platform is not packed, and nothing else is", (t) => {
  const out = mkdtempSync(join(tmpdir(), "tricorn-pack-"));
  t.after(() => rmSync(out, { recursive: true }));
  const file = join(out, "tricorn.plan9-x64.node");
  writeFileSync(file, "");
  const packed = (name) => spawnSync(process.execPath, [pack, "--out", out, name], { encoding: "utf8" });
  const unknown = packed(file);
  assert.equal(unknown.status, 1);
  assert.match(
    unknown.stderr,
    /^pack: tricorn\.plan9-x64\.node is the file of no platform: .*tricorn\.linux-x64-musl\.node/,
  );
  assert.match(packed(join(out, "none.node")).stderr, /^pack: there is no file .*none\.node/);
  assert.deepEqual(readdirSync(out), ["tricorn.plan9-x64.node"]);
});
