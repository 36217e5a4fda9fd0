// Does not hold the event loop: what it has is idle. `idle.mjs server` or `idle.mjs client`.
import { connect, Server } from "tricorn";
import { path } from "../program.mjs";

const app = new Server("idle");
app.tool("hello", () => "hello");
if (process.argv[2] === "client") {
  const memory = await connect(app);
  const child = await connect({
    command: process.execPath,
    args: [path("server")],
    stderr: (line) => console.error(line),
  });
  const { text } = await child.callTool("later", { n: 1 });
  console.error(`idle ${(await memory.callTool("hello")).text} ${text}`);
} else {
  console.error(`idle ${app.name}`);
}
