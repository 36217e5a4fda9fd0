// What people see who build the package.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../scripts/build-native.mjs", import.meta.url));

test("without cargo the build says what is missing and where to get it", () => {
  const { status, stderr } = spawnSync(process.execPath, [script], { env: { PATH: "" }, encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /^tricorn: .*Rust.*cargo is not installed.*https:\/\/rustup\.rs/);
});
