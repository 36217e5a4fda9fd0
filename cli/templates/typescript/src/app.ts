// {{name}}, a server of the Model Context Protocol.
import { Server } from "tricorn";
import { z } from "zod"; // any library that implements Standard Schema

export const app = new Server("{{name}}", { version: "0.1.0" });

app.tool(
  "add",
  { description: "Add two numbers", input: z.object({ a: z.number(), b: z.number() }) },
  ({ a, b }) => a + b,
);

app.resource("{{name}}://about", { description: "Say what this server is for" }, () => "{{name}} adds numbers.");
