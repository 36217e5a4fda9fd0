// Nothing keeps this program alive: neither the time of a tool, an hour, nor a function whose time is over.
import { connect, Server } from "tricorn";

const app = new Server("timed", { toolTimeout: 3_600_000 })
  .tool("quick", () => "done")
  .tool("deaf", { timeout: 50 }, () => new Promise(() => {}));
const client = await connect(app);
for (const name of ["quick", "deaf"]) console.error((await client.callTool(name)).text);
await client.close();
console.error("closed");
