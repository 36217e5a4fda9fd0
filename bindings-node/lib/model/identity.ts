/** The user's own package: where a server's or client's name and version come from by default. */

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

interface Package {
  readonly name: string | undefined;
  readonly version: string | undefined;
}

let found: Package | undefined;

/** Name and version in the package.json nearest to the program, or to the working directory. */
export function userPackage(): Package {
  found ??= nearest(dirname(resolve(process.argv[1] ?? "."))) ?? nearest(process.cwd());
  found ??= { name: undefined, version: undefined };
  return found;
}

function nearest(start: string): Package | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Partial<
        Record<string, unknown>
      >;
      // Some package.json only say `"type": "module"`.
      if (typeof name === "string") return { name, version: typeof version === "string" ? version : undefined };
    } catch {
      // No such file here, or not one that can be used: look further up.
    }
    if (folder === dirname(folder)) return undefined;
  }
}
