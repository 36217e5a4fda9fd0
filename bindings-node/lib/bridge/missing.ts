/** The message about a compiled module that is not there: its package, the reason, the command that mends it. */

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { locate } from "./location.js";
import platforms from "./platforms.json" with { type: "json" };

/** Says where the compiled module is, when that is neither beside this package nor in a package of its own. */
export const VARIABLE = "TRICORN_ADDON";

/**
 * Explains why there is no compiled module.
 *
 * @param names the platforms that one may be for
 * @param failures what came of looking for it
 */
export function missing(load: NodeJS.Require, names: readonly string[], failures: readonly unknown[]): string {
  const [name = ""] = names;
  // Present, and not to be loaded: that is said by the system.
  const broken = failures.find((error) => (error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND");
  const why = broken instanceof Error ? ` (${broken.message.split("\n")[0]})` : "";
  const from = locate();
  if (from.kind === "bundle") {
    const files = names.map((one) => `tricorn.${one}.node of the package @tricorn/${one}`).join(" or ");
    return (
      `tricorn is a part of the bundle ${from.file}, and its compiled module is not beside that${why}. Keep tricorn out ` +
      'of the bundle (esbuild: --external:tricorn; webpack: externals; Next.js: serverExternalPackages: ["tricorn"]), ' +
      `or put ${files} beside the bundle, or name the file in ${VARIABLE}`
    );
  }
  if (from.kind === "checkout") {
    return (
      `tricorn is a checkout without a compiled module for ${name}${why}. "npm install" in the checkout builds it, with ` +
      `cargo, on the system that the program runs on; ${VARIABLE} names the file where it is elsewhere`
    );
  }
  if (!platforms.some((one) => names.includes(one.name))) {
    return (
      `tricorn has no compiled module for ${name}; there are modules for ${list(platforms.map((one) => one.name))}. ` +
      `Run the program on one of these platforms, or build the module from the sources and name its file in ${VARIABLE}`
    );
  }
  if (broken) {
    const mend =
      'Update the system if it is older than the module needs, else remove node_modules and run "npm install"';
    return `tricorn: the compiled module @tricorn/${name} is installed and cannot be loaded${why}. ${mend}`;
  }
  return notInstalled(load, name, from.folder);
}

/** Explains why the package for this platform is not there. */
function notInstalled(load: NodeJS.Require, name: string, folder: string): string {
  const others = platforms.map((one) => one.name).filter((one) => one !== name && isThere(load, one));
  const lock = lockAbove(folder);
  const own = `@tricorn/${name}`;
  const isLocked = lock !== undefined && names(lock, own);
  const install = `"${lock?.manager ?? "npm"} install"`;
  const here = `remove node_modules and run ${install} on the system that the program runs on`;
  const anew = `remove node_modules and ${lock?.file}, and run ${install} on the system that the program runs on`;
  const because = (reason: string, mend: string) =>
    `tricorn: the package ${own}, its compiled module for this platform, is not installed. ${reason}. To mend it, ` +
    `${mend}. ${VARIABLE} names the file of the module where it is elsewhere`;
  if (others.length > 0) {
    const reason = `There is ${list(others.map((one) => `@tricorn/${one}`))}: node_modules is of another platform`;
    if (lock && !isLocked) return because(`${reason}, and so is ${lock.path}, which does not name ${own}`, anew);
    return because(reason, here);
  }
  if (lock && !isLocked && names(lock, "tricorn")) {
    const bug =
      lock.manager === "npm" ? ", as npm writes it beside node_modules of another platform (npm/cli#4828)" : "";
    return because(`${lock.path} does not name it${bug}`, anew);
  }
  const left = "the optional dependencies of packages were left out (--omit=optional, --no-optional, or a setting)";
  const include =
    lock && lock.manager !== "npm" ? `run ${install} without that` : 'run "npm install --include=optional"';
  if (isLocked) return because(`${lock?.path} names it, so ${left}`, include);
  return because(`As a rule ${left}, or node_modules comes from another platform`, `${include}, or ${here}`);
}

function isThere(load: NodeJS.Require, name: string): boolean {
  try {
    load.resolve(`@tricorn/${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}

const LOCKS: readonly (readonly [file: string, manager: string])[] = [
  ["package-lock.json", "npm"],
  ["npm-shrinkwrap.json", "npm"],
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["bun.lock", "bun"],
];

interface Lock {
  readonly manager: string;
  readonly file: string;
  readonly path: string;
  readonly text: string;
}

/** True if a lockfile has a package itself, and not only as what another one may need. */
function names({ manager, text }: Lock, name: string): boolean {
  return text.includes(manager === "npm" ? `node_modules/${name}"` : `${name}@`);
}

/** The nearest lockfile above a folder. */
function lockAbove(folder: string): Lock | undefined {
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    for (const [file, manager] of LOCKS) {
      const path = join(above, file);
      if (!existsSync(path)) continue;
      try {
        return { manager, file, path, text: readFileSync(path, "utf8") };
      } catch {
        // Not to be read: as if it were not there.
      }
    }
  }
  return undefined;
}

/** The message about a compiled module of another version. */
export function unfit(path: string, version: string, own: string): string {
  const from = locate();
  const mend =
    from.kind === "checkout"
      ? 'Build it again: "npm run build"'
      : path.startsWith("@")
        ? `Remove node_modules and install again; a lockfile or an override that names ${path} must say ${own}, too`
        : `Put the file of ${own} in its place`;
  return `tricorn is ${own} and its compiled module ${path} is ${version}; both have to be of one version. ${mend}`;
}

function list(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
