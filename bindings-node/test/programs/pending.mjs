// Nothing but a pending call of a client keeps this program alive.
import { connect } from "tricorn";
import { path } from "../program.mjs";

const client = await connect({ command: process.execPath, args: [path("server")] });
client.callTool("gated").then(async ({ text }) => {
  console.error(`answered: ${text}`);
  await client.close();
});
client.callTool("open_gate");
