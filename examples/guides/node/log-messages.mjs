// Log messages: what a server tells its client besides answers.
import { connect, Server } from "tricorn";

const app = new Server("logging");

app.tool("backup", { description: "Copy everything" }, (_, ctx) => {
  ctx.log("debug", "looking for files", "backup");
  ctx.log("info", "copying", "backup");
  ctx.log("warning", { free: 3 }, "disk");
  return "backup done";
});

/** @type {import("tricorn").ClientOptions["onLog"]} */
const onLog = ({ level, logger, data }) => console.log(`${level}: ${logger}, ${JSON.stringify(data)}`);

const client = await connect(app, { revision: "2025-11-25", onLog });
console.log("no level:", (await client.callTool("backup")).text);
await client.setLogLevel("warning");
console.log("level warning:", (await client.callTool("backup")).text);
await client.close();

// Newer revisions ask with each call: for the level that was set, or one of its own.
const newer = await connect(app, { onLog });
await newer.setLogLevel("warning");
console.log("newer, level warning:", (await newer.callTool("backup")).text);
const meta = { "io.modelcontextprotocol/logLevel": "info" };
console.log("one call:", (await newer.callTool("backup", {}, { meta })).text);
await newer.close();
