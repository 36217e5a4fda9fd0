import Foundation
import Testing

@testable import Tricorn

private let all = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
private let modern = "2026-07-28"
private let search = "com.example/search"
private let found = "notifications/com.example/found"
private let member = "com.example/queries"

private struct Query: Codable, Sendable { var query: String }

private struct Found: Codable, Sendable, Equatable {
    var found: [String]
    var wanted: JSONObject?
    var method: String?
}

private struct Secret: Error {}

private func offered() -> ServerExtension {
    var offered = ServerExtension(search, settings: ["languages": ["en"]])
    offered.method(search, idempotent: true) { (query: Query, context) in
        Found(found: [query.query], wanted: context.extension(search), method: context.request?.method)
    }
    let schema: JSONValue = ["type": "object", "required": ["n"], "properties": ["n": ["type": "integer"]]]
    offered.method("com.example/raw", schema: schema) { (params: JSONValue) -> JSONValue in ["got": params] }
    offered.method("com.example/later") { ["resultType": "com.example/later", "at": 7] as JSONValue }
    offered.method("com.example/nothing") { (_: NoArguments, _) in }
    offered.method("com.example/none") { () -> Found? in nil }
    offered.method("com.example/wrong") { [1] }
    offered.method("com.example/fails") { () -> Found in
        throw TricornError.rpc(code: -31050, message: "no such index", data: ["known": ["a"]])
    }
    offered.method("com.example/says") { () -> Found in throw ToolError("ask later") }
    offered.method("com.example/breaks") { () -> Found in throw Secret() }
    offered.notification(found, member: member)
    return offered
}

private func server(_ heard: Locked<[String]> = .init([])) -> Server {
    let app = Server(
        "library", extensions: [offered()], onError: { error, name in heard.with { $0.append("\(name): \(error)") } })
    app.tool("which") { (_: NoArguments, context) in "\(context.extension(search) == nil ? "nothing" : "declared")" }
    return app
}

private func declaring(_ revision: String) -> ClientOptions {
    var options = ClientOptions(revision: revision)
    options.extensions = [search: ["limit": 3]]
    return options
}

private func misuse(containing text: String, _ body: () async throws -> Void) async {
    do {
        try await body()
        Issue.record("no error, expected \(text)")
    } catch TricornError.misuse(let message) {
        #expect(message.contains(text))
    } catch {
        Issue.record(error)
    }
}

