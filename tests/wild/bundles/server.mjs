// What is bundled, and what runtimes run: the tools of the checks over standard streams or HTTP.
import { app } from "./tools.mjs";

const at = process.argv.indexOf("--http");
if (at < 0) {
  await app.run();
} else {
  const [host, port] = process.argv[at + 1].split(":");
  await app.run({ host, port: Number(port), allowedHosts: ["*"] });
}
