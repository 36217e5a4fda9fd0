// Prompts: texts and conversations that the user picks.
import Foundation
import Tricorn

private enum Tone: String, Codable, CaseIterable { case kindly, strictly }

private struct Review: Codable, DescribedProperties {
    var code: String
    var tone: Tone?

    static let propertyDescriptions = ["code": "What to review"]
}

private struct Explain: Codable { var uri: String }

private func server() -> Server {
    let app = Server("prompts")
    app.prompt("standup", "Begin the day") { "What did you do yesterday?" }
    app.prompt("review", "Review code") { (input: Review) in
        "Review this \((input.tone ?? .kindly).rawValue): \(input.code)"
    }
    app.prompt("explain", "Explain a text") { (input: Explain) in
        [
            PromptMessage.user(
                .resource(.init(uri: input.uri, mimeType: "text/plain", text: "Turn it off and on again."))),
            .user("Explain the text above."),
        ]
    }
    app.prompt("caption", "Show how pictures are described") {
        [
            PromptMessage.user(.image(Data([0x89, 0x50, 0x4E, 0x47]), mimeType: "image/png")),
            .assistant("A dot."),
        ]
    }
    return app
}

enum PromptsExample {
    static func main() async throws {
        let client = try await connect(to: server())

        for prompt in try await client.listPrompts() {
            let names = (prompt.arguments ?? []).map { $0.required == true ? "\($0.name) (required)" : $0.name }
            print("\(prompt.name): \(names.isEmpty ? "-" : names.joined(separator: ", "))")
        }

        show("standup", try await client.getPrompt("standup"))
        show("review", try await client.getPrompt("review", ["code": "x = 1", "tone": "strictly"]))
        do {
            _ = try await client.getPrompt("review")
        } catch TricornError.rpc(let code, let message, _) {
            print("review: error \(code), \(message)")
        }
        show("explain", try await client.getPrompt("explain", ["uri": "file:///radio.txt"]))
        show("caption", try await client.getPrompt("caption"))
        await client.close()
    }

    static func show(_ name: String, _ result: GetPromptResult) {
        for message in result.messages {
            switch message.content {
            case .text(let block): print("\(name): \(message.role.rawValue) text \"\(block.text)\"")
            case .image(let block): print("\(name): \(message.role.rawValue) image \(block.mimeType)")
            case .resource(let block):
                print("\(name): \(message.role.rawValue) resource \(block.resource.json["uri"]?.stringValue ?? "")")
            default: print("\(name): \(message.role.rawValue) something else")
            }
        }
    }
}
