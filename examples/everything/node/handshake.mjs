// Resources, prompts, completion and questions to the client, as the official suite asks for them.
import { setTimeout } from "node:timers/promises";
import { image, resource, user } from "tricorn";
import { z } from "zod";
import { PNG } from "./media.mjs";

const person = {
  type: "object",
  properties: { username: { type: "string" }, email: { type: "string", format: "email" } },
  required: ["username", "email"],
};

// As it stands: a schema library would fill in the defaults where the client has left them out.
const defaults = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
};

const name = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const word = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };

const options = ["option1", "option2", "option3"];
const titled = [
  { const: "value1", title: "First Option" },
  { const: "value2", title: "Second Option" },
];
const enums = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: options },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
    untitledMulti: { type: "array", items: { type: "string", enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  },
};

const asked = ({ action, content }) => `User response: action=${action}, content=${JSON.stringify(content ?? {})}`;

export function addResources(app, cached) {
  app.resource(
    "test://static-text",
    {
      name: "static-text",
      description: "A text",
      mimeType: "text/plain",
      cache: cached ? { ttl: 5000, scope: "public" } : undefined,
    },
    "This is the content of the static text resource.",
  );
  app.resource(
    "test://static-binary",
    { name: "static-binary", description: "An image", mimeType: "image/png" },
    Buffer.from(PNG, "base64"),
  );
  app.resource(
    "test://watched-resource",
    { name: "watched-resource", mimeType: "text/plain" },
    "This resource can be watched.",
  );
  app.resource("test://several", { name: "several", description: "Two texts at once" }, () => [
    { uri: "test://several/1", text: "one" },
    { uri: "test://several/2", mimeType: "text/markdown", text: "two" },
  ]);
  app.resource("ask://word", { name: "word", mimeType: "text/plain" }, async (_, ctx) => {
    const { action, content } = await ctx.elicit("Which word?", word);
    return action === "accept" ? `the word is ${content.word}` : action;
  });
  app.resource("test://template/{id}/data", { name: "template", mimeType: "application/json" }, ({ id }) => ({
    id,
    templateTest: true,
    data: `Data for ID: ${id}`,
  }));
}

const two = z.object({ arg1: z.string().describe("The first"), arg2: z.string().describe("The second") });
const embedded = z.object({ resourceUri: z.string().describe("Whose contents to embed") });
const complete = {
  arg1: (value) => ["paris", "park", "party", "test"].filter((one) => one.startsWith(value)),
};

export function addPrompts(app) {
  app.prompt("test_simple_prompt", { description: "Say one thing" }, () => "This is a simple prompt for testing.");

  app.prompt(
    "test_prompt_with_arguments",
    { description: "Say two things", input: two, complete },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );

  app.prompt(
    "test_prompt_with_embedded_resource",
    { description: "Embed a resource", input: embedded },
    ({ resourceUri }) => [
      user(resource(resourceUri, "Embedded resource content for testing.", "text/plain")),
      user("Please process the embedded resource above."),
    ],
  );

  app.prompt("test_prompt_with_image", { description: "Show an image" }, () => [
    user(image(PNG, "image/png")),
    user("Please analyze the image above."),
  ]);
}

/** Tools that ask their client. */
export function addQuestions(app) {
  app.tool(
    "test_sampling",
    { description: "Ask the client's model", input: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => `LLM response: ${(await ctx.sample(prompt, { maxTokens: 100 })).text}`,
  );

  app.tool(
    "test_elicitation",
    { description: "Ask the user", input: z.object({ message: z.string() }) },
    async ({ message }, ctx) => asked(await ctx.elicit(message, person)),
  );

  app.tool("test_streaming_elicitation", { description: "Ask the user while a stream is open" }, async (_, ctx) => {
    const { action, content } = await ctx.elicit("What is your name?", name);
    return action === "accept" ? `Hello, ${content.name}!` : action;
  });

  app.tool("test_reconnection", { description: "End the stream before the answer" }, async (_, ctx) => {
    ctx.closeStream();
    await setTimeout(100);
    return "Reconnection test completed successfully";
  });

  app.tool("test_elicitation_sep1034_defaults", { description: "Ask the user, with defaults" }, async (_, ctx) =>
    asked(await ctx.elicit("Please review these", defaults)),
  );

  app.tool("test_elicitation_sep1330_enums", { description: "Let the user choose" }, async (_, ctx) =>
    asked(await ctx.elicit("Please choose", enums)),
  );
}
