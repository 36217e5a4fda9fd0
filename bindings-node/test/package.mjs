// The package under test: a checkout, or what a package manager has installed.
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";

const { resolve } = createRequire(import.meta.url);

/** The folder of the package. */
export const root = dirname(resolve("tricorn/package.json"));

/** The folder of its JavaScript, and of its sources beside that. */
export const dist = dirname(createRequire(join(root, "package.json")).resolve("tricorn")).replace(/.cjs$/, "");

/** The file of its compiled module. */
export const native = beside() ?? resolve(`@tricorn/${own()}`);

/** The platform that it is for, as in the file's name. */
export const platform = /^tricorn\.(.+)\.node$/.exec(basename(native))[1];

/** The compiler of TypeScript. */
export const tsc = join(dirname(resolve("typescript/package.json")), "bin", "tsc");

function beside() {
  const name = readdirSync(dist).find((file) => file.endsWith(".node"));
  return name && join(dist, name);
}

/** Finds the installed package among those that a platform could have. */
function own() {
  const { platform, arch } = process;
  return ["-gnu", "-musl", "-msvc", ""]
    .map((abi) => `${platform}-${arch}${abi}`)
    .find((name) => {
      try {
        return resolve(`@tricorn/${name}/package.json`);
      } catch {
        return false;
      }
    });
}
