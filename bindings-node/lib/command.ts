#!/usr/bin/env node
/** The command `tricorn`: the package's `bin`. */

import { loaded } from "./native.js";

try {
  process.exit(loaded().command(process.argv.slice(2), process.execPath));
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exit(2);
}
