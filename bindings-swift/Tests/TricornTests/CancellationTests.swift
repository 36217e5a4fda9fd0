import Foundation
import Testing

@testable import Tricorn

@Suite struct CancellationTests {
    /// A server whose tool `wait` says when it has begun and how it ended.
    private func waiting(_ started: Event, _ ended: Event) -> Server {
        let app = Server("test", log: { _ in })
        app.tool("wait") { (_: NoArguments, context) in
            await started.set()
            do {
                try await Task.sleep(for: .seconds(60))
                await ended.set("slept")
            } catch {
                await ended.set("\(type(of: error)) \(context.isCancelled)")
                throw error
            }
            return "done"
        }
        return app
    }

    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func cancellingATaskCancelsTheHandler(revision: String) async throws {
        let started = Event(), ended = Event()
        try await withClient(of: waiting(started, ended), ClientOptions(revision: revision)) { client in
            let call = Task { try await client.callTool("wait") }
            #expect(await started.value() != nil)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(await ended.value() == "CancellationError true")
            // The connection goes on.
            let tools = try await client.listTools()
            #expect(tools.count == 1)
        }
    }

    @Test func aTaskCancelledBeforehandSendsNothing() async throws {
        let started = Event()
        try await withClient(of: waiting(started, Event())) { client in
            let call = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await client.callTool("wait")
            }
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(client.metrics["awaited"] == 0)
        }
    }

    @Test func aTimeoutCancelsTheHandler() async throws {
        let started = Event(), ended = Event()
        try await withClient(of: waiting(started, ended)) { client in
            do {
                _ = try await client.callTool("wait", [:], RequestOptions(timeout: .milliseconds(200)))
                Issue.record("answered")
            } catch TricornError.timeout {}
            #expect(await ended.value() == "CancellationError true")
        }
    }

    @Test func closingTheServerCancelsHandlers() async throws {
        let started = Event(), ended = Event()
        let app = waiting(started, ended)
        let client = try await connect(to: app)
        let call = Task { try await client.callTool("wait") }
        #expect(await started.value() != nil)
        app.close()
        #expect(await ended.value() == "CancellationError true")
        await #expect(throws: (any Error).self) { try await bounded { try await call.value } }
        await client.close()
    }

    @Test func closingTheClientCancelsHandlersAndFailsItsCalls() async throws {
        let started = Event(), ended = Event()
        let client = try await connect(to: waiting(started, ended))
        let call = Task { try await client.callTool("wait") }
        #expect(await started.value() != nil)
        await client.close()
        do {
            _ = try await bounded { try await call.value }
            Issue.record("answered")
        } catch let error as TricornError {
            #expect(error.kind == "closed")
        }
        #expect(await ended.value() == "CancellationError true")
    }

    @Test func lettingAClientGoClosesIt() async throws {
        let started = Event(), ended = Event()
        let app = waiting(started, ended)
        do {
            let client = try await connect(to: app)
            let call = Task { [weak client] in try await client?.callTool("wait") }
            #expect(await started.value() != nil)
            call.cancel()
            _ = try? await call.value
        }
        #expect(await ended.value() == "CancellationError true")
        #expect(await eventually { app.metrics["connections"] == 0 })
    }

    @Test func aStormOfCancelledCallsLeavesNothingBehind() async throws {
        let app = Server("test", log: { _ in })
        let running = Locked(0)
        app.tool("nap") { (input: Wait, _) in
            running.with { $0 += 1 }
            defer { running.with { $0 -= 1 } }
            try await Task.sleep(for: .milliseconds(input.ms))
            return "slept"
        }
        try await withClient(of: app) { client in
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<16 {
                    group.addTask {
                        for round in 0..<50 {
                            let call = Task { try await client.callTool("nap", Wait(ms: round % 3)) }
                            if (worker + round) % 2 == 0 { call.cancel() }
                            _ = try? await call.value
                        }
                    }
                }
            }
            let last = try await client.callTool("nap", Wait(ms: 0))
            #expect(last.text == "slept")
            #expect(await eventually { client.metrics["awaited"] == 0 && running.with { $0 } == 0 })
        }
    }
}
