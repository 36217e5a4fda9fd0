// A first server. Run it with `node server.mjs`, or with `--http 127.0.0.1:8000`.
import { Server } from "tricorn";
import { z } from "zod"; // any library that implements Standard Schema

const app = new Server("demo");

app.tool(
  "add",
  { description: "Add two numbers", input: z.object({ a: z.number(), b: z.number() }) },
  ({ a, b }) => a + b,
);

await app.run();
