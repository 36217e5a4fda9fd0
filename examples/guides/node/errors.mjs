// Errors: whose fault it was decides what becomes of it.
import { connect, RpcError, Server, ToolError, TricornError } from "tricorn";

class JamError extends Error {}

const app = new Server("printer", {
  onError: (error, name) => console.log(`log: ${name}: ${error instanceof Error ? error.message : error}`),
});

app.tool("empty", { description: "Fail, and say why" }, () => {
  throw new ToolError("out of paper");
});
app.tool("crash", { description: "Fail by accident" }, () => {
  throw new JamError("secret detail");
});
app.tool("refuse", { description: "Refuse the request" }, () => {
  throw new RpcError(4242, "no such tray", { tray: 9 });
});
app.tool("stuck", { description: "Never answer" }, () => new Promise(() => {}));

/** @type {(attempt: () => unknown) => Promise<TricornError>} */
async function failure(attempt) {
  try {
    await attempt();
  } catch (error) {
    if (error instanceof TricornError) return error;
    throw error;
  }
  throw new Error("it worked");
}

const client = await connect(app);
for (const name of ["empty", "crash"]) {
  const result = await client.callTool(name);
  console.log(`failed: is_error=${result.isError}, ${result.text}`);
}
const refused = await failure(() => client.callTool("refuse"));
if (refused instanceof RpcError) {
  console.log(`${refused.kind}: ${refused.code}, ${refused.message}, ${JSON.stringify(refused.data)}`);
}
const late = await failure(() => client.callTool("stuck", {}, { timeout: 100 }));
console.log(`${late.kind}: ${late.message}`);
const absent = await failure(() => client.listPrompts());
console.log(`${absent.kind}: nothing was sent`);
await client.close();

const unreachable = await failure(() => connect("http://127.0.0.1:9/mcp"));
console.log(`${unreachable.kind}: nobody listens`);
const wrong = await failure(() => connect(app, { revision: "2020-01-01" }));
console.log(`${wrong.kind}: ${wrong.message.includes("expected one of") ? "expected one of" : wrong.message}`);
