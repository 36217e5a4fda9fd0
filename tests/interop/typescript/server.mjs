// A server on the official TypeScript SDK: server.mjs --stdio | --http HOST:PORT
import { createServer } from "node:http";
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod/v4";

const text = (text) => ({ content: [{ type: "text", text }] });

function build() {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" });
  const numbers = z.object({ a: z.number().int(), b: z.number().int() });
  server.registerTool("add", { description: "Add two numbers", inputSchema: numbers }, async ({ a, b }) =>
    text(`${a + b}`),
  );
  const message = z.object({ text: z.string() });
  server.registerTool("echo", { description: "Return the text unchanged", inputSchema: message }, async (m) =>
    text(m.text),
  );
  const weather = z.object({ city: z.string(), temperature: z.number(), conditions: z.string() });
  const report = {
    description: "A weather report",
    inputSchema: z.object({ city: z.string() }),
    outputSchema: weather,
  };
  server.registerTool("structured", report, async ({ city }) => {
    const structuredContent = { city, temperature: 22.5, conditions: "sunny" };
    return { ...text(JSON.stringify(structuredContent)), structuredContent };
  });
  const kind = z.object({ kind: z.string() });
  server.registerTool("fail", { description: "Fail when asked to", inputSchema: kind }, async ({ kind }) => {
    return kind === "tool" ? { ...text("the tool says no"), isError: true } : text("no failure");
  });
  return server;
}

const [how, address] = process.argv.slice(2);
if (how === "--stdio") {
  serveStdio(build);
} else if (how === "--http") {
  const [host, port] = address.split(":");
  const handle = toNodeHandler(createMcpHandler(build));
  const checks = [localhostHostValidation(), localhostOriginValidation()];
  const server = createServer((request, response) => {
    if (checks.every((check) => check(request, response))) void handle(request, response);
  });
  server.listen(Number(port), host, () => console.error(`ready http://${host}:${server.address().port}/mcp`));
} else {
  console.error("server.mjs --stdio | --http HOST:PORT");
  process.exit(2);
}
