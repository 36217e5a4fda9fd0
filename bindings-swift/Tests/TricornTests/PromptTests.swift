import Foundation
import Testing

@testable import Tricorn

private enum Tone: String, Codable, CaseIterable, Sendable { case formal, friendly, funny }

private struct Greeting: Codable, Sendable, DescribedProperties {
    var name: String
    var times: Int?
    var tone: Tone?

    static let propertyDescriptions = ["name": "Who is greeted"]
}

@Suite struct PromptTests {
    private func server() -> Server {
        let app = Server("test", pageSize: 2, onError: { _, _ in })
        let names = ["Ada", "Alan", "Grace"]
        app.prompt(
            "greet", "Greets someone", title: "Greet", icons: [.init(src: "https://example.com/i.png")],
            meta: ["com.example/n": 1],
            complete: ["name": { value, query in names.filter { $0.hasPrefix(value) && $0 != query.arguments["not"] } }]
        ) { (input: Greeting, context) in
            let greeting = String(repeating: "Greet \(input.name). ", count: input.times ?? 1)
            return greeting + (input.tone?.rawValue ?? "") + (context.request?.method ?? "")
        }
        app.prompt("talk") {
            [PromptMessage.user("Hi."), .assistant("Hello."), .user(.image(Data([1]), mimeType: "image/png"))]
        }
        app.prompt("one") { PromptMessage.assistant("Me first.") }
        app.prompt("blocks") { [ContentBlock.text("a"), .audio(Data([2]), mimeType: "audio/wav")] }
        app.prompt("whole") { GetPromptResult(messages: [.user("x")], description: "of its own", meta: nil) }
        app.prompt("refuse") { () -> String in throw ToolError("not today") }
        app.prompt("deny") { () -> String in throw TricornError.rpc(code: 17, message: "no", data: ["why": "so"]) }
        app.prompt("listed", arguments: [.init(name: "x", required: true)]) {
            (given: [String: String]) in given["x"] ?? ""
        }
        return app
    }

    @Test(arguments: eras) func getsWhatHandlersReturn(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            let greeting = try await client.getPrompt("greet", ["name": "Ada", "times": "2"])
            #expect(greeting.messages.map(\.text) == ["Greet Ada. Greet Ada. prompts/get"])
            #expect(greeting.messages.first?.role == .user)
            #expect(greeting.description == "Greets someone")
            let typed = try await client.getPrompt("greet", Greeting(name: "Alan", times: 1, tone: .funny))
            #expect(typed.messages.first?.text == "Greet Alan. funnyprompts/get")
            let talk = try await client.getPrompt("talk")
            #expect(talk.messages.map(\.role) == [.user, .assistant, .user])
            #expect(talk.messages[2].content.json["data"] == "AQ==")
            #expect(try await client.getPrompt("one").messages.first?.role == .assistant)
            #expect(try await client.getPrompt("blocks").messages.map { $0.content.json["type"] } == ["text", "audio"])
            #expect(try await client.getPrompt("whole").description == "of its own")
            #expect(try await client.getPrompt("listed", ["x": "y"]).messages.first?.text == "y")
        }
    }

    @Test(arguments: eras) func badArgumentsAndFailuresAreErrors(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            await expectCode(-32602, containing: #"argument "name": missing"#) {
                _ = try await client.getPrompt("greet")
            }
            await expectCode(-32602, containing: #"argument "times": expected integer, got "x""#) {
                _ = try await client.getPrompt("greet", ["name": "Ada", "times": "x"])
            }
            await expectCode(-32602, containing: "unheard") { _ = try await client.getPrompt("unheard") }
            await expectCode(-32603, containing: "not today") { _ = try await client.getPrompt("refuse") }
            await #expect(throws: TricornError.rpc(code: 17, message: "no", data: ["why": "so"])) {
                try await client.getPrompt("deny")
            }
        }
    }

    @Test(arguments: eras) func listsArgumentsOfTheType(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            let prompts = try await client.listPrompts()
            #expect(prompts.map(\.name) == ["blocks", "deny", "greet", "listed", "one", "refuse", "talk", "whole"])
            let arguments = try #require(prompts[2].arguments)
            #expect(arguments.map(\.name) == ["name", "times", "tone"])
            #expect(arguments.map(\.required) == [true, false, false])
            #expect(arguments[0].description == "Who is greeted")
            #expect(prompts[2].title == "Greet" && prompts[2].meta?["com.example/n"] == 1)
            #expect(prompts[3].arguments?.map(\.name) == ["x"])
            var lazily: [String] = []
            for try await prompt in client.prompts() { lazily.append(prompt.name) }
            #expect(lazily == prompts.map(\.name))
            #expect(try await client.listPromptsPage().prompts.count == 2)
        }
    }

    @Test(arguments: eras) func completesArguments(revision: String) async throws {
        let app = server()
        app.resource(
            "files://{folder}/{file}",
            complete: [
                "file": { _, query in
                    Completion(values: ["\(query.arguments["folder"] ?? "")1"], hasMore: true, total: 12)
                }
            ]
        ) { (variables: [String: String]) in variables["file"] ?? "" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let names = try await client.complete(.prompt("greet"), argument: "name", value: "A")
            #expect(names.values == ["Ada", "Alan"] && names.total == 2 && names.hasMore == false)
            let other = try await client.complete(
                .prompt("greet"), argument: "name", value: "A", arguments: ["not": "Ada"])
            #expect(other.values == ["Alan"])
            #expect(try await client.complete(.prompt("greet"), argument: "tone", value: "f").values.count == 3)
            let file = try await client.complete(
                .resource("files://{folder}/{file}"), argument: "file", value: "", arguments: ["folder": "a"])
            #expect(file.values == ["a1"] && file.total == 12 && file.hasMore == true)
            await expectCode(-32602, containing: "nothing") {
                _ = try await client.complete(.prompt("greet"), argument: "nothing", value: "")
            }
        }
        app.onComplete { value, query in
            let of = if case .prompt(let name) = query.reference { name } else { "a template" }
            return ["\(of) \(query.argument) \(value) \(query.context.request?.method ?? "")"]
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let fallback = try await client.complete(.prompt("listed"), argument: "x", value: "v")
            #expect(fallback.values == ["listed x v completion/complete"])
            let folder = try await client.complete(
                .resource("files://{folder}/{file}"), argument: "folder", value: "v")
            #expect(folder.values == ["a template folder v completion/complete"])
        }
    }

    @Test func aCompletionOfNothingIsAMistake() async {
        let app = Server("test")
        app.prompt("greet", complete: ["nobody": { _, _ in ["x"] }]) { (input: Greeting) in input.name }
        await #expect(throws: TricornError.self) { try await connect(to: app) }
    }
}
