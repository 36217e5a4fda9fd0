// A first server. Run it with `node server.mjs`, or with `--http 127.0.0.1:8000`.
import { Server } from "tricorn";
import { z } from "zod"; // any library that implements Standard Schema

const app = new Server("demo");

app.tool(
  "add",
  { description: "Add two numbers", input: z.object({ a: z.number(), b: z.number() }) },
  ({ a, b }) => a + b,
);

const [flag, address = "127.0.0.1:8000"] = process.argv.slice(2);
const [host, port] = address.split(":");
await app.run(
  flag === "--http" ? { host, port: Number(port), onListening: (url) => console.error(`ready ${url}`) } : undefined,
);
