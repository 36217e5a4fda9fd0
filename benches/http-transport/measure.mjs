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

// The same requests without a client: what `fetch` takes by itself.
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "bare", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const params = { _meta: meta, name: "echo", arguments: { text: "hello" } };
const request = {
  method: "POST",
  headers: {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
};
const before = process.cpuUsage();
for (let n = 0; n < CALLS; n++) {
  const answer = await fetch(url, request);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  await answer.text();
}
const { user, system } = process.cpuUsage(before);
console.log(`node: ${((user + system) / CALLS).toFixed(0)} µs of CPU for fetch alone`);
