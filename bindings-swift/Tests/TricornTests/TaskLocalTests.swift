import Foundation
import Testing

@testable import Tricorn

private final class Token: Sendable {
    @TaskLocal static var current: Token?
}

/// Says whether the task-local values of a piece of work are still there.
private final class Kept: @unchecked Sendable {
    private let lock = NSLock()
    private weak var weakToken: Token?
    var token: Token? { lock.withLock { weakToken } }

    /// The work, with a token among its task-local values.
    func during<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
        let token = Token()
        lock.withLock { weakToken = token }
        return try await Token.$current.withValue(token) { try await work() }
    }
}

private enum Local { @TaskLocal static var user = "nobody" }

private struct Named: Codable, Sendable { var name: String }

private struct User: Sendable, Equatable { var name: String }

/// Functions that run because of a call see the task-local values of the caller.
@Suite struct TaskLocalTests {
    private let seen = Locked([String]())

    private func note(_ what: String) { seen.with { $0.append("\(what) \(Local.user)") } }

    private func server() -> Server {
        let app = Server(
            "test",
            lifespan: Lifespan { [self] in note("lifespan") }, onError: { _, _ in })
        app.middleware { [self] request, context, next in
            note("middleware")
            return try await next(request, context)
        }
        app.tool("who") { (_: NoArguments, context) in
            await Task.yield()
            return "\(Local.user)"
        }
        app.tool("ask") { [self] (_: NoArguments, context) in
            note("tool")
            let answer = try await context.elicit("?", schema: ["type": "object", "properties": [:]])
            return "\(answer.action.rawValue) \(Local.user)"
        }
        app.tool("slow") { [self] (_: NoArguments, context) in
            try? await Task.sleep(for: .seconds(60))
            note(Task.isCancelled ? "cancelled" : "over")
        }
        app.resource("who://am/i") { Local.user }
        app.prompt("who", complete: ["name": { value, _ in [value + Local.user] }]) { (_: Named, _) in Local.user }
        app.setPrincipal { [self] _ in
            note("principal")
            return nil
        }
        return app
    }

    @Test(arguments: ["2025-11-25", "2026-07-28"]) func callsInMemory(revision: String) async throws {
        var options = ClientOptions(revision: revision)
        options.elicitation = { [self] _, _ in
            note("elicitation")
            return .accept()
        }
        options.middleware = [
            .init { [self] request, context, next in
                note("client")
                return try await next(request, context)
            }
        ]
        let app = server()
        try await bounded { [options, seen] in
            let client = try await Local.$user.withValue("opener") { try await connect(to: app, options) }
            #expect(seen.with { $0 }.contains("lifespan opener"))
            seen.with { $0 = [] }
            try await Local.$user.withValue("ada") {
                expect(try await client.callTool("who").text, "ada")
                expect(try await client.readResource("who://am/i").text, "ada")
                expect(try await client.getPrompt("who", ["name": "x"]).messages[0].text, "ada")
                expect(try await client.callTool("ask").text, "accept ada")
                let completed = try await client.complete(.prompt("who"), argument: "name", value: "x ")
                expect(completed.completion.values, ["x ada"])
            }
            let noted = Set(seen.with { $0 })
            #expect(noted.isSuperset(of: ["client ada", "middleware ada", "tool ada", "elicitation ada"]), "\(noted)")
            #expect(noted.allSatisfy { $0.hasSuffix(" ada") }, "\(noted)")
            expect(try await client.callTool("who").text, "nobody")
            // Each its own, at once.
            let names = (0..<50).map { "user \($0)" }
            let told = try await withThrowingTaskGroup(of: (String, String).self) { group in
                for name in names {
                    group.addTask {
                        try await Local.$user.withValue(name) { (name, try await client.callTool("who").text) }
                    }
                }
                var told: [String: String] = [:]
                for try await (name, text) in group { told[name] = text }
                return told
            }
            #expect(told == Dictionary(uniqueKeysWithValues: names.map { ($0, $0) }))
            // A call that is given up at once, and in the middle.
            for delay in [0, 20] {
                let kept = Kept()
                let slow = Task { try await kept.during { try await client.callTool("slow") } }
                if delay > 0 { try await Task.sleep(for: .milliseconds(delay)) }
                slow.cancel()
                await #expect(throws: CancellationError.self) { _ = try await slow.value }
                #expect(await eventually { kept.token == nil }, "nothing of the task is kept")
            }
            await client.close()
        }
    }

    @Test func requestsOfAMountedServer() async throws {
        let app = Server("test")
        app.tool("who") { (_: NoArguments, context) in
            "\(Local.user) \(context.host(as: User.self)?.name ?? "-") \(context.request?.headers["x-user"] ?? "-")"
        }
        app.middleware { request, context, next in
            #expect(context.host(as: User.self) != nil && context.host(as: Int.self) == nil)
            return try await next(request, context)
        }
        let endpoint = try app.httpEndpoint()
        @Sendable func call(_ name: String) async throws -> String {
            let body: JSONValue = [
                "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": [
                    "name": "who", "arguments": [:],
                    "_meta": [
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": ["name": "t", "version": "1"],
                        "io.modelcontextprotocol/clientCapabilities": [:],
                    ],
                ],
            ]
            let request = HTTPRequest(
                method: "POST", target: "/mcp",
                headers: [
                    ("host", "localhost"), ("content-type", "application/json"),
                    ("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"), ("mcp-name", "who"), ("x-user", name),
                ],
                body: Array(body.description.utf8), host: User(name: name))
            let response = try await endpoint.handle(request)
            var text = ""
            for try await part in response.body { text += part }
            return text
        }
        try await bounded {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for n in 0..<20 {
                    group.addTask {
                        let kept = Kept()
                        let text = try await kept.during {
                            try await Local.$user.withValue("local \(n)") { try await call("user-\(n)") }
                        }
                        #expect(await eventually { kept.token == nil }, "nothing of the request is kept")
                        #expect(text.contains("local \(n) user-\(n) user-\(n)"), "\(text)")
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
