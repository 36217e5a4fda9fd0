// Streamable HTTP: a server at a URL, for any number of clients of both eras.
import { connect, Server, TransportError } from "tricorn";

const app = new Server("http");

app.tool("greet", { description: "Greet whoever calls" }, (_, ctx) => {
  return `hello, ${ctx.request.headers["x-user"] ?? "stranger"}`;
});

// Port 0 is any free one. As a program of its own: app.run("127.0.0.1:8000").
const { url } = await app.listen({ port: 0 });

for (const options of [{}, { revision: "2025-11-25" }]) {
  const client = await connect(url, { ...options, headers: { "X-User": "ada" } });
  console.log(`${client.protocolVersion} over ${client.transport}, session: ${client.sessionId !== undefined}`);
  console.log((await client.callTool("greet")).text);
  await client.close();
}

await app.close();
try {
  await connect(url);
} catch (error) {
  if (error instanceof TransportError) console.log("stopped:", error.kind);
}
