// A first client: `node client.mjs TARGET [--revision R]`, where TARGET is a URL or a command line.
// Prints one line of JSON: what was negotiated, what 1 + 2 is, and how long the call took.
import { connect } from "tricorn";

const [target, flag, revision] = process.argv.slice(2);
if (!target) throw new Error("usage: client.mjs TARGET [--revision R]");

const client = await connect(target, flag === "--revision" && revision ? { revision } : {});
await client.callTool("add", { a: 1, b: 2 }); // the first call of a program costs more
const started = performance.now();
const sum = await client.callTool("add", { a: 1, b: 2 });
const ms = Number((performance.now() - started).toFixed(3));

const { protocolVersion, era, transport } = client;
process.stdout.write(`${JSON.stringify({ protocolVersion, era, transport, result: Number(sum.text), ms })}\n`);
await client.close();
