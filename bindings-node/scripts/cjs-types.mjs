#!/usr/bin/env node
// Copies the types to where programs in the form of CommonJS find them: to TypeScript, what a file is decides what its
// types are. The code is the same; Node loads it either way.

import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");
const cjs = join(dist, "cjs");
mkdirSync(cjs, { recursive: true });
for (const name of readdirSync(dist)) if (name.endsWith(".d.ts")) copyFileSync(join(dist, name), join(cjs, name));
writeFileSync(join(cjs, "package.json"), '{ "type": "commonjs" }\n');
