import Foundation
import Testing

@testable import Tricorn

private final class Held: Sendable {}

/// Changes of a server while it is served, and the clients they are for; logging.
@Suite struct DynamicTests {
    private func options(_ heard: Locked<[String]>, _ revision: String = "2025-11-25") -> ClientOptions {
        var options = ClientOptions(revision: revision)
        options.onListChanged = { kind in heard.with { $0.append(kind.rawValue) } }
        return options
    }

    private func server() -> Server {
        let app = Server("test", pageSize: 2)
        app.tool("first") { "1" }
        app.resource("a://first", value: "1")
        app.resource("t://{x}") { (variables: [String: String]) in variables["x"] ?? "" }
        app.prompt("first") { "1" }
        return app
    }

    @Test(arguments: eras) func clientsHearWhatIsAddedAndRemoved(revision: String) async throws {
        let app = server(), heard = Locked([String]())
        try await withClient(of: app, options(heard, revision)) { client in
            app.tool("second") { "2" }
            #expect(await eventually { heard.with { $0.last } == "tool" })
            expect(try await client.callTool("second").text, "2")
            app.resource("a://second", value: "2")
            #expect(await eventually { heard.with { $0.last } == "resource" })
            expect(try await client.readResource("a://second").text, "2")
            app.prompt("second") { "2" }
            #expect(await eventually { heard.with { $0.last } == "prompt" })
            expect(try await client.getPrompt("second").messages.first?.text, "2")
            #expect(app.removeTool("second") && app.removeResource("a://second") && app.removePrompt("second"))
            #expect(app.removeResourceTemplate("t://{x}"))
            #expect(!app.removeTool("second") && !app.removeResourceTemplate("t://{x}"))
            #expect(await eventually { heard.with { $0.count } >= 6 })
            expect(try await client.listTools().map(\.name), ["first"])
            expect(try await client.listResources().map(\.uri), ["a://first"])
            expect(try await client.listResourceTemplates().isEmpty, true)
            await #expect(throws: TricornError.self) { try await client.getPrompt("second") }
            // A name that is free again.
            app.prompt("second") { "3" }
            expect(try await client.getPrompt("second").messages.first?.text, "3")
        }
    }

    @Test func whatCannotBeAddedWhileServingStopsNobodyLater() async throws {
        let warnings = Locked([String]())
        let app = Server("test", onWarning: { text in warnings.with { $0.append(text) } })
        app.tool("x") { "1" }
        try await withClient(of: app) { client in
            app.tool("x") { "2" }
            #expect(await eventually { warnings.with { $0.count } == 1 })
            #expect(warnings.with { $0[0] }.hasPrefix("tool \"x\" is already registered"))
            app.middleware(.rateLimit(perSecond: -1))
            #expect(await eventually { warnings.with { $0.count } == 2 })
            var refused = ""
            do {
                try app.add { offers in
                    offers.tool("x") { "3" }
                    offers.tool("y") { "y" }
                }
            } catch { refused = "\(error)" }
            #expect(refused.contains("tool \"x\" is already registered"))
            expect(try await client.callTool("x").text, "1")
            expect(try await client.callTool("y").text, "y")
        }
        // Neither is anybody who comes later.
        try await withClient(of: app) { client in
            expect(try await client.listTools().map(\.name), ["x", "y"])
        }
        _ = try app.httpEndpoint()
        expect(warnings.with { $0.count }, 2)
        try app.add { $0.tool("x", replacing: true) { "4" } }
    }

    @Test func whatIsWrongBeforeServingIsThrownByIt() async throws {
        let app = Server("test")
        app.tool("x") { "1" }
        app.tool("x") { "2" }
        for _ in 0..<2 {
            await #expect(throws: TricornError.self) { try await connect(to: app) }
        }
    }

    private func put(_ text: String, in place: some Offering) {
        place.tool("a", title: text, replacing: true) { text }
        place.resource("a://a", title: text, replacing: true, value: text)
        place.resource("a://a/{x}", title: text, replacing: true) { (_: [String: String]) in text }
        place.prompt("a", title: text, replacing: true) { text }
    }

    private func expectReplaced(_ client: Client, _ text: String) async throws {
        expect(try await client.callTool("a").text, text)
        expect(try await client.readResource("a://a").text, text)
        expect(try await client.readResource("a://a/1").text, text)
        expect(try await client.getPrompt("a").messages.first?.text, text)
    }

