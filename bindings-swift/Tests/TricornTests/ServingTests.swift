import Foundation
import Testing

@testable import Tricorn

private struct NoStore: Error, Equatable {}

private actor Store {
    private(set) var isOpen = false
    func set(_ open: Bool) { isOpen = open }
}

/// Starting and stopping in one line.
@Suite struct ServingTests {
    private func server(_ lifespan: Lifespan? = nil) -> Server {
        let app = Server("test", lifespan: lifespan, onError: { _, _ in })
        app.tool("add") { (input: Add) in input.a + input.b }
        return app
    }

    @Test func startsAndSaysWhere() async throws {
        let store = Store()
        let app = server(
            Lifespan {
                await store.set(true)
                return store
            } stop: {
                await $0.set(false)
            })
        try await bounded {
            let serving = try await app.start(port: 0, path: "/tools")
            #expect(serving.url.scheme == "http" && serving.url.path == "/tools")
            let client = try await Client.connect(to: serving.url)
            expect(try await client.callTool("add", Add(a: 1, b: 2)).text, "3")
            await client.close()
            #expect(await store.isOpen)
            await serving.stop()
            #expect(await !store.isOpen, "stop waits for the lifespan")
            await serving.stop()
            try await serving.wait()
            await #expect(throws: TricornError.self) { try await Client.connect(to: serving.url) }
            // Again, and twice at once.
            let one = try await app.start(port: 0), two = try await app.start(HTTPOptions(port: 0))
            #expect(one.url != two.url)
            await one.stop()
            let other = try await Client.connect(to: two.url)
            expect(try await other.callTool("add", Add(a: 1, b: 2)).text, "3")
            await other.close()
            app.close()
            try await two.wait()
        }
    }

    @Test func theLifespanMayStopItsOwnServing() async throws {
        let held = Locked<Serving?>(nil)
        let store = Store()
        let app = server(
            Lifespan {
                await store.set(true)
                return store
            } stop: {
                await held.with { $0 }?.stop()
                await $0.set(false)
            })
        try await bounded {
            let serving = try await app.start(port: 0)
            held.with { $0 = serving }
            await serving.stop()
            #expect(await !store.isOpen)
        }
    }

    @Test func severalStartAtOnce() async throws {
        let app = server()
        try await bounded {
            let all = try await withThrowingTaskGroup(of: Serving.self) { group in
                for _ in 0..<8 { group.addTask { try await app.start(port: 0) } }
                var all: [Serving] = []
                for try await serving in group { all.append(serving) }
                return all
            }
            #expect(Set(all.map(\.url)).count == 8)
            await all[3].stop()
            for (n, serving) in all.enumerated() where n != 3 {
                let client = try await connect(serving.url)
                await client.close()
                await serving.stop()
            }
        }
    }

    @Test func httpIsAskedForInTheSameWaysAsInTheOtherLanguages() throws {
        let asked: [(line: String, host: String?, port: Int?)] = [
            ("--http", nil, nil), ("--http --verbose", nil, nil), ("--http=", nil, nil), ("-v --http 9000", nil, 9000),
            ("--http=9000", nil, 9000), ("--http :9000", nil, 9000), ("--http 0.0.0.0:0", "0.0.0.0", 0),
            ("--http [::1]:80", "[::1]", 80), ("--http unix:/run/mcp.sock", "unix:/run/mcp.sock", nil),
            ("--http=unix:/run/mcp.sock", "unix:/run/mcp.sock", nil),
        ]
        for (line, host, port) in asked {
            let words = line.split(separator: " ").map(String.init)
            #expect(try Server.Transport.asked(words) == .http(HTTPOptions(host: host, port: port)), "\(line)")
        }
        #expect(try Server.Transport.asked(["-v", "http"]) == .stdio)
        for bad in [["--http", "here"], ["--http=h:99999"], ["--http", "localhost:"]] {
            #expect(throws: TricornError.self) { try Server.Transport.asked(bad) }
        }
    }

