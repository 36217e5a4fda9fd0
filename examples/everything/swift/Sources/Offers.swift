// The resources and prompts the official conformance suite asks for, in its order.
import Tricorn

private struct Item: Codable { var id: String }

private struct TwoArguments: Codable, DescribedProperties {
    var arg1: String
    var arg2: String

    static let propertyDescriptions = ["arg1": "First test argument", "arg2": "Second test argument"]
}

private struct Embedding: Codable, DescribedProperties {
    var resourceUri: String

    static let propertyDescriptions = ["resourceUri": "URI of the resource to embed"]
}

/// An object with its members in this order.
private struct Data: Codable {
    var id: String
    var templateTest = true
    var data: String
}

func addResources(to app: Server) {
    app.resource(
        "test://static-text", "A static text resource for testing", name: "Static Text Resource",
        mimeType: "text/plain", value: "This is the content of the static text resource.")
    app.resource(
        "test://static-binary", "A static binary resource (image) for testing", name: "Static Binary Resource",
        mimeType: "image/png", value: png)
    app.resource(
        "test://template/{id}/data", "A resource template with parameter substitution", name: "Resource Template",
        mimeType: "application/json", complete: ["id": { _, _ in [String]() }]
    ) { (item: Item) in Data(id: item.id, data: "Data for ID: \(item.id)") }
    app.resource(
        "test://watched-resource", "A resource that clients may subscribe to", name: "Watched Resource",
        mimeType: "text/plain", value: "Watched resource content")
}

func addPrompts(to app: Server) {
    app.prompt("test_simple_prompt", "A simple prompt without arguments") {
        "This is a simple prompt for testing."
    }
    app.prompt(
        "test_prompt_with_arguments", "A prompt with required arguments",
        complete: [
            "arg1": { value, _ in ["test", "testing", "paris", "park", "party"].filter { $0.hasPrefix(value) } }
        ]
    ) { (input: TwoArguments) in "Prompt with arguments: arg1='\(input.arg1)', arg2='\(input.arg2)'" }
    app.prompt("test_prompt_with_embedded_resource", "A prompt that includes an embedded resource") {
        (input: Embedding) in
        [
            PromptMessage.user(
                .resource(
                    .init(
                        uri: input.resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing."))
            ),
            .user("Please process the embedded resource above."),
        ]
    }
    app.prompt("test_prompt_with_image", "A prompt that includes image content") {
        [PromptMessage.user(.image(png, mimeType: "image/png")), .user("Please analyze the image above.")]
    }
}
