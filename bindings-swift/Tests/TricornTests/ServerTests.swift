import Foundation
import Testing

@testable import Tricorn

private struct Weather: Codable, Sendable, Equatable {
    var city: String
    var degrees: Double
}

private struct Trouble: Error {}

@Suite struct ServerTests {
    private func server() -> Server {
        let app = Server("test", version: "1.2.3", instructions: "Be kind.", onError: { _, _ in })
        app.tool("add", "Add two numbers") { (input: Add, _) in input.a + input.b }
        app.tool("greet") { (input: [String: String]) in "hello \(input["name"] ?? "you")" }
        app.tool("weather", outputSchema: nil) { () in Weather(city: "Oslo", degrees: -3.5) }
        app.tool("tool-error") { () -> String in throw ToolError("no such city") }
        app.tool("swift-error") { () -> String in throw Trouble() }
        app.tool("rpc-error") { () -> String in
            throw TricornError.rpc(code: -31050, message: "refused", data: ["why": "because"])
        }
        app.tool("nothing") { (_: NoArguments, _) in }
        app.tool("blocks") { [ContentBlock.text("a"), .image(Data([1, 2]), mimeType: "image/png"), .text("b")] }
        app.tool("whole") { CallToolResult(content: [.text("x")], structured: ["n": 1], isError: true, meta: ["m": 2]) }
        app.tool("null") { () -> JSONValue in .null }
        return app
    }

    @Test func listsToolsWithDerivedSchemas() async throws {
        try await withClient(of: server()) { client in
            let tools = try await client.listTools()
            #expect(tools.map(\.name).prefix(3) == ["add", "greet", "weather"])
            let add = try #require(tools.first)
            #expect(add.description == "Add two numbers")
            #expect(add.inputSchema["properties"] == ["a": ["type": "integer"], "b": ["type": "integer"]])
            #expect(add.inputSchema["required"] == ["a", "b"])
            #expect(tools[2].outputSchema?["required"] == ["city", "degrees"])
            #expect(client.serverInfo?["version"] == "1.2.3")
            #expect(client.instructions == "Be kind.")
            #expect(client.transport == "memory")
        }
    }

    @Test(arguments: ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    func answersInEveryRevision(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            #expect(client.protocolVersion.rawValue == revision)
            #expect(client.era == (revision == "2026-07-28" ? "modern" : "legacy"))
            let sum = try await client.callTool("add", Add(a: 2, b: 40))
            #expect(sum.text == "42")
            #expect(try await client.callTool("greet", ["name": "Ada"]).decode(as: String.self) == "hello Ada")
            #expect(try await client.callTool("nothing").content == [])
        }
    }

    @Test func structuredResultsComeBackTyped() async throws {
        try await withClient(of: server()) { client in
            let result = try await client.callTool("weather")
            #expect(result.structured == ["city": "Oslo", "degrees": -3.5])
            #expect(try result.decode(as: Weather.self) == Weather(city: "Oslo", degrees: -3.5))
            #expect(try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self) == 3)
            let blocks = try await client.callTool("blocks")
            #expect(blocks.content == [.text("a"), .image(Data([1, 2]), mimeType: "image/png"), .text("b")])
            #expect(blocks.text == "a\nb")
            let whole = try await client.callTool("whole")
            #expect(whole.isError && whole.structured == ["n": 1] && whole.meta?["m"] == 2)
        }
    }

