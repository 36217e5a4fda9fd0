// Tracing: which trace a request belongs to, on both sides.
import { connect, Server } from "tricorn";

const app = new Server("tracing");

/**
 * @param {string} who
 * @param {import("tricorn").RequestContext} ctx
 */
function tell(who, { traceContext: trace }) {
  if (!trace?.traceparent) {
    console.log(`${who}: no trace`);
    return;
  }
  const [, traceId, parentId] = trace.traceparent.split("-");
  const baggage = trace.baggage ? `baggage ${trace.baggage}` : "no baggage";
  console.log(`${who}: span ${parentId} of trace ${traceId}, ${baggage}`);
}

app.tool("work", { description: "Does something for a trace" }, async (_, ctx) => {
  tell("tool", ctx);
  return (await ctx.sample("And you?", { maxTokens: 9 })).text;
});

/** @type {import("tricorn").SamplingHandler} */
function sampling(_, ctx) {
  tell("model", ctx);
  return "Fine.";
}

/** What your tracing system says is current. */
function traceContext() {
  return { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", baggage: "tenant=7" };
}

const client = await connect(app, { sampling, traceContext });
await client.callTool("work");
const other = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" };
await client.callTool("work", {}, { traceContext: other });
await client.close();

const untraced = await connect(app, { sampling });
console.log("malformed:");
await untraced.callTool("work", {}, { meta: { traceparent: "who knows" } });
await untraced.close();