    @Test func throwsWhatKeepsItFromServing() async throws {
        let app = server()
        try await bounded {
            let first = try await app.start(port: 0)
            let busy = await failure { _ = try await app.start(port: first.url.port) }
            #expect(busy.contains("cannot listen on"), "\(busy)")
            await first.stop()
        }
        let wrong = Server("test")
        wrong.tool("bad") { (n: Int) in n }
        #expect(await failure { _ = try await wrong.start(port: 0) }.contains(#"tool "bad""#))
        #expect(await failure { _ = try await app.start(port: 99_999) }.contains("port"))
        #expect(await !failure { _ = try await app.start(host: "no such host", port: 0) }.isEmpty)
        let unable = server(Lifespan { () async throws -> Store in throw NoStore() })
        await #expect(throws: NoStore()) { try await bounded { _ = try await unable.start(port: 0) } }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await app.start(port: 0)
        }
        await #expect(throws: CancellationError.self) { try await bounded { try await cancelled.value } }
    }

    private func failure(_ body: @escaping @Sendable () async throws -> Void) async -> String {
        do { try await bounded(body) } catch { return "\(error)" }
        return ""
    }

    /// A type with a method of that name.
    @MainActor private final class Model {
        var client: Client?
        func connect(_ app: Server) async throws { client = try await Client.connect(to: app) }
    }

    @Test func connectsInsideOfATypeThatConnects() async throws {
        let model = await Model()
        try await model.connect(server())
        #expect(try await model.client?.callTool("add", Add(a: 1, b: 2)).text == "3")
        await model.client?.close()
        await #expect(throws: TricornError.self) { try await Client.connect(to: "http://127.0.0.1:1/mcp") }
        await #expect(throws: TricornError.self) { try await Client.connect(to: .command("/no/such/program")) }
    }

    // MARK: - errors

    @Test func errorsHaveTextsForPeople() async throws {
        do {
            _ = try await connect("http://127.0.0.1:1/mcp")
            Issue.record("connected")
        } catch {
            #expect(error.localizedDescription == "\(error)" && error.localizedDescription.contains("127.0.0.1"))
        }
        let errors: [any Error] = [
            TricornError.rpc(code: -32601, message: "no such tool"), TricornError.timeout("no answer within 60 s"),
            TricornError.misuse("arguments are an object; wrap it in a struct"), ToolError("no such city"),
        ]
        for error in errors {
            #expect(error.localizedDescription == "\(error)")
            #expect((error as NSError).localizedDescription == "\(error)")
        }
        #expect((errors[2] as? any LocalizedError)?.recoverySuggestion == "wrap it in a struct")
        #expect((errors[1] as? any LocalizedError)?.recoverySuggestion == nil)
        let result = await Task { () throws -> Void in throw errors[0] }.result
        #expect(throws: TricornError.self) { try result.get() }
        guard case .failure(let failure) = result else { return }
        #expect(failure.localizedDescription.contains("no such tool"))
        let input = InputRequired(["a": Question.elicit("?", schema: ["type": "object", "properties": [:]])])
        #expect(input.localizedDescription == "\(input)")
    }

    // MARK: - progress

    @Test(arguments: ["2025-11-25", "2026-07-28"]) func progressComesInOrderAndThenTheResult(revision: String)
        async throws
    {
        let app = server()
        app.tool("count") { (_: NoArguments, context) in
            for n in 1...20 { context.progress(Double(n), total: 20, message: "step \(n)") }
            return "done"
        }
        app.tool("fail") { (_: NoArguments, context) -> String in
            context.progress(1)
            throw TricornError.rpc(code: -31000, message: "no")
        }
        let stopped = Event()
        app.tool("wait") { (_: NoArguments, context) in
            context.progress(1)
            try? await Task.sleep(for: .seconds(60))
            await stopped.set(Task.isCancelled ? "cancelled" : "over")
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let told = try await bounded { @MainActor in
                var told: [String] = []
                for try await event in client.toolEvents("count") {
                    MainActor.assertIsolated()
                    switch event {
                    case .progress(let report): told.append("\(Int(report.progress))")
                    case .result(let result): told.append(result.text)
                    }
                }
                return told
            }
            #expect(told == (1...20).map { "\($0)" } + ["done"])
            var failed: [Double] = []
            do {
                for try await event in client.toolEvents("fail") {
                    if case .progress(let report) = event { failed.append(report.progress) }
                }
                Issue.record("no error")
            } catch {
                #expect((error as? TricornError)?.code == -31000)
            }
            #expect(failed.count <= 1)
            for try await _ in client.toolEvents("wait") { break }
            #expect(await stopped.value() == "cancelled")
            for try await event in client.requestEvents("tools/list") {
                if case .result(let list) = event { #expect(list["tools"]?.arrayValue?.count == 4) }
            }
        }
    }

    // MARK: - the server of a handler

    @Test func handlersFindTheirServer() async throws {
        let app = server()
        app.tool("grow") { (_: NoArguments, context) in
            context.server?.tool("new") { "new" }
            return context.server?.removeTool("add") ?? false
        }
        try await withClient(of: app) { client in
            expect(try await client.callTool("grow").text, "true")
            expect(try await client.listTools().map(\.name), ["grow", "new"])
        }
    }

}
