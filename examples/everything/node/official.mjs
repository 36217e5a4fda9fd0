// The tools the official conformance suite asks for, in its order.
import { setTimeout as sleep } from "node:timers/promises";
import { audio, image, resource, ToolError, text } from "tricorn";
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
    return "Tool with progress executed successfully";
  });

  app.tool("test_tool_with_logging", { description: "Logs three messages" }, async (_, ctx) => {
    for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      ctx.log("info", message);
      await sleep(50, undefined, { signal: ctx.signal });
    }
    return "Tool with logging executed successfully";
  });

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
    ctx.log("info", "This is a log message");
    return "Tried to log";
  });

  app.tool("test_trigger_tool_change", { description: "Adds a tool and removes it" }, () => {
    app.tool("test_dynamic_tool", { description: "Here for a moment" }, () => "here");
    app.removeTool("test_dynamic_tool");
    return "The list of tools has changed";
  });
  app.tool("test_trigger_prompt_change", { description: "Adds a prompt and removes it" }, () => {
    app.prompt("test_dynamic_prompt", { description: "Here for a moment" }, () => "here");
    app.removePrompt("test_dynamic_prompt");
    return "The list of prompts has changed";
  });
}
