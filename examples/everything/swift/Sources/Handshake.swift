// Resources, prompts, completion and questions to the client, as the official suite asks for them.
import Tricorn

// MARK: - resources

private struct Item: Codable { var id: String }
private struct Word: Codable { var word: String }

/// An object with its members in this order.
private struct ItemData: Codable {
    var id: String
    var templateTest = true
    var data: String
}

/// - Parameter cached: one resource says how long it keeps.
func addResources(to app: Server, cached: Bool) {
    app.resource(
        "test://static-text", "A text", name: "static-text", mimeType: "text/plain",
        cache: cached ? CacheHints(ttl: .seconds(5), scope: .public) : nil,
        value: "This is the content of the static text resource.")
    app.resource("test://static-binary", "An image", name: "static-binary", mimeType: "image/png", value: png)
    app.resource("test://watched-resource", name: "watched-resource", mimeType: "text/plain") {
        "This resource can be watched."
    }
    app.resource("test://several", "Two texts at once", name: "several") {
        [
            ResourceContents(uri: "test://several/1", text: "one"),
            ResourceContents(uri: "test://several/2", mimeType: "text/markdown", text: "two"),
        ]
    }
    app.resource("ask://word", name: "word", mimeType: "text/plain") { (_: NoArguments, context) in
        let answer = try await context.elicit("Which word?", as: Word.self)
        return answer.content.map { "the word is \($0.word)" } ?? answer.action.rawValue
    }
    app.resource("test://template/{id}/data", name: "template", mimeType: "application/json") { (item: Item) in
        ItemData(id: item.id, data: "Data for ID: \(item.id)")
    }
}

// MARK: - prompts

private struct Two: Codable, DescribedProperties {
    var arg1: String
    var arg2: String

    static let propertyDescriptions = ["arg1": "The first", "arg2": "The second"]
}

private struct Embedded: Codable, DescribedProperties {
    var resourceUri: String

    static let propertyDescriptions = ["resourceUri": "Whose contents to embed"]
}

func addPrompts(to app: Server) {
    app.prompt("test_simple_prompt", "Say one thing") { "This is a simple prompt for testing." }
    app.prompt(
        "test_prompt_with_arguments", "Say two things",
        complete: ["arg1": { value, _ in ["paris", "park", "party", "test"].filter { $0.hasPrefix(value) } }]
    ) { (two: Two) in "Prompt with arguments: arg1='\(two.arg1)', arg2='\(two.arg2)'" }
    app.prompt("test_prompt_with_embedded_resource", "Embed a resource") { (embedded: Embedded) in
        let text = "Embedded resource content for testing."
        return [
            PromptMessage.user(.resource(.init(uri: embedded.resourceUri, mimeType: "text/plain", text: text))),
            .user("Please process the embedded resource above."),
        ]
    }
    app.prompt("test_prompt_with_image", "Show an image") {
        [PromptMessage.user(.image(png, mimeType: "image/png")), .user("Please analyze the image above.")]
    }
}

// MARK: - questions

private struct ToModel: Codable { var prompt: String }
private struct ToUser: Codable { var message: String }

private let form: JSONValue = [
    "type": "object",
    "properties": ["username": ["type": "string"], "email": ["type": "string", "format": "email"]],
    "required": ["username", "email"],
]

private let defaults: JSONValue = [
    "type": "object",
    "properties": [
        "name": ["type": "string", "default": "John Doe"],
        "age": ["type": "integer", "default": 30],
        "score": ["type": "number", "default": 95.5],
        "status": ["type": "string", "enum": ["active", "inactive", "pending"], "default": "active"],
        "verified": ["type": "boolean", "default": true],
    ],
]

private let titled: JSONValue = [
    ["const": "value1", "title": "First Option"], ["const": "value2", "title": "Second Option"],
]

private let choices: JSONValue = [
    "type": "object",
    "properties": [
        "untitledSingle": ["type": "string", "enum": ["option1", "option2", "option3"]],
        "titledSingle": ["type": "string", "oneOf": titled],
        "legacyEnum": ["type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]],
        "untitledMulti": ["type": "array", "items": ["type": "string", "enum": ["option1", "option2", "option3"]]],
        "titledMulti": ["type": "array", "items": ["anyOf": titled]],
    ],
]

/// Tools that ask their client.
func addQuestions(to app: Server) {
    app.tool("test_sampling", "Ask the client's model") { (ask: ToModel, context) in
        "LLM response: \(try await context.sample(ask.prompt, maxTokens: 100).text)"
    }
    app.tool("test_elicitation", "Ask the user") { (ask: ToUser, context) in
        answer(try await context.elicit(ask.message, schema: form))
    }
    app.tool("test_reconnection", "End the stream before the answer") { (_: NoArguments, context) in
        context.closeStream()
        try await Task.sleep(for: .milliseconds(100))
        return "Reconnection test completed successfully"
    }
    app.tool("test_elicitation_sep1034_defaults", "Ask the user, with defaults") { (_: NoArguments, context) in
        answer(try await context.elicit("Please review these", schema: defaults))
    }
    app.tool("test_elicitation_sep1330_enums", "Let the user choose") { (_: NoArguments, context) in
        answer(try await context.elicit("Please choose", schema: choices))
    }
}

private func answer(_ elicited: Elicited<JSONObject>) -> String {
    "User response: action=\(elicited.action.rawValue), content=\(JSONValue.object(elicited.content ?? [:]))"
}
