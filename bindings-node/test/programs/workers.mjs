// A server and a client in each of several workers, one of which is ended in the middle of its work.
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { connect, Server } from "tricorn";

const app = new Server(`worker ${workerData}`);
app.tool("add", async ({ a, b }) => a + b);
const client = await connect(app);
const add = async (a) => Number((await client.callTool("add", { a, b: 1 })).text);

if (isMainThread) {
  const url = new URL(import.meta.url);
  const workers = [1, 2, 3].map((n) => new Worker(url, { workerData: n }));
  const doomed = new Worker(url, { workerData: "for ever" });
  const done = workers.map(async (worker) => {
    // Before the message is there: the end may come right behind it.
    const exit = once(worker, "exit");
    const [sum] = await once(worker, "message");
    const [code] = await exit;
    return `${sum}/${code}`;
  });
  await once(doomed, "message");
  const code = await doomed.terminate();
  console.error(`workers ${(await Promise.all(done)).join(" ")}, ended ${code}, main ${await add(1)}`);
  await client.close();
} else if (workerData === "for ever") {
  for (let n = 0; ; n++) {
    const sums = await Promise.all(Array.from({ length: 50 }, (_, a) => add(a)));
    if (n === 5) parentPort.postMessage(sums.length);
  }
} else {
  let sum = 0;
  for (let a = 0; a < 100; a++) sum += await add(a);
  parentPort.postMessage(sum);
  await client.close();
}
