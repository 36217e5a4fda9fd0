// A Next application in out/next with our server in a route handler, as docs/guides/bundlers.md has it; then its build.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "out/next");
const files = {
  "package.json": '{ "private": true }',
  "next.config.mjs": `export default {
  serverExternalPackages: ["tricorn"],
  turbopack: { root: ${JSON.stringify(here)} },
  headers: async () => [{ source: "/mcp", headers: [{ key: "Access-Control-Allow-Origin", value: "*" }] }],
};`,
  "app/layout.jsx": `export default function Layout({ children }) {
  return <html lang="en"><body>{children}</body></html>;
}`,
  "app/page.jsx": `export default function Page() {
  return <p>A page beside it</p>;
}`,
  "app/mcp/route.js": `import { cookies } from "next/headers";
import { app, carrier } from "../../tools.mjs";

const { fetch } = app.http({ allowedHosts: ["*"] });
// Next waits for what is open.
process.once("SIGTERM", () => app.close());
carrier.isCarried = true;
export const runtime = "nodejs";
export const GET = async (request) => {
  const jar = await cookies();
  const session = jar.get("session")?.value ?? crypto.randomUUID();
  jar.set("session", session, { httpOnly: true });
  const read = request.method === "POST" ? { body: await request.json() } : {};
  return carrier.run({ session }, () => fetch(request, read));
};
export const POST = GET;
export const DELETE = GET;`,
};
rmSync(out, { recursive: true, force: true });
for (const [name, text] of Object.entries(files)) {
  const file = join(out, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${text}\n`);
}
copyFileSync(join(here, "tools.mjs"), join(out, "tools.mjs"));
// As a registry installs it: Turbopack follows no link out of its root.
const ours = realpathSync(join(here, "node_modules/tricorn"));
for (const name of ["package.json", "bindings-node/dist"]) {
  cpSync(join(ours, name), join(out, "node_modules/tricorn", name), { recursive: true });
}
const next = join(here, "node_modules/next/dist/bin/next");
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
process.exitCode = spawnSync(process.execPath, [next, "build"], { cwd: out, env, stdio: "inherit" }).status ?? 1;
