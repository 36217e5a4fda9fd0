import Foundation
import Testing

@testable import Tricorn

@Suite struct CancellationTests {
    /// A server whose tool `wait` says when it has begun and how it ended.
    private func waiting(_ started: Event, _ ended: Event) -> Server {
        let app = Server("test", onError: { _, _ in })
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

    @Test func zeroIsNoLimit() async throws {
        let app = Server("test")
        app.tool("nap") { () async throws -> String in
            try await Task.sleep(for: .milliseconds(300))
            return "rested"
        }
        var options = ClientOptions()
        options.requestTimeout = .milliseconds(50)
        try await withClient(of: app, options) { client in
            await #expect(throws: TricornError.self) { try await client.callTool("nap") }
            let unlimited = RequestOptions(timeout: .zero, maxTimeout: .zero)
            let result = try await client.callTool("nap", [:], unlimited)
            #expect(result.text == "rested")
        }
        options.requestTimeout = .zero
        try await withClient(of: app, options) { client in
            let result = try await client.callTool("nap")
            #expect(result.text == "rested")
        }
    }

    @Test func theEndOfAConnectionIsTold() async throws {
        let closed = Event(), unheard = Event()
        var options = ClientOptions()
        options.onClose = { reason in Task { await closed.set(reason) } }
        let app = Server("test")
        let client = try await connect(to: app, options)
        options.onClose = { reason in Task { await unheard.set(reason) } }
        let other = try await connect(to: app, options)
        await other.close()
        app.close()
        #expect(await closed.value()?.isEmpty == false)
        #expect(await unheard.value(within: .milliseconds(50)) == nil)
        await client.close()
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

    @Test func whatAHandlerDoesWhenItIsCancelledMayWaitForTheClient() async throws {
        let started = Event(), asked = Event(), client = Locked<Client?>(nil)
        let app = Server("test", onError: { _, _ in })
        app.tool("wait") { () async throws -> String in
            try await withTaskCancellationHandler {
                await started.set()
                try await Task.sleep(for: .seconds(60))
                return "slept"
            } onCancel: {
                let answered = DispatchSemaphore(value: 0)
                Task {
                    try await client.with { $0 }?.ping()
                    answered.signal()
                }
                let outcome = answered.wait(timeout: .now() + 5)
                Task { await asked.set(outcome == .success ? "answered" : "stuck") }
            }
        }
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { connected in
            client.with { $0 = connected }
            let call = Task { try await connected.callTool("wait") }
            #expect(await started.value() != nil)
            call.cancel()
            #expect(await asked.value() == "answered")
            _ = try? await call.value
            client.with { $0 = nil }
        }
    }

    @Test func closingGoesOnInATaskThatIsCancelled() async throws {
        let app = Server("test")
        app.tool("add") { (input: Add, _) in input.a + input.b }
        let client = try await connect(to: app), group = try await connectMany(to: ["one": app])
        #expect(app.metrics["connections"] == 2)
        let closing = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await client.close()
            await group.close()
        }
        await closing.value
        for client in [client, try #require(group.client("one"))] {
            do {
                _ = try await bounded { try await client.listTools() }
                Issue.record("answered")
            } catch let error as TricornError {
                #expect(error.kind == "closed", "\(error)")
            }
        }
        #expect(await eventually { app.metrics["connections"] == 0 })
    }

    @Test func aStormOfCancelledCallsLeavesNothingBehind() async throws {
        let app = Server("test", onError: { _, _ in })
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
