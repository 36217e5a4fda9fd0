// Sampling: a tool has the client's model write something.
import Tricorn

private struct Input: Codable { var text: String }

private func server() -> Server {
    let app = Server("sampling")
    app.tool("summarize", "Sum up a text") { (input: Input, context) in
        try context.require("sampling")
        let result = try await context.sample("Sum up: \(input.text)", maxTokens: 50, systemPrompt: "Be brief.")
        return "\(result.text) (\(result.model), \(result.stopReason ?? ""))"
    }
    app.tool("translate", "Sum up a text in French") { (input: Input, context) in
        let conversation: [SamplingMessage] = [
            .user("Sum up: \(input.text)"), .assistant("A fox jumps."), .user("And in French?"),
        ]
        return try await context.sample(conversation, maxTokens: 20).text
    }
    return app
}

enum SamplingExample {
    static func main() async throws {
        let app = server()
        var options = ClientOptions(revision: .v20251125)
        // Stands for a real model, which the user lets answer.
        options.sampling = { request, _ in
            let asked = request.messages.last?.text ?? ""
            print("model: \(asked) (at most \(request.maxTokens) tokens)")
            if asked.contains("secret") { throw TricornError.rpc(code: -1, message: "the user said no") }
            let text = asked.contains("French") ? "Un renard saute." : "A fox jumps."
            return CreateMessageResult(text: text, model: "tiny-1")
        }

        let client = try await connect(to: app, options)
        let input = Input(text: "The quick brown fox jumps.")
        print("summary:", try await client.callTool("summarize", input).text)
        print("translation:", try await client.callTool("translate", input).text)
        print("refused:", try await client.callTool("summarize", ["text": "secret"]).text)
        await client.close()

        let other = try await connect(to: app, ClientOptions(revision: .v20251125))
        do {
            _ = try await other.callTool("summarize", ["text": "x"])
        } catch TricornError.rpc(let code, let message, _) {
            print("no model: error \(code), \(message)")
        }
        await other.close()
    }
}
