// The benchmark server: `run --stdio | --http HOST:PORT`. Typed tools, 100 of them.
import Tricorn

struct Add: Codable {
    var a: Int
    var b: Int
}

struct Sum: Codable { var sum: Int }
struct Echo: Codable { var text: String }
struct Sleep: Codable { var ms: Int }
struct Item: Codable { var id: String }
struct Greet: Codable { var name: String }
struct Ask: Codable { var question: String }

let form: JSONValue = [
    "type": "object", "properties": ["answer": ["type": "string"]], "required": ["answer"],
]

struct Query: Codable, DescribedProperties {
    var key: String
    var limit: Int?
    var verbose: Bool?

    static let propertyDescriptions = [
        "key": "Record key", "limit": "Maximum number of rows (10)", "verbose": "Return all columns (false)",
    ]
}

@main struct Bench {
    static func main() async throws {
        let app = Server("bench", version: "1.0.0", maxMessageBytes: 64 << 20)
        app.tool("add", "Add two integers.") { (input: Add) async in Sum(sum: input.a &+ input.b) }
        app.tool("echo", "Return the text.") { (input: Echo) async in input.text }
        app.tool("sleep_ms", "Sleep for some milliseconds.") { (input: Sleep) in
            try await Task.sleep(for: .milliseconds(input.ms))
            return "slept \(input.ms)"
        }
        app.resource("bench://hello", name: "hello", mimeType: "text/plain") { "hello from bench" }
        app.resource("bench://item/{id}", name: "item", mimeType: "text/plain") { (item: Item) in "item \(item.id)" }
        app.prompt("greet", "Greet somebody.") { (input: Greet) in "Say hello to \(input.name)." }
        app.tool("ask_model", "Ask the client's model.") { (ask: Ask, context) in
            try await context.sample(ask.question, maxTokens: 100).text
        }
        app.tool("ask_user", "Ask the user.") { (ask: Ask, context) in
            try await context.elicit(ask.question, schema: form).content?["answer"]?.stringValue ?? ""
        }
        for number in 5..<100 {
            let name = "tool_" + String("00\(number)".suffix(3))
            let text = "Filler tool number \(number): looks a record up by key and returns at most limit rows."
            app.tool(name, text) { (input: Query) async in "row \(input.key)" }
        }
        try await app.run()
    }
}