    @Test func failuresAreResultsOrErrorsAsTheyWereMeant() async throws {
        try await withClient(of: server()) { client in
            let failed = try await client.callTool("tool-error")
            #expect(failed.isError)
            #expect(failed.text == "no such city")
            #expect(throws: ToolError("no such city")) { try failed.orThrow() }
            #expect(try await client.callTool("swift-error").text == "tool \"swift-error\" failed: Trouble")
            await #expect(throws: TricornError.rpc(code: -31050, message: "refused", data: ["why": "because"])) {
                try await client.callTool("rpc-error")
            }
            let invalid = try await client.callTool("add", ["a": "x", "b": 2])
            #expect(invalid.isError && invalid.text == #"argument "a": expected integer, got "x""#)
            await #expect(throws: TricornError.self) { try await client.callTool("unheard-of") }
            await #expect(throws: TricornError.self) { try await client.request("unheard/of") }
        }
    }

    @Test func argumentsThatOnlySwiftRefusesReadTheSame() async throws {
        struct Small: Codable, Sendable { var n: UInt8 }
        let app = Server("test")
        app.tool("small", inputSchema: ["type": "object"]) { (input: Small) in Int(input.n) }
        try await withClient(of: app) { client in
            let result = try await client.callTool("small", ["n": 300])
            #expect(result.isError && result.text == #"argument "n": expected integer from 0 to 255, got 300"#)
        }
    }

    @Test func anErrorInADeclarationIsThrownWhenServing() async {
        let twice = Server("test")
        twice.tool("same") { "a" }
        twice.tool("same") { "b" }
        await #expect(throws: TricornError.self) { try await connect(to: twice) }
        let schema = Server("test")
        schema.tool("bad", inputSchema: ["type": "nonsense"]) { "a" }
        await #expect(throws: TricornError.self) { try await schema.serveStdio() }
        let scalar = Server("test")
        scalar.tool("bad") { (n: Int) in n }
        await #expect(throws: TricornError.self) { try await connect(to: scalar) }
    }

    @Test func serversThatAreRefusedGiveNoStreamsBack() {
        StandardOutput.take()
        StandardOutput.take()
        #expect(!StandardOutput.giveBack())
        #expect(StandardOutput.giveBack())
    }

    @Test func contextKnowsTheRequest() async throws {
        let app = Server("test")
        app.tool("context") { (_: NoArguments, context) in context.request?.json ?? .null }
        app.tool("require") { (_: NoArguments, context) in
            try context.require("sampling")
            return "ok"
        }
        var options = ClientOptions(revision: "2025-11-25")
        options.name = "tester"
        options.capabilities = ["sampling": [:]]
        try await withClient(of: app, options) { client in
            let context = RequestInfo(json: try #require(try await client.callTool("context").structured))
            #expect(context.method == "tools/call")
            #expect(context.protocolVersion == "2025-11-25")
            #expect(context.clientInfo?["name"] == "tester")
            #expect(context.clientCapabilities["sampling"] != nil)
            #expect(context.transport == "memory")
            #expect(try await client.callTool("require").text == "ok")
        }
        try await withClient(of: app) { client in
            await #expect(throws: TricornError.self) { try await client.callTool("require") }
        }
    }

    @Test func progressAndLogReachTheClient() async throws {
        let app = Server("test")
        app.tool("work") { (_: NoArguments, context) in
            for step in 1...3 { context.progress(Double(step), total: 3, message: "step \(step)") }
            context.log(.warning, ["step": 3], logger: "work")
            return "done"
        }
        let seen = Locked([RequestOptions.Progress]())
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            let notifications = client.notifications()
            let options = RequestOptions(onProgress: { report in seen.with { $0.append(report) } })
            #expect(try await client.callTool("work", [:], options).text == "done")
            #expect(seen.with { $0.map(\.progress) } == [1, 2, 3])
            #expect(seen.with { $0.last } == .init(progress: 3, total: 3, message: "step 3"))
            let message = try await bounded { await notifications.first { $0.method == "notifications/message" } }
            #expect(message?.params?["level"] == "warning")
            #expect(message?.params?["data"] == ["step": 3])
        }
    }

    @Test func toolsComeAndGo() async throws {
        let app = server()
        try await withClient(of: app) { client in
            let count = try await client.listTools().count
            app.tool("new") { "here" }
            #expect(try await client.callTool("new").text == "here")
            #expect(app.removeTool("new"))
            #expect(!app.removeTool("new"))
            #expect(try await client.listTools().count == count)
        }
    }

    @Test func listingsHavePages() async throws {
        let app = Server("test", pageSize: 2)
        for number in 0..<5 { app.tool("t\(number)") { number } }
        try await withClient(of: app) { client in
            let first = try await client.listToolsPage()
            #expect(first.tools.map(\.name) == ["t0", "t1"])
            let second = try await client.listToolsPage(cursor: first.nextCursor)
            #expect(second.tools.map(\.name) == ["t2", "t3"])
            #expect(try await client.listTools().map(\.name) == ["t0", "t1", "t2", "t3", "t4"])
        }
    }

    @Test func aListThatHasChangedIsReadAnewOnce() throws {
        var pages = Pages("tools/list")
        let refused = TricornError.rpc(code: -32602, message: "no such cursor")
        let atFirst = pages.beginsAnew(at: nil, refused)
        #expect(!atFirst)
        let all = pages.unknown([["name": "same"], ["name": "a1"]])
        #expect(all.count == 2)
        #expect(try pages.next("c") == "c")
        let broken = pages.beginsAnew(at: "c", .rpc(code: -32603, message: "broken"))
        #expect(!broken)
        let once = pages.beginsAnew(at: "c", refused)
        #expect(once)
        let fresh = pages.unknown([["name": "same"], ["name": "a2"]])
        #expect(fresh == [["name": "a2"]])
        #expect(try pages.next("c") == "c")
        let twice = pages.beginsAnew(at: "c", refused)
        #expect(!twice)
    }

    @Test func listingsHaveAnEnd() throws {
        var pages = Pages("tools/list")
        #expect(try pages.next(nil) == nil)
        #expect(try pages.next("a") == "a")
        #expect(try pages.next("b") == "b")
        #expect(throws: TricornError.peerMisbehaved("tools/list never ends: the cursor \"a\" came twice")) {
            try pages.next("a")
        }
        var endless = Pages("tools/list")
        for page in 1..<1000 { _ = try endless.next("\(page)") }
        #expect(throws: TricornError.peerMisbehaved("tools/list never ends: there are more than 1000 pages")) {
            try endless.next("1000")
        }
    }

    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func aCallCarriesMeta(revision: String) async throws {
        let app = Server("test")
        app.tool("meta") { (_: NoArguments, context) in context.request?.meta?["com.example/n"]?.description ?? "none" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let without = try await client.callTool("meta")
            #expect(without.text == "none")
            let with = try await client.callTool("meta", meta: ["com.example/n": 1])
            #expect(with.text == "1")
            let typed = try await client.callTool("meta", Add(a: 1, b: 2), meta: ["com.example/n": 2])
            #expect(typed.text == "2")
        }
    }

    @Test func manyCallsAtOnce() async throws {
        try await withClient(of: server()) { client in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for i in 0..<200 {
                    group.addTask { try await client.callTool("add", Add(a: i, b: 1)).decode(as: Int.self) == i + 1 }
                }
                for try await good in group { #expect(good) }
            }
        }
    }
}
