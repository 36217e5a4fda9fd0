// The tools the official conformance suite asks for, in its order.
import Tricorn

private let schema2020: JSONValue = [
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": [
        "address": [
            "$anchor": "addressDef",
            "type": "object",
            "properties": ["street": ["type": "string"], "city": ["type": "string"]],
        ]
    ],
    "properties": [
        "name": ["type": "string"],
        "address": ["$ref": "#/$defs/address"],
        "contactMethod": ["type": "string", "enum": ["phone", "email"]],
        "phone": ["type": "string"],
        "email": ["type": "string"],
    ],
    "allOf": [["anyOf": [["required": ["phone"]], ["required": ["email"]]]]],
    "if": ["properties": ["contactMethod": ["const": "phone"]], "required": ["contactMethod"]],
    "then": ["required": ["phone"]],
    "else": ["required": ["email"]],
    "additionalProperties": false,
]

func addOfficialTools(to app: Server) {
    app.tool("test_simple_text", "Returns a text") { "This is a simple text response for testing." }
    app.tool("test_image_content", "Returns an image") { ContentBlock.image(png, mimeType: "image/png") }
    app.tool("test_audio_content", "Returns a sound") { ContentBlock.audio(wav, mimeType: "audio/wav") }
    app.tool("test_embedded_resource", "Returns a resource") {
        ContentBlock.resource(
            .init(
                uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content."))
    }
    app.tool("test_multiple_content_types", "Returns a text, an image and a resource") {
        [
            ContentBlock.text("Multiple content types test:"),
            .image(png, mimeType: "image/png"),
            .resource(
                .init(
                    uri: "test://mixed-content-resource", mimeType: "application/json",
                    text: #"{"test":"data","value":123}"#)),
        ]
    }
    app.tool("test_error_handling", "Always fails") { () -> String in
        throw ToolError("This tool intentionally returns an error for testing")
    }
    app.tool("test_tool_with_progress", "Reports progress three times") { (_: NoArguments, context) in
        for progress in [0.0, 50, 100] {
            context.progress(progress, total: 100)
            try await Task.sleep(for: .milliseconds(50))
        }
        return "Tool with progress executed successfully"
    }
    app.tool("test_tool_with_logging", "Logs three messages") { (_: NoArguments, context) in
        for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            context.log(.info, message)
            try await Task.sleep(for: .milliseconds(50))
        }
        return "Tool with logging executed successfully"
    }
    app.tool(
        "json_schema_2020_12_tool", "Has a schema that must arrive unchanged", inputSchema: schema2020
    ) { (_: JSONValue) in "schema ok" }

    struct Region: Codable { var region: String? }
    app.tool(
        "test_x_mcp_header", "Takes an argument from a header",
        inputSchema: ["type": "object", "properties": ["region": ["type": "string", "x-mcp-header": "Region"]]]
    ) { (input: Region) in "region: \(input.region ?? "none")" }

    app.tool("test_missing_capability", "Needs a client that can sample") { (_: NoArguments, context) in
        try context.require("sampling")
        return "The client can sample"
    }
    app.tool(
        "test_streaming_elicitation", "Asks the user, also in a revision whose servers send no requests"
    ) { (_: NoArguments, context) in
        struct Name: Codable { var name: String }
        let answer = try await context.elicit("What is your name?", as: Name.self)
        return answer.content.map { "Hello, \($0.name)!" } ?? answer.action.rawValue
    }
    app.tool("test_logging_tool", "Tries to log") { (_: NoArguments, context) in
        context.log(.info, "This is a log message")
        return "Tried to log"
    }
    app.tool("test_trigger_tool_change", "Adds a tool and removes it") { [weak app] in
        app?.tool("test_dynamic_tool", "Here for a moment") { "here" }
        app?.removeTool("test_dynamic_tool")
        return "The list of tools has changed"
    }
    app.tool("test_trigger_prompt_change", "Adds a prompt and removes it") { [weak app] in
        app?.prompt("test_dynamic_prompt", "Here for a moment") { "here" }
        app?.removePrompt("test_dynamic_prompt")
        return "The list of prompts has changed"
    }
}
