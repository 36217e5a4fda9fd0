// Two processes that share a port: `node:cluster` gives its workers one where Node's own server listens.
import cluster from "node:cluster";
import { createServer } from "node:http";
import { Server } from "tricorn";

if (cluster.isPrimary) {
  const ports = new Set();
  let ready = 0;
  for (const _ of [1, 2]) cluster.fork();
  cluster.on("message", (_worker, { port }) => {
    ports.add(port);
    ready += 1;
    if (ready === 2) process.stdout.write(`${JSON.stringify([...ports])}\n`);
  });
  // The end of the test is the end of standard input.
  process.stdin.resume().on("end", () => {
    for (const worker of Object.values(cluster.workers)) worker.kill();
  });
} else {
  const app = new Server("shared").tool("who", () => String(process.pid));
  const web = createServer(app.listener({ stateless: true }));
  web.listen(0, "127.0.0.1", () => process.send({ port: web.address().port }));
}
