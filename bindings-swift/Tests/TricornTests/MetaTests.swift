import Foundation
import Testing

@testable import Tricorn

private let legacy = "2025-11-25"

private func meta(_ of: String) -> JSONObject { ["com.example/of": .string(of)] }

/// A wire value from JSON, with whatever it says besides.
private func whole<Value: _WireObject>(_ json: JSONValue) throws -> Value { try Value(json: json) }

/// Unknown members of a peer's messages reach the program, and those that a program adds go out.
@Suite struct MetaTests {
    @Test func aHandlerGetsAllOfWhatItsClientAnswers() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) -> JSONValue in
            let form = try await context.elicit("?", schema: ["type": "object", "properties": [:]])
            let page = try await context.elicitURL("?", url: "https://example.com", elicitationID: "1")
            let said = try await context.sample("?", maxTokens: 1)
            let roots = try await context.listRoots()
            return [
                "form": form.meta ?? nil, "page": page.json["_meta"] ?? nil, "said": said.json["_meta"] ?? nil,
                "roots": roots.json["_meta"] ?? nil,
                "novelty": [
                    form.json["novelty"] ?? nil, page.json["novelty"] ?? nil, said.json["novelty"] ?? nil,
                    roots.json["novelty"] ?? nil,
                ],
                "accepted": .bool(form.action == .accept && form.content != nil && page.action == .decline),
                "root": .string(roots.roots[0].uri),
            ]
        }
        var options = ClientOptions(revision: legacy)
        options.elicitationModes = [.form, .url]
        options.elicitation = { question, _ in
            let action = question.mode == .url ? "decline" : "accept"
            let of = question.mode == .url ? "page" : "form"
            return .result(
                try whole(["action": .string(action), "_meta": .object(meta(of)), "novelty": .string(of)]))
        }
        options.sampling = { _, _ in
            let json: JSONValue = [
                "role": "assistant", "model": "m", "content": ["type": "text", "text": "hi"],
                "_meta": .object(meta("said")), "novelty": "said",
            ]
            return try whole(json) as CreateMessageResult
        }
        options.roots = .result { _ in
            try whole(["roots": [["uri": "file:///a"]], "_meta": .object(meta("roots")), "novelty": "roots"])
        }
        try await withClient(of: app, options) { client in
            let seen = try #require(try await client.callTool("ask").structured)
            for of in ["form", "page", "said", "roots"] { #expect(seen[of] == .object(meta(of)), "\(of)") }
            #expect(seen["novelty"] == ["form", "page", "said", "roots"])
            #expect(seen["accepted"] == true && seen["root"] == "file:///a")
        }
    }

    private func says() -> Server {
        let app = Server("says", tasks: TaskOptions())
        app.resource("x://a") { () throws -> ReadResourceResult in
            try whole(["contents": [["uri": "x://a", "text": "text"]], "_meta": .object(meta("resource"))])
        }
        struct Arguments: Codable, Sendable { var x: String? }
        app.prompt(
            "p",
            complete: [
                "x": { _, _ in
                    try whole(["completion": ["values": ["one"], "total": 7], "_meta": .object(meta("completion"))])
                        as Types.CompleteResult
                }
            ]
        ) { (_: Arguments) throws -> GetPromptResult in
            try whole([
                "messages": [["role": "user", "content": ["type": "text", "text": "hi"]]],
                "_meta": .object(meta("prompt")),
            ])
        }
        app.tool("t", taskSupport: .optional) { "done" }
        app.setSource(.resource) { _, _ in
            [
                "resources": [["uri": "x://b", "name": "b"]], "_meta": .object(meta("list")), "novelty": 5,
            ] as JSONValue
        }
        return app
    }

    @Test(arguments: ["2024-11-05", "2025-11-25", "2026-07-28"])
    func whatAServerSaysBesidesGoesOut(revision: String) async throws {
        try await withClient(of: says(), ClientOptions(revision: revision)) { client in
            #expect(client.initializeResult["capabilities"]?["resources"] != nil)
            let own = try await client.listResourcesPage()
            let page = try await client.listResourcesPage(cursor: own.nextCursor)
            #expect(page.resources.map(\.uri) == ["x://b"])
            func of(_ json: JSONValue) -> JSONValue? { json["_meta"]?["com.example/of"] }
            #expect(of(page.json) == "list" && page.json["novelty"] == 5)
            #expect(of(try await client.readResource("x://a").json) == "resource")
            #expect(of(try await client.getPrompt("p").json) == "prompt")
            let found = try await client.complete(.prompt("p"), argument: "x", value: "")
            #expect(found.values == ["one"] && found.total == 7 && found.hasMore == true)
            #expect(of(found.json) == "completion")
            #expect(try await client.listToolsPage().tools.count == 1)
        }
    }

    @Test func aTaskKnowsHowItsCallWasAnswered() async throws {
        try await withClient(of: says(), ClientOptions(revision: legacy)) { client in
            let task = try await client.callToolTask("t")
            #expect(task.created?["task"]?["taskId"]?.stringValue == task.id)
            #expect(client.task(task.id).created == nil)
        }
    }
}
