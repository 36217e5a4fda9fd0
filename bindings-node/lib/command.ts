/** The command `tricorn`: the package's `bin`. */

import { fileURLToPath } from "node:url";
import { loaded } from "./bridge/native.js";
import { here } from "./json/module-url.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

function nothing(): void {}

// Node's own handlers raise the signal again, for ever where the command listens, too. To take back one of ours takes
// back Node's.
for (const signal of SIGNALS) process.on(signal, nothing).off(signal, nothing);

try {
  process.exit(loaded().command(process.argv.slice(2), process.execPath, fileURLToPath(here())));
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exit(2);
}
