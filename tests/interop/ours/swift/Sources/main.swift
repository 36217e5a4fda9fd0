// Our client in Swift: interop-client TARGET [--revision R] [NAME JSON]...
import Tricorn

var words = Array(CommandLine.arguments.dropFirst())
guard let target = words.first else {
    throw TricornError.misuse("usage: interop-client TARGET [--revision R] [NAME JSON]...")
}
words.removeFirst()
var options = ClientOptions()
if words.first == "--revision", words.count > 1 {
    options.revision = words[1]
    words.removeFirst(2)
}

let client = try await connect(target, options)
let tools = try await client.listTools().map { JSONValue.string($0.name) }
var calls: [JSONValue] = []
for i in stride(from: 0, to: words.count - 1, by: 2) {
    let result = try await client.callTool(words[i], try JSONValue(parsing: words[i + 1]))
    let blocks = result.json?["content"]?.arrayValue ?? []
    calls.append([
        "error": .bool(result.isError), "text": blocks.first?["text"] ?? "",
        "types": .array(blocks.map { $0["type"] ?? nil }), "structured": result.structured ?? nil,
    ])
}
let report: JSONValue = [
    "protocolVersion": .string(client.protocolVersion), "tools": .array(tools), "calls": .array(calls),
]
print(report)
await client.close()
