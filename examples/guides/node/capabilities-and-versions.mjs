// What both sides can do, and which revision of the protocol they speak.
import { connect, MisuseError, Server, UnsupportedError } from "tricorn";
import { z } from "zod";

const app = new Server("library", {
  version: "1.2.0",
  title: "The library",
  instructions: "Ask for a book by its title.",
});

app.prompt(
  "borrow",
  { description: "Borrow a book", input: z.object({ title: z.string() }) },
  ({ title }) => `I would like to read ${title}.`,
);

app.tool("caller", { description: "Say who calls" }, (_, ctx) => {
  const { clientInfo, protocolVersion, clientCapabilities } = ctx.request;
  const who = clientInfo ? `${clientInfo.name} ${clientInfo.version}` : "somebody";
  return `${who}, ${protocolVersion}, sampling: ${"sampling" in clientCapabilities}`;
});

for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]) {
  const client = await connect(app, { revision });
  console.log(`${client.protocolVersion} ${client.era}:`, Object.keys(client.capabilities).sort().join(", "));
  await client.close();
}

const client = await connect(app, { name: "reader", version: "0.3.0" }); // the newest that both speak
console.log("negotiated:", client.protocolVersion);
console.log(`server: ${client.serverInfo?.name} ${client.serverInfo?.version}, ${client.instructions}`);
console.log("client:", (await client.callTool("caller")).text);
try {
  await client.listResources();
} catch (error) {
  if (error instanceof UnsupportedError) console.log("not offered:", error.kind);
}
await client.close();

const options = { revision: "2025-11-25", name: "reader", version: "0.3.0", sampling: () => "hello" };
const sampler = await connect(app, options);
console.log("client:", (await sampler.callTool("caller")).text);
await sampler.close();

try {
  await connect(app, { revision: "2020-01-01" });
} catch (error) {
  if (error instanceof MisuseError) console.log("unknown revision:", error.kind);
}
