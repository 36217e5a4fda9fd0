// Testing a server: the real protocol, without a process or a socket.
import Tricorn

private struct Add: Codable { var a: Int32, b: Int32 }

private func server() -> Server {
    let app = Server("calculator")
    app.tool("add", "Add two numbers") { (input: Add) in Int(input.a) + Int(input.b) }
    app.tool("confirm", "Ask before something happens") { (_: NoArguments, context) in
        let answer = try await context.elicit("Really?", schema: ["type": "object", "properties": [:]])
        return answer.action == .accept ? "sure" : "no"
    }
    return app
}

enum TestingExample {
    static func main() async throws {
        let app = server()
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
            try await withClient(of: app, ClientOptions(revision: revision)) { client in
                let three: Int = try await client.callTool("add", ["a": 1, "b": 2]).decode()
                precondition(three == 3)
                print("\(revision): 1 + 2 = \(three)")
            }
        }

        try await withClient(of: app) { client in
            print("wrong:", try await client.callTool("add", ["a": "one", "b": 2]).text)
        }

        var options = ClientOptions(revision: .v20251125)
        // The user of a test.
        options.elicitation = { question, _ in
            print("asked:", question.message)
            return .accept()
        }
        try await withClient(of: app, options) { client in
            print("asking:", try await client.callTool("confirm").text)
        }

        let serving = try await app.start(port: 0)
        let client = try await connect(serving.url)
        print("over http:", try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self))
        await client.close()
        await serving.stop()
    }
}
