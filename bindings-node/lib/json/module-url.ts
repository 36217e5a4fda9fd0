/** The URL of this package's code, from which other modules are resolved. */

import { pathToFileURL } from "node:url";

// Of a bundle in the form of CommonJS; there `import.meta` is empty.
declare const __filename: string | undefined;

/** The URL of this very file, or of the bundle that it has become a part of. */
export function here(): string {
  const url = import.meta.url as string | undefined;
  if (typeof url === "string" && url !== "") return url;
  return pathToFileURL(typeof __filename === "string" ? __filename : (process.argv[1] ?? "index.js")).href;
}
