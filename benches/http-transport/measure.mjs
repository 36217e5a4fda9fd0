// CPU of a call over the built-in connections, over `fetch`, and of `fetch` alone:
// node benches/http-transport/measure.mjs URL
import { connect } from "tricorn";

const [url] = process.argv.slice(2);
const CALLS = 5000;
const WARM_UP = 500;
const ROUNDS = 5;

async function measure(call) {
  for (let n = 0; n < WARM_UP; n++) await call();
  const before = process.cpuUsage();
  for (let n = 0; n < CALLS; n++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

async function client(options) {
  const connected = await connect(url, options);
  const took = await measure(() => connected.callTool("echo", { text: "hello" }));
  await connected.close();
  return took;
}

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
    "accept-encoding": "identity",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
};

async function bare() {
  const answer = await fetch(url, request);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
}

const rounds = { "built-in": () => client({}), "over fetch": () => client({ fetch }), "fetch alone": () => measure(bare) };
const took = Object.fromEntries(Object.keys(rounds).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of Object.entries(rounds)) took[name].push(await run());
}
for (const [name, all] of Object.entries(took)) {
  const median = all.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
  console.log(`node, ${name}: ${median.toFixed(0)} µs of CPU a call`);
}
