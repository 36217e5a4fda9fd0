/** The compiled module: where it is, and what to do where it is not. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import type * as Addon from "./addon.js";
import { MisuseError } from "./errors.js";
import { bundle, here } from "./place.js";

/** Says where the compiled module is, when that is not beside this package. */
const VARIABLE = "TRICORN_NATIVE";

/**
 * The compiled module.
 *
 * @throws {MisuseError} saying what to do
 */
export function loaded(): typeof Addon {
  const { platform, arch } = process;
  const load = createRequire(here());
  const given = process.env[VARIABLE];
  if (given) {
    const path = resolve(given);
    if (!existsSync(path)) throw new MisuseError(`${VARIABLE}: there is no file ${path}`);
    return load(path) as typeof Addon;
  }
  // Which C library a Linux has is not worth asking: only one of the two files will be there.
  const abis = platform === "linux" ? ["-gnu", "-musl"] : platform === "win32" ? ["-msvc"] : [""];
  const names = abis.map((abi) => ["tricorn", `${platform}-${arch}${abi}`, "node"].join("."));
  const failures: unknown[] = [];
  for (const name of names) {
    try {
      return load(["./", name].join("")) as typeof Addon;
    } catch (error) {
      failures.push(error);
    }
  }
  const cause = failures.length === 1 ? failures[0] : new AggregateError(failures);
  // Present, and not to be loaded: that is said by the system.
  const broken = failures.find((error) => (error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND");
  const why = broken instanceof Error ? ` (${broken.message.split("\n")[0]})` : "";
  throw new MisuseError(`${advice(names, platform, arch)}${why}`, { cause });
}

function advice(names: readonly string[], platform: string, arch: string): string {
  const file = bundle();
  if (file !== undefined) {
    return (
      `tricorn is a part of the bundle ${file}, and its compiled module is not beside that. Keep tricorn out of the ` +
      'bundle (esbuild: --external:tricorn; webpack: externals; Next.js: serverExternalPackages: ["tricorn"]), or put ' +
      `${names.join(" or ")} from its folder bindings-node/dist beside the bundle, or say where it is by ${VARIABLE}`
    );
  }
  return (
    `tricorn has no compiled module for ${platform}-${arch} in its folder. In a checkout, "npm install" builds it (with ` +
    `cargo). node_modules of another system do not fit: install on the system that the program runs on. ${VARIABLE} says ` +
    "where the module is when it is elsewhere"
  );
}
