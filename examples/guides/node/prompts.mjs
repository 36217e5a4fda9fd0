// Prompts: texts and conversations that the user picks.
import { assistant, connect, image, RpcError, resource, Server, user } from "tricorn";
import { z } from "zod";

const app = new Server("prompts");

app.prompt("standup", { description: "Begin the day" }, () => "What did you do yesterday?");

app.prompt(
  "review",
  {
    description: "Review code",
    input: z.object({
      code: z.string().describe("What to review"),
      tone: z.enum(["kindly", "strictly"]).default("kindly"),
    }),
  },
  ({ code, tone }) => `Review this ${tone}: ${code}`,
);

app.prompt("explain", { description: "Explain a text", input: z.object({ uri: z.string() }) }, ({ uri }) => [
  user(resource(uri, "Turn it off and on again.", "text/plain")),
  user("Explain the text above."),
]);

app.prompt("caption", { description: "Show how pictures are described" }, () => [
  user(image(Buffer.from("\x89PNG", "latin1"), "image/png")),
  assistant("A dot."),
]);

const client = await connect(app);

for (const prompt of await client.listPrompts()) {
  const names = prompt.arguments?.map(({ name, required }) => (required ? `${name} (required)` : name)) ?? [];
  console.log(`${prompt.name}: ${names.join(", ") || "-"}`);
}

await show("standup");
await show("review", { code: "x = 1", tone: "strictly" });
try {
  await client.getPrompt("review");
} catch (error) {
  if (error instanceof RpcError) console.log(`review: error ${error.code}, ${error.message}`);
}
await show("explain", { uri: "file:///radio.txt" });
await show("caption");
await client.close();

/** @type {(name: string, args?: Record<string, string>) => Promise<void>} */
async function show(name, args) {
  const { messages } = await client.getPrompt(name, args);
  for (const { role, content } of messages) {
    if (content.type === "text") console.log(`${name}: ${role} text "${content.text}"`);
    else if (content.type === "image") console.log(`${name}: ${role} image ${content.mimeType}`);
    else if (content.type === "resource") console.log(`${name}: ${role} resource ${content.resource.uri}`);
  }
}
