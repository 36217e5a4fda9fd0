import Foundation
import Testing

@testable import Tricorn

private let modern = "2026-07-28"

private struct User: Sendable { var name: String }

private struct Unknown: Error {}

/// A shop that asks, and users who send what they like.
private struct Shop: Sendable {
    let app = Server("shop", tasks: TaskOptions())
    private let endpoint: HTTPEndpoint

    init() throws {
        app.tool("buy") { (_: NoArguments, context) in
            let answer = try await context.elicit("What?", schema: form("a"))
            return "bought \(answer.content?["a"]?.stringValue ?? "")"
        }
        app.tool("bake", taskSupport: .required) { "a cake" }
        endpoint = try app.httpEndpoint()
    }

    private func ask(_ user: String?, _ method: String, _ name: String, _ params: JSONValue) async throws -> JSONValue {
        var params = params
        params["_meta"] = [
            "io.modelcontextprotocol/protocolVersion": .string(modern),
            "io.modelcontextprotocol/clientCapabilities": [
                "elicitation": [:], "extensions": ["io.modelcontextprotocol/tasks": [:]],
            ],
        ]
        let body: JSONValue = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": params]
        var headers = [
            (name: "host", value: "localhost"), (name: "content-type", value: "application/json"),
            (name: "accept", value: "application/json, text/event-stream"),
            (name: "mcp-protocol-version", value: modern), (name: "mcp-method", value: method),
            (name: "mcp-name", value: name),
        ]
        if let user { headers.append((name: "x-user", value: user)) }
        let request = HTTPRequest(method: "POST", headers: headers, body: Array(body.description.utf8))
        return try await bounded { [endpoint] in
            var text = ""
            for try await part in try await endpoint.handle(request).body { text += part }
            let event = text.split(whereSeparator: \.isNewline).last { $0.hasPrefix("data: {") }
            return try JSONValue(parsing: event.map { String($0.dropFirst(6)) } ?? text)
        }
    }

    func call(_ user: String?, _ tool: String, _ more: JSONObject = [:]) async throws -> JSONValue {
        var params: JSONValue = ["name": .string(tool), "arguments": [:]]
        for (name, value) in more { params[name] = value }
        return try await ask(user, "tools/call", tool, params)
    }

    func task(_ user: String?, _ id: String) async throws -> JSONValue {
        try await ask(user, "tasks/get", id, ["taskId": .string(id)])
    }

    /// The same call in its next round.
    func next(_ answer: JSONValue) throws -> JSONObject {
        let result = try #require(answer["result"], "\(answer)")
        var responses: JSONValue = [:]
        for (key, _) in result["inputRequests"]?.objectValue ?? [:] {
            responses[key] = ["action": "accept", "content": ["a": "milk"]]
        }
        return ["requestState": try #require(result["requestState"]), "inputResponses": responses]
    }
}

/// Owners of requests, as a function of the server says: states between rounds, and tasks.
@Suite struct PrincipalTests {
    @Test func statesAndTasksAreTheirUsers() async throws {
        let shop = try Shop()
        shop.app.setPrincipal { context in
            await Task.yield()
            return context.request?.headers["x-user"]
        }
        let next = try shop.next(try await shop.call("ada", "buy"))
        let baking = try await shop.call("ada", "bake")
        let id = try #require(baking["result"]?["taskId"]?.stringValue, "\(baking)")
        for other in ["bob", nil] {
            #expect(try await shop.call(other, "buy", next)["error"]?["code"] == -32602)
            #expect(try await shop.task(other, id)["error"]?["code"] == -32602)
        }
        let bought = try await shop.call("ada", "buy", next)
        #expect("\(bought)".contains("bought milk"))
        #expect(try await shop.task("ada", id)["result"]?["taskId"]?.stringValue == id)
        let nobodys = try shop.next(try await shop.call(nil, "buy"))
        #expect(try await shop.call("ada", "buy", nobodys)["error"]?["code"] == -32602)
        #expect(try await shop.call(nil, "buy", nobodys)["result"] != nil)
        shop.app.close()
    }

    @Test func whatMiddlewareFoundOutIsThere() async throws {
        let shop = try Shop()
        shop.app.setPrincipal { context in context.values[User.self]?.name }
        shop.app.middleware { request, context, next in
            context.values[User.self] = context.request?.headers["x-user"].map(User.init)
            return try await next(request, context)
        }
        let next = try shop.next(try await shop.call("ada", "buy"))
        #expect(try await shop.call("bob", "buy", next)["error"]?["code"] == -32602)
        #expect(try await shop.call("ada", "buy", next)["result"] != nil)
        shop.app.close()
    }

    @Test func whatCannotBeSaidEndsTheRequest() async throws {
        let failed: JSONValue = ["code": -32603, "message": "the server's principal: it failed"]
        let shop = try Shop()
        shop.app.setPrincipal { _ in throw Unknown() }
        #expect(try await shop.call("ada", "buy")["error"] == failed)
        #expect(try await shop.call("ada", "bake")["error"] == failed)
        shop.app.setPrincipal { context in
            try await context.elicit("who?", schema: form("a")).content?["a"]?.stringValue
        }
        let refused = try await shop.call("ada", "buy")["error"]
        #expect(refused?["message"] == "the server's principal: it must not ask the client")
        shop.app.close()
    }
}