@Suite(.timeLimit(.minutes(1))) struct ExtensionTests {
    @Test(arguments: all, Way.allCases)
    func requestsAreServedInEveryRevision(revision: String, way: Way) async throws {
        let heard = Locked([String]())
        try await serve(server(heard), way, declaring(revision)) { client in
            #expect(client.capabilities["extensions"]?[search] == ["languages": ["en"]])
            let answer = try await client.request(search, ["query": "ü"])
            #expect((answer["resultType"] != nil) == (revision == modern), "\(answer)")
            #expect(try answer.decode() == Found(found: ["ü"], wanted: ["limit": 3], method: search))
            expect(try await client.callTool("which").text, "declared")
            let raw = try await client.request("com.example/raw", ["n": 1, "more": nil])
            #expect(raw["got"] == ["n": 1, "more": nil], "without what belongs to the protocol")
            for empty in ["com.example/nothing", "com.example/none"] {
                var result = try #require(try await client.request(empty).objectValue)
                result["resultType"] = nil
                result["_meta"] = nil
                #expect(result == [:], "\(empty)")
            }
            await expectCode(-32602, containing: "query") { _ = try await client.request(search, ["query": 7]) }
            await expectCode(-32602, containing: "\"n\"") { _ = try await client.request("com.example/raw") }
            await expectCode(-32603, containing: "no object") { _ = try await client.request("com.example/wrong") }
            await expectCode(-32603, containing: "ask later") { _ = try await client.request("com.example/says") }
            let hidden = #"request "com.example/breaks" failed: Secret"#
            await expectCode(-32603, containing: hidden) { _ = try await client.request("com.example/breaks") }
            await expectCode(-32601, containing: "com.example/other") {
                _ = try await client.request("com.example/other")
            }
            let fails = TricornError.rpc(code: -31050, message: "no such index", data: ["known": ["a"]])
            await #expect(throws: fails) { _ = try await client.request("com.example/fails") }
        }
        #expect(heard.with { $0 } == ["com.example/breaks: Secret()"])
    }

    @Test func aResultOfAnotherTypeIsForThoseWhoWantIt() async throws {
        try await withClient(of: server(), declaring(modern)) { client in
            do {
                let result = try await client.request("com.example/later")
                Issue.record("expected an error, got \(result)")
            } catch TricornError.peerMisbehaved(let message) {
                #expect(message.contains("com.example/later"))
            }
            let later = try await client.request("com.example/later", nil, .init(anyResult: true))
            #expect(later["resultType"] == "com.example/later" && later["at"] == 7)
        }
    }

    @Test(arguments: all, Way.allCases)
    func whoDoesNotDeclareItGetsNothingOfIt(revision: String, way: Way) async throws {
        try await serve(server(), way, ClientOptions(revision: revision)) { client in
            let code = revision == modern ? -32021 : -32601
            await expectCode(code, containing: search) { _ = try await client.request(search, ["query": "x"]) }
            expect(try await client.callTool("which").text, "nothing")
            guard revision == modern else { return }
            await expectCode(-32021, containing: search) { _ = try await client.listen(extensions: [member: true]) }
        }
        // Nor does a client that declares it, of a server that does not offer it.
        let plain = Server("plain")
        plain.tool("which") { (_: NoArguments, context) in context.extension(search) == nil ? "nothing" : "declared" }
        try await serve(plain, way, declaring(revision)) { client in
            #expect(client.capabilities["extensions"]?[search] == nil)
            await expectCode(-32601, containing: search) { _ = try await client.request(search, ["query": "x"]) }
            expect(try await client.callTool("which").text, "nothing")
        }
    }

    @Test(arguments: all, Way.allCases)
    func notificationsReachThoseWhoAskedForThem(revision: String, way: Way) async throws {
        let app = server()
        try await serve(app, way, declaring(revision)) { client in
            let everything = try await client.listen(extensions: [member: true])
            let some: [String: Listening.Wanted] = [member: ["a", "b"], "com.example/not": false]
            let keyed = try await client.listen(tools: true, extensions: some)
            #expect(everything.honoured.extensions == [member: .all] && !everything.honoured.tools)
            #expect(keyed.honoured.extensions == [member: .keys(["a", "b"])] && keyed.honoured.tools)
            for query in ["c", "a", "a"] {
                let params: JSONValue = ["query": .string(query), "_meta": ["x": 1]]
                try app.notify(found, params, key: query)
            }
            try app.notify(found)
            let first = try await bounded {
                var changes: [ServerChange] = []
                for try await change in everything {
                    changes.append(change)
                    if changes.count == 4 { break }
                }
                return changes
            }
            func told(_ query: JSONValue) -> ServerChange {
                .extensionNotification(method: found, params: ["query": query, "_meta": ["x": 1]])
            }
            #expect(first == [told("c"), told("a"), told("a"), .extensionNotification(method: found, params: [:])])
            app.tool("more") { "more" }
            let second = try await bounded {
                var changes: [ServerChange] = []
                for try await change in keyed {
                    changes.append(change)
                    if change == .toolsListChanged { break }
                }
                return changes
            }
            // Who cannot say what it wants hears everything.
            #expect(second == (revision == modern ? [told("a"), told("a")] : first) + [.toolsListChanged])
        }
    }

    @Test func whatIsNotTakenIsNotLostSilently() async throws {
        let app = server()
        try await withClient(of: app, declaring(modern)) { client in
            let listening = try await client.listen(extensions: [member: true])
            for n in 0..<1100 { try app.notify(found, ["n": .int(n)]) }
            let taken = Locked(0)
            do {
                try await bounded { for try await _ in listening { taken.with { $0 += 1 } } }
                Issue.record("it ended in order")
            } catch TricornError.closed(let message) {
                #expect(message.contains("1024"))
            }
            #expect(taken.with { $0 } == 1024)
        }
    }

    @Test func whatIsWrongIsNamedWhenItIsAdded() async throws {
        func new(
            _ id: String = "com.example/other", _ change: (inout ServerExtension) -> Void = { _ in }
        ) -> ServerExtension {
            var new = ServerExtension(id)
            change(&new)
            return new
        }
        let app = server()
        for (wrong, named) in [
            (new("search"), #"extension "search": expected an identifier with a prefix"#),
            (new("io.modelcontextprotocol/tasks"), #"option "tasks""#),
            (new(search), #""com.example/search": it is there already"#),
            (new { $0.method(search) { true } }, #""com.example/search" is there already"#),
            (new { $0.method("tools/call") { true } }, #""tools/call": the name is the protocol's"#),
            (new { $0.method("a") { (_: [String]) in true } }, #""com.example/other": "a": arguments are an object"#),
            (new { $0.method("a", schema: ["type": 7]) { (_: JSONValue) in true } }, #""a": parameters"#),
            (new { $0.notification("x", member: "m") }, #""x": expected the name of a notification"#),
            (new { $0.notification("notifications/x", member: "toolsListChanged") }, #""toolsListChanged""#),
        ] {
            await misuse(containing: named) { try app.addExtension(wrong) }
            // It can be offered when it is right.
            #expect(app.state.extensions.with { $0 } == [search])
        }
        await misuse(containing: #"they are "notifications/com.example/found""#) { try app.notify("notifications/x") }
        await misuse(containing: "an object") { try app.notify(found, [1]) }
        let failing = Server("failing", extensions: [new("search")])
        await misuse(containing: #"extension "search""#) { _ = try await connect(to: failing) }
        var options = ClientOptions()
        options.extensions = ["search": [:]]
        await misuse(containing: #""extensions": "search""#) { [options] in _ = try await connect(to: app, options) }
        try await withClient(of: app, declaring(modern)) { client in
            let nothing: [String: Listening.Wanted] = [member: [], "com.example/x": false]
            await misuse(containing: "listen") { _ = try await client.listen(extensions: nothing) }
        }
    }

    @Test(arguments: ["2025-11-25", modern])
    func itMayComeLater(revision: String) async throws {
        let app = Server("late", tasks: TaskOptions())
        app.tool("which") { (_: NoArguments, context) in context.extension(search) == nil ? "nothing" : "declared" }
        var options = declaring(revision)
        options.tasks = TaskOptions()
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("which").text, "nothing")
        }
        try app.addExtension(offered())
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("which").text, "declared")
            expect(try await client.request(search, ["query": "x"])["found"], ["x"])
        }
    }
}
