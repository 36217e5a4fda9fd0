import Foundation
import Testing

@testable import Tricorn

private struct User: Sendable, Equatable { var name: String }

private struct Trouble: Error {}

/// Functions around requests.
@Suite struct MiddlewareTests {
    private func server() -> Server {
        let app = Server("test", onError: { _, _ in })
        app.tool("add") { (input: Add, _) in input.a + input.b }
        app.tool("who") { (_: NoArguments, context) in context.values[User.self]?.name ?? "nobody" }
        app.resource("text://hello") { "hello" }
        return app
    }

    @Test(arguments: eras) func standsAroundEveryRequest(revision: String) async throws {
        let app = server(), seen = Locked([String]())
        for name in ["outer", "inner"] {
            app.middleware { request, context, next in
                #expect(context.request?.method == request.method)
                seen.with { $0.append("\(name) \(request.method)") }
                let result = try await next(request, context)
                seen.with { $0.append("\(name) done") }
                return result
            }
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self), 3)
            let wanted = ["outer tools/call", "inner tools/call", "inner done", "outer done"]
            #expect(seen.with { $0 } == wanted)
            seen.with { $0 = [] }
            expect(try await client.readResource("text://hello").text, "hello")
            #expect(seen.with { $0.first } == "outer resources/read")
        }
    }

    @Test func changesParametersAndResults() async throws {
        let app = server()
        app.middleware { request, context, next in
            var request = request
            if request.params["name"] == "plus" { request.params["name"] = "add" }
            if request.params["name"] == "add" {
                request.params["arguments"] = ["a": 20, "b": 2]
                var result = try await next(request, context)
                result["_meta"] = ["com.example/changed": true]
                return result
            }
            if request.method == "resources/read" {
                return ["contents": [["uri": "text://hello", "text": "from memory"]]]
            }
            return try await next(request, context)
        }
        try await withClient(of: app) { client in
            let result = try await client.callTool("add", ["a": 1, "b": 2])
            #expect(try result.decode(as: Int.self) == 22)
            #expect(result.meta?["com.example/changed"] == true)
            expect(try await client.readResource("text://hello").text, "from memory")
        }
    }

    @Test func triesAgain() async throws {
        let app = Server("test", onError: { _, _ in }), calls = Locked(0)
        app.resource("flaky://x") { () -> String in
            let call = calls.with {
                $0 += 1
                return $0
            }
            if call < 3 { throw TricornError.rpc(code: -32099, message: "busy") }
            return "after \(call)"
        }
        app.middleware { request, context, next in
            while true {
                do {
                    return try await next(request, context)
                } catch TricornError.rpc(-32099, _, _) {}
            }
        }
        try await withClient(of: app) { client in
            expect(try await client.readResource("flaky://x").text, "after 3")
        }
    }

    @Test func sharesValuesWithHandlers() async throws {
        let app = server()
        app.middleware { request, context, next in
            context.values[User.self] = User(name: "ada")
            context.values[Int.self] = 1
            context.values[Int.self] = nil
            return try await next(request, context)
        }
        app.middleware { request, context, next in
            #expect(context.values[User.self] == User(name: "ada"))
            #expect(context.values[Int.self] == nil)
            return try await next(request, context)
        }
        try await withClient(of: app) { client in
            expect(try await client.callTool("who").text, "ada")
        }
        try await withClient(of: server()) { client in
            expect(try await client.callTool("who").text, "nobody")
        }
    }

    @Test(arguments: eras) func errorsAreThoseOfHandlers(revision: String) async throws {
        let app = server(), heard = Locked([String]())
        let strict = Server("test", onError: { error, name in heard.with { $0.append("\(type(of: error)) \(name)") } })
        for server in [app, strict] {
            server.resource("a://{name}") { (variables: [String: String]) -> String in
                throw TricornError.resourceNotFound("a://\(variables["name"] ?? "")")
            }
            server.middleware { request, context, next in
                switch request.params["uri"] {
                case "a://rpc": throw TricornError.rpc(code: 7, message: "not you", data: ["n": 1])
                case "a://told": throw ToolError("out of paper")
                case "a://hidden": throw Trouble()
                case "a://wrong": return "no object"
                default: return try await next(request, context)
                }
            }
        }
        try await withClient(of: strict, ClientOptions(revision: revision)) { client in
            await expectCode(7, containing: "not you") { _ = try await client.readResource("a://rpc") }
            await expectCode(-32603, containing: "out of paper") { _ = try await client.readResource("a://told") }
            await expectCode(-32603, containing: "Trouble") { _ = try await client.readResource("a://hidden") }
            await expectCode(-32603, containing: "no object") { _ = try await client.readResource("a://wrong") }
            let missing = revision == "2025-11-25" ? -32002 : -32602
            await expectCode(missing, containing: "a://none") { _ = try await client.readResource("a://none") }
        }
        #expect(heard.with { $0 } == ["Trouble middleware"])
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            await expectCode(-32602, containing: "none") { _ = try await client.callTool("none") }
            expect(try await client.callTool("add", ["a": "x"]).isError, true)
        }
    }

    @Test func cancellingReachesAllOfIt() async throws {
        let running = Event(), outer = Event(), inner = Event()
        let app = Server("test", onError: { _, _ in })
        app.tool("wait") { (_: NoArguments, _) in
            await running.set()
            do { try await Task.sleep(for: .seconds(60)) } catch {
                await inner.set("\(type(of: error))")
                throw error
            }
        }
        app.middleware { request, context, next in
            do { return try await next(request, context) } catch {
                await outer.set("\(type(of: error)) \(context.isCancelled)")
                throw error
            }
        }
        try await withClient(of: app) { client in
            let call = Task { try await client.callTool("wait") }
            #expect(await running.value() != nil)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(await outer.value() == "CancellationError true")
            #expect(await inner.value() == "CancellationError")
        }
    }

    @Test func whatIsNotWaitedForIsCancelled() async throws {
        let running = Event(), ended = Event()
        let app = Server("test", onError: { _, _ in })
        app.tool("wait") { (_: NoArguments, _) in
            await running.set()
            do { try await Task.sleep(for: .seconds(60)) } catch {
                await ended.set("\(type(of: error))")
                throw error
            }
        }
        app.middleware { request, context, next in
            guard request.method == "tools/call" else { return try await next(request, context) }
            return try await withThrowingTaskGroup(of: JSONValue?.self) { group in
                group.addTask { try await next(request, context) }
                group.addTask {
                    _ = await running.value()
                    return nil
                }
                defer { group.cancelAll() }
                return try await group.next().flatMap { $0 } ?? ["content": [["type": "text", "text": "too slow"]]]
            }
        }
        try await withClient(of: app) { client in
            expect(try await bounded { try await client.callTool("wait").text }, "too slow")
            #expect(await ended.value() == "CancellationError")
        }
    }

    // MARK: - clients

    @Test(arguments: eras) func clientsHaveItToo(revision: String) async throws {
        let seen = Locked([String]())
        var options = ClientOptions(revision: revision)
        options.middleware = [
            .timing,
            .init { request, context, next in
                context.values[User.self] = User(name: request.method)
                return try await next(request, context)
            },
            .init { request, context, next in
                seen.with { $0.append(context.values[User.self]?.name ?? "") }
                var request = request
                request.params["arguments"] = ["a": 40, "b": 2]
                return try await next(request, context)
            },
        ]
        try await withClient(of: server(), options) { client in
            expect(try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self), 42)
            #expect(seen.with { $0.contains("tools/call") })
            #expect(client.metrics["timing"]?["tools/call"]?["count"] == 1)
        }
    }

    @Test func errorsKeepTheirKindThroughAClients() async throws {
        let app = server()
        app.tool("wait") { (_: NoArguments, _) in try await Task.sleep(for: .seconds(60)) }
        var options = ClientOptions()
        options.middleware = [.init { request, context, next in try await next(request, context) }]
        try await withClient(of: app, options) { client in
            do {
                _ = try await client.callTool("wait", [:], .init(timeout: .milliseconds(50)))
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.kind == "timeout", "\(error)")
            }
            await expectCode(-32602, containing: "none") { _ = try await client.callTool("none") }
        }
    }

    @Test func whatAClientsThrowsIsTheErrorOfTheRequest() async throws {
        var options = ClientOptions()
        options.middleware = [
            .init { request, context, next in try await next(request, context) },
            .init { request, context, next in
                switch request.params["name"] {
                case "trouble": throw Trouble()
                case "tool": throw ToolError("not now")
                case "rpc": throw TricornError.rpc(code: -32001, message: "who?", data: ["a": 1])
                case "closed": throw TricornError.closed("by me")
                default: return try await next(request, context)
                }
            },
        ]
        try await withClient(of: server(), options) { client in
            await #expect(throws: Trouble.self) { try await client.callTool("trouble") }
            await #expect(throws: ToolError("not now")) { try await client.callTool("tool") }
            await #expect(throws: TricornError.rpc(code: -32001, message: "who?", data: ["a": 1])) {
                try await client.callTool("rpc")
            }
            await #expect(throws: TricornError.closed("by me")) { try await client.callTool("closed") }
            expect(try await client.callTool("who").text, "nobody")
        }
    }

    @Test func errorsThatNobodyTakesAreBounded() {
        let thrown = ThrownErrors()
        let first = thrown.standIn(for: Trouble())
        let others = (1...256).map { _ in thrown.standIn(for: Trouble()) }
        #expect(thrown.own(first) is TricornError)
        #expect(others.allSatisfy { thrown.own($0) is Trouble })
        #expect(others.allSatisfy { thrown.own($0) is TricornError })
    }

    @Test func clientsAnswerWithoutAsking() async throws {
        var options = ClientOptions()
        options.middleware = [
            .init { request, context, next in
                guard request.method == "resources/read" else { return try await next(request, context) }
                return ["contents": [["uri": "text://hello", "text": "cached"]]]
            }
        ]
        try await withClient(of: server(), options) { client in
            expect(try await client.readResource("text://hello").text, "cached")
        }
    }

    // MARK: - built in

    @Test(arguments: eras) func logsEveryRequest(revision: String) async throws {
        let app = server(), heard = Locked([RequestRecord]())
        app.middleware(.logging { record in heard.with { $0.append(record) } })
        var options = ClientOptions(revision: revision)
        let sent = Locked([RequestRecord]())
        options.middleware = [.logging { record in sent.with { $0.append(record) } }]
        try await withClient(of: app, options) { client in
            _ = try await client.callTool("who")
            await #expect(throws: TricornError.self) { try await client.readResource("no://where") }
            #expect(await eventually { heard.with { $0.contains { $0.name == "no://where" } } })
            #expect(await eventually { sent.with { $0.contains { $0.name == "no://where" } } })
        }
        for records in [heard.with { $0 }, sent.with { $0 }] {
            let call = try #require(records.first { $0.method == "tools/call" })
            #expect(call.name == "who" && call.error == nil && !call.isCancelled && call.duration > .zero)
            #expect(call.description.hasPrefix("tools/call who: "))
            #expect(records.first { $0.method == "resources/read" }?.error != nil)
        }
    }

    @Test func countsAndLimits() async throws {
        let app = server()
        app.middleware(.timing)
        app.middleware(.rateLimit(perSecond: 0.001, burst: 1))
        app.middleware(.concurrencyLimit(1, maxWaiting: 0))
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            expect(try await client.callTool("who").text, "nobody")
            do {
                _ = try await client.callTool("who")
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.code == -32000 && (error.data?["retryAfter"]?.doubleValue ?? 0) > 0, "\(error)")
            }
            #expect(app.metrics["timing"]?["tools/call"]?["count"] == 2)
            #expect(app.metrics["timing"]?["tools/call"]?["failed"] == 1)
        }
        for limit in [Middleware<Context>.rateLimit(perSecond: 0), .concurrencyLimit(0)] {
            let wrong = server()
            wrong.middleware(limit)
            await #expect(throws: TricornError.self) { try await connect(to: wrong) }
        }
        for rate in [Double.infinity, .nan] {
            let wrong = server()
            wrong.middleware(.rateLimit(perSecond: rate))
            do {
                _ = try await connect(to: wrong)
                Issue.record("no error")
            } catch let error as TricornError {
                #expect("\(error)".contains("perSecond") && "\(error)".contains("\(rate)"), "\(error)")
            }
        }
        var options = ClientOptions()
        options.middleware = [.concurrencyLimit(0)]
        await #expect(throws: TricornError.self) { try await connect(to: server(), options) }
    }
}
