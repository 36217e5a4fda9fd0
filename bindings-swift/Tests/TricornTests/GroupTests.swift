import Foundation
import Testing

@testable import Tricorn

private struct NotToday: Error {}

/// Clients of many servers as one.
@Suite struct GroupTests {
    private func server(_ name: String) -> Server {
        let app = Server(name)
        app.tool("same") { name }
        app.tool("only-\(name)") { (input: Add, _) in input.a + input.b }
        app.resource("\(name)://text") { "text of \(name)" }
        app.resource("\(name)://items/{n}") { (variables: [String: String]) in variables["n"] ?? "" }
        app.prompt("greet", arguments: [.init(name: "who")], choices: ["who": ["Ada", "Bob"]]) {
            (arguments: [String: String]) in
            "\(name) greets \(arguments["who"] ?? "all")"
        }
        return app
    }

    @Test(arguments: eras) func listsAndCallsAsOne(revision: String) async throws {
        let group = try await connectMany(
            to: ["one": server("one"), "two": server("two")],
            GroupOptions(client: ClientOptions(revision: revision)))
        #expect(group.names == ["one", "two"])
        #expect(group.failures.isEmpty)
        #expect(group.client("one")?.serverInfo?["name"] == "one" && group.client("none") == nil)
        let tools = try await group.listTools()
        #expect(tools.map(\.name) == ["one_same", "only-one", "two_same", "only-two"])
        #expect(tools.map(\.server) == ["one", "one", "two", "two"])
        #expect(tools[0].definition.name == "same" && tools.failures.isEmpty)
        #expect(try await group.callTool("two_same").text == "two")
        #expect(try await group.callTool("only-one", Add(a: 1, b: 2)).decode(as: Int.self) == 3)
        #expect(try await group.readResource("two://text").text == "text of two")
        #expect(try await group.readResource("one://items/7").text == "7")
        #expect(try await group.listResourceTemplates().count == 2)
        #expect(try await group.listPrompts().map(\.name) == ["one_greet", "two_greet"])
        #expect(try await group.getPrompt("two_greet", ["who": "Ada"]).messages.first?.text == "two greets Ada")
        let completed = try await group.complete(.prompt("one_greet"), argument: "who", value: "a")
        #expect(completed.values == ["Ada"])
        do {
            _ = try await group.callTool("only-three")
            Issue.record("no error")
        } catch let error as TricornError {
            #expect(error.message.contains("only-"), "\(error)")
        }
        await group.close()
        await #expect(throws: TricornError.self) { try await group.client("one")?.ping() }
    }

    @Test func oneThatFailsDoesNotStopTheOthers() async throws {
        let lifespan = Lifespan { () -> Int in throw NotToday() }
        let group = try await connectMany(to: ["bad": Server("bad", lifespan: lifespan), "good": server("good")])
        #expect(group.names == ["bad", "good"])
        #expect(group.failures.keys.sorted() == ["bad"])
        #expect(group.failures["bad"]?.message.contains("NotToday") == true)
        #expect(try await group.callTool("same").text == "good")
        await #expect(throws: TricornError.self) { try await group.reconnect("bad") }
        try await group.add("more", server("more"))
        #expect(try await group.listTools().map(\.name) == ["good_same", "only-good", "more_same", "only-more"])
        #expect(try await group.remove("more"))
        #expect(try await !group.remove("more"))
        #expect(group.client("more") == nil)
        #expect(try await group.listTools().map(\.name) == ["same", "only-good"])
        await group.close()
    }

    @Test(arguments: eras) func eachServerIsHeardAndAnswered(revision: String) async throws {
        let app = Server("asks"), other = server("b")
        app.tool("ask") { (_: NoArguments, context) in try await context.sample("x", maxTokens: 1).text }
        let heard = Locked([String]())
        var options = GroupOptions(client: ClientOptions(revision: revision))
        options.forServer = { name, options in
            options.sampling = { _, _ in "answer for \(name)" }
            options.onListChanged = { kind in heard.with { $0.append("\(name) \(kind.rawValue)") } }
        }
        let group = try await connectMany(to: ["a": app, "b": other], options)
        #expect(try await group.callTool("ask").text == "answer for a")
        app.tool("more") { "more" }
        #expect(await eventually { heard.with { $0 } == ["a tool"] })
        #expect(try await group.callTool("more").text == "more")
        let listening = try await #require(group.client("b")).listen(tools: true, uris: ["b://text"])
        other.notifyResourceUpdated("b://text")
        for try await change in listening {
            #expect(change.uri == "b://text")
            break
        }
        await group.close()
        #expect(await eventually { app.metrics["listeners"] == 0 && other.metrics["listeners"] == 0 })
    }

    @Test func serversAndTargetsKeepTheirOrder() async throws {
        let group = try await connectMany([
            "first": .command("/no/such/program"), "own": .server(server("own")), "wrong": .file("/no/such/file.json"),
            "last": .server(server("last")),
        ])
        #expect(group.names == ["first", "own", "wrong", "last"])
        #expect(group.failures.mapValues(\.kind) == ["first": "transport", "wrong": "misuse"])
        #expect(try await group.listTools().map(\.server) == ["own", "own", "last", "last"])
        await group.close()
    }

    @Test func namesAlwaysHaveThePrefixIfAsked() async throws {
        let group = try await connectMany(to: ["one": server("one")], GroupOptions(prefix: .always))
        #expect(try await group.listTools().map(\.name) == ["one_same", "one_only-one"])
        await group.close()
    }

    @Test func programsOfAFile() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let configuration: JSONValue = [
            "mcpServers": [
                "missing": ["command": "/no/such/program"], "off": ["command": "/no/such/program", "disabled": true],
            ]
        ]
        try Data(configuration.description.utf8).write(to: file)
        for group in [
            try await connectMany(file.path), try await connectMany(configuration: configuration),
            try await connectMany(["missing": .command("/no/such/program")]),
        ] {
            #expect(group.names == ["missing"])
            #expect(group.failures.keys.sorted() == ["missing"])
            await group.close()
        }
        await #expect(throws: TricornError.self) { try await connectMany("/no/such/file.json") }
    }

    @Test func programsOfAFileAreHeardByTheirNames() async throws {
        let configuration: JSONValue = [
            "mcpServers": ["loud": ["command": "/bin/sh", "args": ["-c", "echo no such database >&2; exit 3"]]]
        ]
        let heard = Event()
        var options = GroupOptions()
        options.forServer = { name, options in
            options.onStderr = { line in Task { await heard.set("\(name): \(line)") } }
        }
        let group = try await connectMany(configuration: configuration, options)
        #expect(group.failures.keys.sorted() == ["loud"])
        #expect(await heard.value() == "loud: no such database")
        await group.close()
    }

    @Test func aServerThatIsConnectedAnewIsHeardAgain() async throws {
        let app = server("one"), closed = Locked(0)
        var options = GroupOptions(client: ClientOptions(revision: .v20251125))
        options.client.onClose = { _ in closed.with { $0 += 1 } }
        let group = try await connectMany(to: ["one": app], options)
        let client = try await group.reconnect("one")
        let notifications = client.notifications()
        app.tool("more") { "more" }
        let told = try await bounded { await notifications.first { $0.method == "notifications/tools/list_changed" } }
        #expect(told != nil)
        // The end that this side has wanted is no news.
        let before = closed.with { $0 }
        await group.close()
        #expect(try await bounded { await client.notifications().first { _ in true } } == nil)
        try await Task.sleep(for: .milliseconds(50))
        #expect(closed.with { $0 } == before)
    }
}