    @Test(arguments: eras) func whatIsReplacedKeepsItsPlace(revision: String) async throws {
        let app = Server("test")
        put("old", in: app)
        app.tool("z") { "z" }
        app.prompt("z") { "z" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            for text in ["old", "new"] {
                put(text, in: app)
                try await expectReplaced(client, text)
                expect(try await client.listTools().map(\.title), [text, nil])
                expect(try await client.listResources().map(\.title), [text])
                expect(try await client.listResourceTemplates().map(\.title), [text])
                expect(try await client.listPrompts().map(\.title), [text, nil])
            }
            #expect(app.setEnabled(.tool, named: "a", to: false))
            app.tool("a", replacing: true) { "hidden" }
            expect(try await client.listTools().map(\.name), ["z"])
        }
        #expect(throws: TricornError.self) { try app.add { $0.tool("a") { "taken" } } }
    }

    @Test func whatASessionHasIsReplaced() async throws {
        let app = Server("test", capabilities: [.prompts, .resources])
        app.tool("put") { (input: [String: String], context) in
            try context.addToSession { put(input["text"] ?? "", in: $0) }
            return "done"
        }
        let options = ClientOptions(revision: "2025-11-25")
        try await withClient(of: app, options) { client in
            for text in ["old", "new"] {
                expect(try await client.callTool("put", ["text": .string(text)]).isError, false)
                try await expectReplaced(client, text)
                expect(try await client.listTools().map(\.name), ["put", "a"])
            }
        }
    }

