// The tools of the official conformance suite that ask the client.
import Tricorn

private let defaults: JSONValue = [
    "type": "object",
    "properties": [
        "name": ["type": "string", "description": "User name", "default": "John Doe"],
        "age": ["type": "integer", "description": "User age", "default": 30],
        "score": ["type": "number", "description": "User score", "default": 95.5],
        "status": [
            "type": "string", "description": "User status", "enum": ["active", "inactive", "pending"],
            "default": "active",
        ],
        "verified": ["type": "boolean", "description": "Verification status", "default": true],
    ],
    "required": [],
]

private let choices: JSONValue = [
    "type": "object",
    "properties": [
        "untitledSingle": [
            "type": "string", "description": "Select one option", "enum": ["option1", "option2", "option3"],
        ],
        "titledSingle": [
            "type": "string", "description": "Select one option with titles",
            "oneOf": [
                ["const": "value1", "title": "First Option"], ["const": "value2", "title": "Second Option"],
                ["const": "value3", "title": "Third Option"],
            ],
        ],
        "legacyEnum": [
            "type": "string", "description": "Select one option (legacy)", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        ],
        "untitledMulti": [
            "type": "array", "description": "Select several options", "minItems": 1, "maxItems": 3,
            "items": ["type": "string", "enum": ["option1", "option2", "option3"]],
        ],
        "titledMulti": [
            "type": "array", "description": "Select several options with titles", "minItems": 1, "maxItems": 3,
            "items": [
                "anyOf": [
                    ["const": "value1", "title": "First Choice"], ["const": "value2", "title": "Second Choice"],
                    ["const": "value3", "title": "Third Choice"],
                ]
            ],
        ],
    ],
    "required": [],
]

private struct Question: Codable { var prompt: String }
private struct Message: Codable { var message: String }

private struct User: Codable, DescribedProperties {
    var username: String
    var email: String

    static let propertyDescriptions = ["username": "User's response", "email": "User's email address"]
}

/// What the user did, as text.
private func report<Form: Encodable>(_ elicited: Elicited<Form>) throws -> String {
    let content = try elicited.content.map { try JSONValue(encoding: $0) } ?? [:]
    return "action=\(elicited.action.rawValue), content=\(content)"
}

func addAskingTools(to app: Server) {
    app.tool("test_sampling", "Has the client's model write a message") { (input: Question, context) in
        "LLM response: \(try await context.sample(input.prompt, maxTokens: 100).text)"
    }
    app.tool("test_elicitation", "Asks the user for a form") { (input: Message, context) in
        "User response: \(try report(await context.elicit(input.message, as: User.self)))"
    }
    app.tool("test_elicitation_sep1034_defaults", "Asks with defaults for every kind of field") {
        (_: NoArguments, context) in
        let elicited = try await context.elicit("Please review and update the form fields", schema: defaults)
        return "Elicitation completed: \(try report(elicited))"
    }
    app.tool("test_elicitation_sep1330_enums", "Asks for every kind of choice") { (_: NoArguments, context) in
        let elicited = try await context.elicit("Please select options from the enum fields", schema: choices)
        return "Elicitation completed: \(try report(elicited))"
    }
}
