// The benchmark client; see the load generator for its protocol: READY, a line on stdin, DONE.
import { createInterface } from "node:readline";
import { connect } from "tricorn";

const { env } = process;
const [count, warmup, concurrency] = [env.BENCH_N, env.BENCH_WARMUP, env.BENCH_CONCURRENCY].map(Number);
const tools = Number(env.BENCH_TOOLS);
const scenario = env.BENCH_SCENARIO;
const say = (line) => process.stdout.write(`${line}\n`);

const LENGTHS = { "echo-1k": 1 << 10, "echo-64k": 1 << 16, "echo-1m": 1 << 20 };
const UNIT = 'The quick brown fox jumps over the lazy dog; "quoted" text, caf\u00e9 cr\u00e8me.\n';

function payload(bytes) {
  const unit = Buffer.byteLength(UNIT);
  const repeated = UNIT.repeat(Math.floor(bytes / unit));
  return repeated + "x".repeat(bytes - Buffer.byteLength(repeated));
}

const text = payload(LENGTHS[scenario] ?? 0);

const scenarios = {
  "call-add": async (i) => (await client.callTool("add", { a: i, b: 7 })).structured?.sum === i + 7,
  list: async () => (await client.listTools()).length === tools,
};
const echo = async () => (await client.callTool("echo", { text })).text === text;

const client = await connect(env.BENCH_TRANSPORT === "http" ? env.BENCH_URL : env.BENCH_SERVER_CMD, {
  ...(env.BENCH_PROTO && { revision: env.BENCH_PROTO }),
  maxMessageBytes: 64 << 20,
});
const run = scenarios[scenario] ?? echo;

async function phase(total) {
  let next = 0;
  let [ok, failed] = [0, 0];
  const worker = async () => {
    while (next < total) {
      const good = await run(next++).catch((error) => console.error(error));
      if (good) ok++;
      else failed++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return [ok, failed];
}

const lines = createInterface({ input: process.stdin });
const go = new Promise((resolve) => lines.once("line", resolve));
const ended = new Promise((resolve) => lines.once("close", resolve));
await phase(warmup);
say(`READY tricorn ${client.era}`);
await go;
say(`DONE ${(await phase(count)).join(" ")}`);
await ended;
await client.close();
