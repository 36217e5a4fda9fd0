// CPU of a call over the built-in connections and over `fetch`: node benches/http-transport/measure.mjs URL
import { connect } from "tricorn";

const [url] = process.argv.slice(2);
const CALLS = 5000;
const ROUNDS = 5;

async function measure(options) {
  const client = await connect(url, options);
  const call = () => client.callTool("echo", { text: "hello" });
  for (let n = 0; n < 500; n++) await call();
  const before = process.cpuUsage();
  for (let n = 0; n < CALLS; n++) await call();
  const { user, system } = process.cpuUsage(before);
  await client.close();
  return (user + system) / CALLS;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const [own, fetched] = [[], []];
for (let round = 0; round < ROUNDS; round++) {
  own.push(await measure({}));
  fetched.push(await measure({ fetch }));
}
const [a, b] = [median(own), median(fetched)];
console.log(`node: ${a.toFixed(0)} µs of CPU a call, over fetch ${b.toFixed(0)} µs: ${(b / a).toFixed(1)} times`);
