// A server whose list of tools never ends: in a circle, or on and on.
import { createInterface } from "node:readline";

const [, , how] = process.argv;
let page = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  let result = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } };
  if (method === "tools/list") {
    page++;
    result = { tools: [], nextCursor: how === "circle" ? "ab"[page % 2] : String(page) };
  }
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
