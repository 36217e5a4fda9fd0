// The same as server.mjs, without an await outside of functions.
import { app } from "./tools.mjs";

const at = process.argv.indexOf("--http");
const [host, port] = (process.argv[at + 1] ?? "").split(":");
if (at < 0) app.run();
else app.run({ host, port: Number(port), allowedHosts: ["*"] });
