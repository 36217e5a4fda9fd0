// One file of the server, by a bundler: bundle.mjs KIND, into out/KIND.
import { copyFileSync, mkdirSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const kind = process.argv[2];
const out = join(here, "out", kind);
const entry = join(here, "server.mjs");
// CommonJS has no await outside of functions.
const program = { esm: entry, cjs: join(here, "program.mjs") };
mkdirSync(out, { recursive: true });

const kinds = {
  "esbuild-esm": () => esbuild("esm", "server.mjs"),
  "esbuild-cjs": () => esbuild("cjs", "server.cjs"),
  vite: async () => {
    const { build } = await import("vite");
    const lib = { rollupOptions: { input: entry, output: { entryFileNames: "server.mjs", format: "es" } } };
    await build({
      root: here,
      logLevel: "error",
      configFile: false,
      ssr: { noExternal: true },
      build: { ssr: entry, outDir: out, target: "node20", emptyOutDir: false, ...lib },
    });
  },
  webpack: async () => {
    const { default: webpack } = await import("webpack");
    const options = {
      mode: "production",
      target: "node20",
      entry,
      context: here,
      experiments: { outputModule: true },
      externals: { tricorn: "module tricorn" },
      output: { path: out, filename: "server.mjs", module: true, library: { type: "module" }, chunkFormat: "module" },
    };
    await new Promise((resolve, reject) => {
      webpack(options, (error, stats) => {
        if (error || stats.hasErrors()) reject(error ?? new Error(stats.toString("errors-only")));
        else resolve();
      });
    });
  },
  rollup: async () => {
    const { rollup } = await import("rollup");
    const bundle = await rollup({ input: entry, external: ["tricorn", /^node:/] });
    await bundle.write({ file: join(out, "server.mjs"), format: "es" });
  },
};

async function esbuild(format, name) {
  const { build } = await import("esbuild");
  const options = { bundle: true, platform: "node", format, logLevel: "error" };
  await build({ entryPoints: [program[format]], outfile: join(out, name), ...options });
}

await kinds[kind]();
const dist = join(realpathSync(join(here, "node_modules/tricorn")), "bindings-node/dist");
for (const file of readdirSync(dist)) if (file.endsWith(".node")) copyFileSync(join(dist, file), join(out, file));
