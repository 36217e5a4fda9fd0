// What the official conformance suite asks for, in its order.
import { setTimeout as sleep } from "node:timers/promises";
import { audio, image, resource, ToolError, text, user } from "tricorn";
import { z } from "zod";
import { PNG, WAV } from "./media.mjs";

const schema2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const person = z.object({ username: z.string(), email: z.string() });

const defaults = z.object({
  name: z.string().default("John Doe"),
  age: z.int().default(30),
  score: z.number().default(95.5),
  status: z.enum(["active", "inactive", "pending"]).default("active"),
  verified: z.boolean().default(true),
});

const values = ["value1", "value2", "value3"];
const titled = values.map((value, n) => ({ const: value, title: ["First", "Second", "Third"][n] }));
const options = ["option1", "option2", "option3"];
const enums = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: options },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: { type: "string", enum: options, enumNames: ["Option One", "Option Two", "Option Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled } },
  },
};

const asked = ({ action, content }) => `User response: action=${action}, content=${JSON.stringify(content ?? {})}`;

export function addOfficialResources(app) {
  const mimeType = "text/plain";
  app.resource(
    "test://static-text",
    { name: "static text", description: "A text that stays as it is", mimeType },
    "This is the content of the static text resource.",
  );
  app.resource(
    "test://static-binary",
    { name: "static binary", description: "An image that stays as it is", mimeType: "image/png" },
    Buffer.from(PNG, "base64"),
  );
  app.resource(
    "test://watched-resource",
    { name: "watched resource", description: "A text to subscribe to", mimeType },
    "Watched resource content",
  );
  app.resource(
    "test://template/{id}/data",
    { name: "template", description: "The data of an id", mimeType: "application/json" },
    ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
  );
}

const two = z.object({
  arg1: z.string().describe("The first argument"),
  arg2: z.string().describe("The second argument"),
});
const complete = {
  arg1: (value) => ["test value 1", "test value 2"].filter((one) => one.startsWith(value)),
};

export function addOfficialPrompts(app) {
  app.prompt("test_simple_prompt", { description: "Says one thing" }, () => "This is a simple prompt for testing.");

  app.prompt(
    "test_prompt_with_arguments",
    { description: "Says what it was given", input: two, complete },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );

  app.prompt(
    "test_prompt_with_embedded_resource",
    {
      description: "Shows a resource",
      input: z.object({ resourceUri: z.string().describe("The URI of the resource") }),
    },
    ({ resourceUri }) => [
      user(resource(resourceUri, "Embedded resource content for testing.", "text/plain")),
      user("Please process the embedded resource above."),
    ],
  );

  app.prompt("test_prompt_with_image", { description: "Shows an image" }, () => [
    user(image(PNG, "image/png")),
    user("Please analyze the image above."),
  ]);
}

export function addOfficialTools(app) {
  app.tool("test_simple_text", { description: "Returns a text" }, () => "This is a simple text response for testing.");

  app.tool("test_image_content", { description: "Returns an image" }, () => image(PNG, "image/png"));

  app.tool("test_audio_content", { description: "Returns a sound" }, () => audio(WAV, "audio/wav"));

  app.tool("test_embedded_resource", { description: "Returns a resource" }, () =>
    resource("test://embedded-resource", "This is an embedded resource content.", "text/plain"),
  );

  app.tool("test_multiple_content_types", { description: "Returns a text, an image and a resource" }, () => [
    text("Multiple content types test:"),
    image(PNG, "image/png"),
    resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
  ]);

  app.tool("test_error_handling", { description: "Always fails" }, () => {
    throw new ToolError("This tool intentionally returns an error for testing");
  });

  app.tool("test_tool_with_progress", { description: "Reports progress three times" }, async (_, ctx) => {
    for (const progress of [0, 50, 100]) {
      ctx.progress(progress, 100);
      await sleep(50, undefined, { signal: ctx.signal });
    }
    return "Progress reported";
  });

  app.tool("test_tool_with_logging", { description: "Logs three messages" }, async (_, ctx) => {
    for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      ctx.log("info", message);
      await sleep(50, undefined, { signal: ctx.signal });
    }
    return "Messages logged";
  });

  app.tool(
    "test_sampling",
    { description: "Lets the client's model answer", input: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => `LLM response: ${(await ctx.sample(prompt, { maxTokens: 100 })).text}`,
  );

  app.tool(
    "test_elicitation",
    { description: "Asks the user who they are", input: z.object({ message: z.string() }) },
    async ({ message }, ctx) => asked(await ctx.elicit(message, person)),
  );

  app.tool("test_elicitation_sep1034_defaults", { description: "Asks with defaults" }, async (_, ctx) =>
    asked(await ctx.elicit("Please review and update the form fields with defaults", defaults)),
  );

  app.tool("test_elicitation_sep1330_enums", { description: "Asks for every kind of choice" }, async (_, ctx) =>
    asked(await ctx.elicit("Please select options from the enum fields", enums)),
  );

  app.tool(
    "json_schema_2020_12_tool",
    { description: "Has a schema that must arrive unchanged", input: schema2020 },
    () => "schema ok",
  );

  app.tool(
    "test_x_mcp_header",
    {
      description: "Takes an argument from a header",
      input: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    },
    ({ region }) => `region: ${region ?? "none"}`,
  );

  app.tool("test_missing_capability", { description: "Needs a client that can sample" }, (_, ctx) => {
    ctx.require("sampling");
    return "The client can sample";
  });

  app.tool("test_logging_tool", { description: "Tries to log" }, (_, ctx) => {
    ctx.log("info", "A message for those who asked for it");
    return "Tried to log";
  });

  app.tool("test_trigger_tool_change", { description: "Adds a tool and removes it" }, () => {
    app.tool("test_dynamic_tool", { description: "Here for a moment" }, () => "here");
    app.removeTool("test_dynamic_tool");
    return "The tool list has changed";
  });
}
