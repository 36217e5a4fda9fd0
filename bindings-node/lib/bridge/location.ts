/** The place of this package, also when it is a part of a bundle. */

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { here } from "../json/module-url.js";

/** The place of this file: a bundle, the sources, or an installed package. */
export type Location =
  | { readonly kind: "bundle"; readonly file: string }
  /** The sources, of which the compiled module is built. */
  | { readonly kind: "checkout" }
  /** The package as a package manager has put it into node_modules. */
  | { readonly kind: "installed"; readonly folder: string };

/** Finds the place of this file. Only asked where something is wrong: it reads files. */
export function locate(): Location {
  const url = here();
  if (!url.startsWith("file:")) return { kind: "bundle", file: url };
  const file = fileURLToPath(url);
  const above = dirname(dirname(file));
  if (isOurs(above)) return { kind: "installed", folder: above };
  return isOurs(dirname(above)) ? { kind: "checkout" } : { kind: "bundle", file: url };
}

function isOurs(folder: string): boolean {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).name === "tricorn";
  } catch {
    return false;
  }
}
