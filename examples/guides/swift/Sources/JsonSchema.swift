// JSON Schema: given as it is, and checked as it says.
import Tricorn

private let contact: JSONValue = [
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": ["number": ["type": "string", "minLength": 3]],
    "properties": [
        "by": ["enum": ["phone", "mail"]], "phone": ["$ref": "#/$defs/number"], "mail": ["type": "string"],
    ],
    "required": ["by"],
    "if": ["properties": ["by": ["const": "phone"]]],
    "then": ["required": ["phone"]],
    "else": ["required": ["mail"]],
]
private let pair: JSONValue = [
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": ["pair": ["type": "array", "items": [["type": "string"], ["type": "integer"]]]],
]
private let number: JSONValue = [
    "type": "object", "properties": ["n": ["type": "integer"]], "required": ["n"],
]
private let outside: JSONValue = [
    "type": "object", "properties": ["home": ["$ref": "https://example.com/address.json"]],
]

private struct Contact: Codable { var by: String, phone: String?, mail: String? }

private func server() -> Server {
    let app = Server("schemas", onError: { _, _ in })
    app.tool("contact", "Call or write", inputSchema: contact) { (input: Contact) in
        input.by == "phone" ? "called \(input.phone ?? "")" : "wrote to \(input.mail ?? "")"
    }
    app.tool("pair", "Take a pair, as draft-07 describes it", inputSchema: pair) { (_: JSONValue) in "ok" }
    app.tool("broken", "Break a promise", outputSchema: number) { ["n": "not a number"] }
    return app
}

enum JsonSchemaExample {
    static func main() async throws {
        let app = server()
        let client = try await connect(to: app)
        let schema = try await client.listTools()[0].inputSchema
        let kept = ["$defs", "if"].filter { schema[$0] != nil }
        print("listed: \(schema["$schema"]?.stringValue ?? ""),", kept.joined(separator: ", "))

        print("contact:", try await client.callTool("contact", ["by": "phone", "phone": "555-0100"]).text)
        let calls: [(String, JSONValue)] = [
            ("contact", ["by": "phone"]), ("pair", ["pair": ["a", "b"]]), ("broken", [:]),
        ]
        for (name, arguments) in calls {
            let result = try await client.callTool(name, arguments)
            print("\(name): is_error=\(result.isError), \(result.text)")
        }
        await client.close()

        // A mistake in a definition is thrown when the server is to serve.
        let mistaken = server()
        mistaken.tool("outside", inputSchema: outside) { (_: JSONValue) in "" }
        do {
            _ = try await connect(to: mistaken)
        } catch TricornError.misuse(let message) {
            print("refused:", message)
        }
    }
}
