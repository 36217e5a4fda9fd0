import Foundation
import Testing

@testable import Tricorn

/// Against the fixture server, as a process and over HTTP.
@Suite(.serialized) struct ClientTests {
    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func launchesAServer(revision: String) async throws {
        let client = try await connect(
            .command(program("everything"), arguments: ["--stdio"]), ClientOptions(revision: revision))
        #expect(client.transport == "stdio")
        #expect(client.protocolVersion.rawValue == revision)
        #expect(try await client.callTool("add", ["a": 20, "b": 22]).decode(as: Int.self) == 42)
        #expect(try await client.callTool("print", ["text": "to nobody"]).text == "printed")
        let long = String(repeating: "é\"\\\n", count: 100_000)
        #expect(try await client.callTool("echo", ["text": .string(long)]).text == long)
        await client.close()
        await #expect(throws: TricornError.self) { try await client.ping() }
    }

    @Test func understandsACommandLine() async throws {
        let client = try await connect("'\(program("everything"))' --stdio")
        #expect(try await client.listTools().contains { $0.name == "all_content" })
        let blocks = try await client.callTool("all_content").content
        #expect(blocks.count == 7)
        #expect(blocks.last == .text("last"))
        await client.close()
    }

    @Test func listensToStandardError() async throws {
        let client = try await connect(
            .command(
                "/bin/sh", arguments: ["-c", "echo begun >&2; exec '\(program("everything"))' --stdio"],
                standardError: .event))
        let lines = client.standardErrorLines()
        _ = try await client.callTool("fail", ["kind": "exception"])
        let line = try await bounded { await lines.first { $0.contains("secret detail") } }
        #expect(line == "tool \"fail\" failed: Trouble: secret detail")
        await client.close()
    }

    @Test func readsConfigurationFilesOfHosts() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("mcp-\(UUID()).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let script = "echo begun >&2; exec '\(program("everything"))' --stdio"
        let one: JSONValue = ["type": "stdio", "command": "/bin/sh", "args": ["-c", .string(script)]]
        let config: JSONValue = ["mcpServers": ["one": one, "two": ["url": "http://127.0.0.1:9/mcp"]]]
        try config.description.write(toFile: path, atomically: true, encoding: .utf8)
        let heard = Event()
        var options = ClientOptions()
        options.onStderr = { line in Task { await heard.set(line) } }
        let client = try await connect(.file(path, server: "one"), options)
        #expect(try await client.listTools().contains { $0.name == "all_content" })
        #expect(await heard.value() == "begun")
        await client.close()
        for (target, says) in [
            (ConnectionTarget.parse(path), #""one", "two""#), (.file(path, server: "three"), #"server "three""#),
        ] {
            do {
                _ = try await connect(target)
                Issue.record("connected")
            } catch {
                #expect("\(error)".contains(says))
            }
        }
    }

    @Test func refusesURLsOfOtherSchemes() async {
        for text in ["htps://x/mcp", "ftp://x/mcp.json"] {
            var refused = ""
            do { _ = try await connect(text) } catch { refused = "\(error)" }
            let scheme = String(text.prefix { $0 != ":" })
            #expect(refused.contains("the scheme is \"\(scheme)\", expected http://, https:// or unix:"), "\(refused)")
        }
    }

    @Test func namesWhatCannotBeReached() async {
        await #expect(throws: TricornError.self) { try await connect("/nonexistent/program") }
        await #expect(throws: TricornError.self) { try await connect("http://127.0.0.1:9/mcp") }
        await #expect(throws: TricornError.self) { try await connect("'unbalanced") }
        await #expect(throws: TricornError.self) { try await connect("x", ClientOptions(revision: "1999-01-01")) }
    }

    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func talksHTTP(revision: String) async throws {
        let app = Server("test")
        app.tool("add") { (input: Add) in input.a + input.b }
        let listening = Event()
        let serving = Task {
            try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } }
        }
        let url = try #require(await listening.value())
        let client = try await connect(url, ClientOptions(revision: revision))
        #expect(client.transport == "http")
        #expect(try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self) == 3)
        await client.close()
        app.close()
        try await bounded { try await serving.value }
    }

    @Test func mountsWithoutASocket() async throws {
        let app = Server("test")
        app.tool("add") { (input: Add) in input.a + input.b }
        let endpoint = try app.httpEndpoint()
        func post(_ body: String) -> HTTPRequest {
            HTTPRequest(
                method: "POST",
                headers: [
                    ("host", "127.0.0.1"), ("content-type", "application/json"),
                    ("accept", "application/json, text/event-stream"),
                ], body: Array(body.utf8))
        }
        let opened = try await endpoint.handle(
            post(
                #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            ))
        #expect(opened.status == 200)
        #expect(opened.headers.contains { $0.name.lowercased() == "mcp-session-id" })
        var text = ""
        for try await part in opened.body { text += part }
        #expect(text.contains("\"protocolVersion\":\"2025-11-25\""))
        #expect(try await endpoint.handle(post("{")).status == 400)
        app.close()
    }

    @Test func afterItsEndAClientIsClosed() async throws {
        let client = try await connect(to: Server("test"))
        await client.close()
        for request in [{ try await client.ping() }, { _ = try await client.callTool("any") }] {
            do {
                try await request()
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.kind == "closed", "\(error)")
            }
        }
    }

    @Test func connectsOverTheOldestTransport() async throws {
        let app = Server("test")
        app.tool("hello") { "hello" }
        var options = HTTPOptions(port: 0)
        options.sse = true
        let listening = Event()
        let serving = Task { [options] in
            try await app.serveHTTP(options) { url in Task { await listening.set(url) } }
        }
        let url = try #require(await listening.value()).replacingOccurrences(of: "/mcp", with: "/sse")
        let client = try await connect(.sse(url))
        #expect(try await client.callTool("hello").text == "hello")
        await client.close()
        // Nothing newer is asked for: the endpoint of a newer transport has no such stream.
        await #expect(throws: TricornError.self) {
            try await connect(.sse(url.replacingOccurrences(of: "/sse", with: "/mcp")))
        }
        app.close()
        try await bounded { try await serving.value }
    }

    @Test func mountsTheOldestTransport() async throws {
        let app = Server("test")
        var options = HTTPOptions()
        options.sse = true
        let endpoint = try app.httpEndpoint(options)
        let stream = try await endpoint.handle(
            HTTPRequest(
                method: "GET", target: "/api/sse", headers: [("host", "localhost"), ("accept", "text/event-stream")]))
        #expect(stream.status == 200)
        var events = stream.body.makeAsyncIterator()
        let first = try #require(try await events.next())
        let data = try #require(first.split(whereSeparator: \.isNewline).last { $0.hasPrefix("data:") })
        let query = data.dropFirst(5).trimmingCharacters(in: .whitespaces)
        #expect(query.hasPrefix("?session_id="))
        let posted = try await endpoint.handle(
            HTTPRequest(
                method: "POST", target: "/api/sse\(query)",
                headers: [("host", "localhost"), ("content-type", "application/json")],
                body: Array(
                    #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
                        .utf8)))
        #expect(posted.status == 202)
        let answer = try #require(try await events.next())
        #expect(answer.contains("\"protocolVersion\":\"2024-11-05\""))
        app.close()
    }
}