    @Test func iconsThatAClientMayLoad() {
        for src in ["https://example.com/a.png", "data:image/png;base64,AAAA"] { #expect(isSafeIcon(src)) }
        for src in ["http://example.com/a.png", "javascript:alert(1)", "file:///a.png", "data:text/html,x", ""] {
            #expect(!isSafeIcon(src))
        }
    }

    @Test(arguments: eras) func whatIsHiddenIsNotThere(revision: String) async throws {
        let app = server()
        app.resource("a://hidden", enabled: false, value: "h")
        app.prompt("hidden", enabled: false) { "h" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.listResources().count, 1)
            expect(try await client.listPrompts().count, 1)
            await #expect(throws: TricornError.self) { try await client.readResource("a://hidden") }
            #expect(
                app.setEnabled(.resource, named: "a://hidden", to: true)
                    && app.setEnabled(.prompt, named: "hidden", to: true))
            #expect(!app.setEnabled(.prompt, named: "hidden", to: true))
            expect(try await client.readResource("a://hidden").text, "h")
            #expect(
                app.setEnabled(.tool, named: "first", to: false)
                    && app.setEnabled(.resourceTemplate, named: "t://{x}", to: false))
            expect(try await client.listTools().isEmpty, true)
            expect(try await client.listResourceTemplates().isEmpty, true)
        }
    }

    @Test func aSessionSeesWhatIsItsOwn() async throws {
        let app = server(), heard = Locked([String]())
        app.tool("secret", enabled: false) { "s" }
        app.tool("unlock") { (_: NoArguments, context) in try context.setEnabled(.tool, named: "secret", to: true) }
        try await withClient(of: app, options(heard)) { client in
            try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { other in
                expect(try await client.callTool("unlock").decode(as: Bool.self), true)
                #expect(await eventually { heard.with { $0 } == ["tool"] })
                expect(try await client.callTool("secret").text, "s")
                expect(try await other.listTools().map(\.name), ["first", "unlock"])
                await #expect(throws: TricornError.self) { try await other.callTool("secret") }
            }
        }
        let modern = Server("test")
        modern.tool("unlock") { (_: NoArguments, context) in
            do {
                return "\(try context.setEnabled(.tool, named: "unlock", to: false))"
            } catch let error as TricornError {
                return error.kind.rawValue
            }
        }
        try await withClient(of: modern, ClientOptions(revision: "2026-07-28")) { client in
            expect(try await client.callTool("unlock").text, "unsupported")
        }
    }

    @Test func whatTheProtocolKnowsNothingOfIsDeclared() async throws {
        let ours: JSONObject = ["ours": ["depth": 3]]
        let app = Server("test", capabilities: [.experimental(ours), .other("com.example", ["x": 1]), .prompts])
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            #expect(client.capabilities["experimental"] == .object(ours))
            #expect(client.capabilities["com.example"] == ["x": 1])
            #expect(client.capabilities["prompts"] != nil)
        }
    }

    @Test func aSessionMayHaveItsOwn() async throws {
        let app = Server("test", capabilities: [.resources, .prompts, .completions], onError: { _, _ in })
        app.tool("own") { (_: NoArguments, context) in
            try context.addToSession { session in
                session.tool("mine") { (input: Add, _) in input.a + input.b }
                session.resource("mine://{n}") { (variables: [String: String]) in variables["n"] ?? "" }
                session.prompt("mine") { "for you" }
            }
        }
        app.tool("again") { (_: NoArguments, context) in try context.addToSession { $0.tool("mine") { "x" } } }
        let held = Locked<Held?>(Held())
        app.tool("hold") { (_: NoArguments, context) in
            let object = held.with { $0 }
            try context.addToSession { $0.tool("held") { "\(object == nil)" } }
        }
        app.tool("disown") { (_: NoArguments, context) in
            [try context.removeFromSession(.prompt, "none"), try context.removeFromSession(.prompt, "mine")]
        }
        weak var object = held.with { $0 }
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            _ = try await client.callTool("own").orThrow()
            _ = try await client.callTool("hold").orThrow()
            held.with { $0 = nil }
            expect(try await client.callTool("held").text, "false")
            #expect(object != nil)
            expect(try await client.callTool("mine", ["a": 1, "b": 2]).decode(as: Int.self), 3)
            expect(try await client.readResource("mine://7").text, "7")
            expect(try await client.getPrompt("mine").messages.first?.text, "for you")
            expect(try await client.callTool("again").isError, true)
            expect(try await client.callTool("disown").decode(as: [Bool].self), [false, true])
            try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { other in
                expect(try await other.listTools().map(\.name), ["own", "again", "hold", "disown"])
            }
        }
        // What the session had is gone with it.
        for _ in 0..<1000 where object != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(object == nil)
    }

    @Test(arguments: eras) func sourcesFollowWhatWasAdded(revision: String) async throws {
        let upstream = server()
        let other = try await connect(to: upstream)
        let app = Server("proxy")
        app.tool("own") { "own" }
        app.setSource(.tool) { cursor, _ in
            try await other.listToolsPage(cursor: cursor).json
        } get: { params, _ in
            try await other.request("tools/call", params)
        }
        app.setSource(.resource) { _, _ in
            [Resource(uri: "d://x", name: "x")]
        } get: { params, _ in
            "read \(params["uri"]?.stringValue ?? "")"
        }
        app.setSource(.prompt, list: { _, _ in [Prompt(name: "p")] }, get: { params, _ in [PromptMessage.user("got")] })
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.listTools().map(\.name), ["own", "first"])
            expect(try await client.callTool("first").text, "1")
            expect(try await client.callTool("own").text, "own")
            expect(try await client.listResources().map(\.uri), ["d://x"])
            expect(try await client.readResource("d://x").text, "read d://x")
            expect(try await client.listPrompts().map(\.name), ["p"])
            expect(try await client.getPrompt("p").messages.first?.text, "got")
        }
        await other.close()
    }

    @Test(arguments: eras) func aSourceTellsOfItsChanges(revision: String) async throws {
        let app = server(), heard = Locked([String]())
        try await withClient(of: app, options(heard, revision)) { client in
            app.notifyListChanged(.prompt)
            #expect(await eventually { heard.with { $0 } == ["prompt"] })
            try await client.ping()
        }
    }

    @Test func toolsComeLazily() async throws {
        let app = server()
        for n in 2...5 { app.tool("t\(n)") { "\(n)" } }
        try await withClient(of: app) { client in
            var seen: [String] = []
            for try await tool in client.tools() { seen.append(tool.name) }
            #expect(seen == ["first", "t2", "t3", "t4", "t5"])
        }
    }

    // MARK: - logging

    @Test func logsAreHeardFromTheLevelOn() async throws {
        let app = Server("test"), heard = Locked([String]())
        app.tool("log") { (_: NoArguments, context) in
            var logger = context.logger("db")
            logger.debug("too much")
            logger.info("connected")
            logger[metadataKey: "user"] = "ada"
            logger.warning("slow", metadata: ["ms": 12])
            logger.logLevel = .critical
            logger.error("not sent")
            // As a logging library's backend would, which is handed no context.
            Context.current?.logger().log(level: .notice, message: "found")
        }
        var options = ClientOptions(revision: "2025-11-25")
        options.onLog = { level, logger, data in heard.with { $0.append("\(level) \(logger ?? "-") \(data)") } }
        try await withClient(of: app, options) { client in
            try await client.setLogLevel(.info)
            _ = try await client.callTool("log")
            #expect(await eventually { heard.with { $0.count } == 3 })
            #expect(
                heard.with { $0 } == [
                    #"info db "connected""#, #"warning db {"message":"slow","ms":12,"user":"ada"}"#,
                    #"notice - "found""#,
                ])
        }
        #expect(Context.current.map { _ in true } == nil)
        // In newer revisions each request asks: for the level that was set, or its own.
        options.revision = "2026-07-28"
        heard.with { $0 = [] }
        try await withClient(of: app, options) { client in
            _ = try await client.callTool("log")
            try await client.setLogLevel(.warning)
            _ = try await client.callTool("log")
            _ = try await client.callTool("log", meta: ["io.modelcontextprotocol/logLevel": "emergency"])
            #expect(await eventually { heard.with { $0.count } == 1 })
            #expect(heard.with { $0 } == [#"warning db {"message":"slow","ms":12,"user":"ada"}"#])
        }
    }
}
