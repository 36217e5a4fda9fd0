/** The compiled module: where it is looked for. */

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { MisuseError } from "../errors/errors.js";
import { here } from "../json/module-url.js";
import type * as Addon from "./addon.js";
import { libcOf } from "./libc.js";
import { missing, unfit, VARIABLE } from "./missing.js";

// Put here by the build: the version of the package.
declare const TRICORN_VERSION: string;

/** The platforms that a compiled module may be for, so that it fits this program, the likeliest first. */
function platforms(): readonly string[] {
  const { platform, arch, execPath } = process;
  if (platform === "win32") return [`${platform}-${arch}-msvc`];
  if (platform !== "linux") return [`${platform}-${arch}`];
  const libc = libcOf(execPath);
  // The system refuses the one that does not fit, if nothing tells which it is.
  return (libc ? [libc] : ["gnu", "musl"]).map((abi) => `${platform}-${arch}-${abi}`);
}

/**
 * The compiled module: the file that {@link VARIABLE} names, else the one beside this package or the bundle that it is a
 * part of, else that of the package for this platform.
 *
 * @throws {MisuseError} saying why it is not there, and what to do
 */
export function loaded(): typeof Addon {
  const place = here();
  const load = createRequire(place);
  const given = process.env[VARIABLE];
  if (given) {
    const path = resolve(given);
    if (!existsSync(path)) throw new MisuseError(`${VARIABLE}: there is no file ${path}`);
    return fitting(load(path) as typeof Addon, path);
  }
  const names = platforms();
  // Put together, so that bundlers look for none of them.
  const beside = names
    .map((name) => ["./tricorn", name, "node"].join("."))
    .filter((path) => existsSync(new URL(path, place)));
  const failures: unknown[] = [];
  for (const path of [...beside, ...names.map((name) => ["@tricorn", name].join("/"))]) {
    let addon: typeof Addon;
    try {
      addon = load(path) as typeof Addon;
    } catch (error) {
      failures.push(error);
      continue;
    }
    return fitting(addon, path);
  }
  const cause = failures.length === 1 ? failures[0] : new AggregateError(failures);
  throw new MisuseError(missing(load, names, failures), { cause });
}

/** The two sides of the bridge are of one version, or do not understand each other. */
function fitting(addon: typeof Addon, path: string): typeof Addon {
  const version = addon.version();
  if (version === TRICORN_VERSION) return addon;
  throw new MisuseError(unfit(path, version, TRICORN_VERSION));
}
