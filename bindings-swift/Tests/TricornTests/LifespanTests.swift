import Foundation
import Testing

@testable import Tricorn

private struct Pool: Sendable, Equatable { var name: String }

private struct NoDatabase: Error, Equatable { var host: String }

/// Resources of a server from its first use to its last.
@Suite struct LifespanTests {
    private func server(_ log: Locked<[String]>) -> Server {
        let lifespan = Lifespan {
            log.with { $0.append("start") }
            return Pool(name: "main")
        } stop: { (pool: Pool) in
            log.with { $0.append("stop \(pool.name)") }
        }
        let app = Server("test", lifespan: lifespan)
        app.tool("pool") { (_: NoArguments, context) in
            log.with { $0.append("call") }
            return try context.state(Pool.self).name
        }
        return app
    }

    @Test(arguments: eras) func startsWithTheFirstUseAndStopsWithTheLast(revision: String) async throws {
        let log = Locked([String]()), app = server(log)
        #expect(log.with { $0.isEmpty })
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            try await withClient(of: app) { other in
                expect(try await other.callTool("pool").text, "main")
            }
            expect(try await client.callTool("pool").text, "main")
            #expect(log.with { $0 } == ["start", "call", "call"])
        }
        #expect(await eventually { log.with { $0.last } == "stop main" })
        try await withClient(of: app, ClientOptions(revision: revision)) { _ in }
        #expect(await eventually { log.with { $0.count } == 6 })
        #expect(log.with { $0 } == ["start", "call", "call", "stop main", "start", "stop main"])
    }

    @Test func aStartThatFailsIsTheErrorOfTheUse() async throws {
        let fails = Locked(true)
        let lifespan = Lifespan { () -> Pool in
            if fails.with({ $0 }) { throw NoDatabase(host: "db") }
            return Pool(name: "late")
        }
        let app = Server("test", lifespan: lifespan)
        app.tool("pool") { (_: NoArguments, context) in try context.state(Pool.self).name }
        await #expect(throws: NoDatabase(host: "db")) { try await connect(to: app) }
        await #expect(throws: NoDatabase(host: "db")) { try await bounded { try await app.serveHTTP(port: 0) } }
        fails.with { $0 = false }
        try await withClient(of: app) { client in expect(try await client.callTool("pool").text, "late") }
    }

    @Test func cancellingTheServerStops() async throws {
        let log = Locked([String]()), app = server(log), listening = Event()
        let serving = Task {
            try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } }
        }
        #expect(await listening.value() != nil)
        serving.cancel()
        await #expect(throws: CancellationError.self) { try await serving.value }
        #expect(log.with { $0 } == ["start", "stop main"])
    }

    @Test func aServerThatIsLetGoStops() async throws {
        let log = Locked([String]())
        do {
            let client = try await connect(to: server(log))
            _ = try await client.callTool("pool")
        }
        #expect(await eventually { log.with { $0.last } == "stop main" })
    }

    @Test func stateMayBeGiven() async throws {
        let app = Server("test", state: Pool(name: "given"))
        app.tool("pool") { (_: NoArguments, context) in try context.state(Pool.self).name }
        app.tool("wrong") { (_: NoArguments, context) in
            do { return "\(try context.state(Int.self))" } catch TricornError.misuse(let message) { return message }
        }
        let seen = Locked("")
        app.middleware { request, context, next in
            seen.with { $0 = (try? context.state(Pool.self).name) ?? "none" }
            return try await next(request, context)
        }
        try await withClient(of: app) { client in
            expect(try await client.callTool("pool").text, "given")
            #expect(seen.with { $0 } == "given")
            expect(try await client.callTool("wrong").text, "the server's state is Pool, not Int")
        }
    }
}
