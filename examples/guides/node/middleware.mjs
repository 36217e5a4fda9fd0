// Middleware: what stands around every request, of a server and of a client.
import { once } from "node:events";
import { concurrencyLimit, connect, logging, RpcError, rateLimit, Server, timing } from "tricorn";
import { z } from "zod";

const Signed = z.object({ _meta: z.object({ "com.example/user": z.string() }) });

const app = new Server("signed");
app.middleware(timing()); // the first one is the outermost

// Refuses whoever does not say who they are, and tells the others' names to what comes after.
app.middleware(async (request, context, next) => {
  const { success, data } = Signed.safeParse(request.params);
  if (!success) throw new RpcError(-32001, "who are you?");
  const user = data._meta["com.example/user"];
  context.values.set("user", user);
  console.log(`> ${request.method} of ${user}`);
  const result = await next(request, context);
  console.log(`< ${request.method}`);
  return result;
});

// Changes parameters on their way.
app.middleware((request, context, next) => {
  if (request.method !== "tools/call") return next(request, context);
  const { params } = request;
  const name = String(params.arguments?.["name"]).trim();
  return next({ ...request, params: { ...params, arguments: { name } } }, context);
});

app.tool("greet", { description: "Greet somebody", input: z.object({ name: z.string() }) }, ({ name }, ctx) => {
  return `Hello ${name}, from ${ctx.values.get("user")}!`;
});

/**
 * A client's: signs whatever it sends.
 * @type {import("tricorn").Middleware<import("tricorn").RequestContext>}
 */
const sign = (request, context, next) => {
  const meta = { ...request.params?._meta, "com.example/user": "Ada" };
  return next({ ...request, params: { ...request.params, _meta: meta } }, context);
};

const limited = new Server("limited").middleware(rateLimit(1 / 3600, { burst: 2 }));
const green = new EventTarget();
const go = once(green, "go");
limited.tool("wait", { description: "Wait for the green light" }, async () => {
  await go;
  return "done";
});

const client = await connect(app, { middleware: [sign] });
console.log("greet:", (await client.callTool("greet", { name: " Bob " })).text);
await client.close();

/** @type {string[]} */
const records = [];
const logged = logging(({ method, name, error }) => records.push(`${method} ${name} ${error ? "failed" : "ok"}`));
const unsigned = await connect(app, { middleware: [logged] });
try {
  await unsigned.callTool("greet", { name: "Bob" });
} catch (error) {
  if (error instanceof RpcError) console.log(`unsigned: error ${error.code}, ${error.message}`);
}
await unsigned.close();
console.log("logged:", records.join(", "));
const calls = app.metrics().timing?.["tools/call"];
console.log(`timing: ${calls?.count} calls, ${calls?.failed} failed`);

// One at a time, nobody waits. The limit is the client's own: the second is not even sent.
const busy = await connect(limited, { middleware: [concurrencyLimit(1, { maxWaiting: 0 })] });
const running = busy.callTool("wait");
try {
  await busy.callTool("wait");
} catch (error) {
  if (error instanceof RpcError) console.log("one too many: error", error.code);
}
green.dispatchEvent(new Event("go"));
console.log("the other:", (await running).text);
console.log("once more:", (await busy.callTool("wait")).text);
try {
  await busy.callTool("wait");
} catch (error) {
  if (error instanceof RpcError) {
    const { retryAfter } = /** @type {{ retryAfter: number }} */ (error.data);
    console.log(`too often: error ${error.code}, again in ${Math.round(retryAfter / 60)} minutes`);
  }
}
await busy.close();
