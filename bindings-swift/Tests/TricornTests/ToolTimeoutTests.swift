import Foundation
import Testing

@testable import Tricorn

@Suite(.serialized) struct ToolTimeoutTests {
    @Test func aToolThatTakesTooLongIsCancelledAndAnsweredFor() async throws {
        let (ends, ended) = AsyncStream.makeStream(of: String.self)
        let wait: @Sendable (String) async throws -> Void = { name in
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                ended.yield(name)
                throw error
            }
        }
        let app = Server("timeouts", toolTimeout: .milliseconds(200))
        app.tool("slow") {
            try await wait("slow")
            return "late"
        }
        app.tool("hasty", timeout: .milliseconds(50)) {
            try await wait("hasty")
            return "late"
        }
        app.tool("patient", timeout: .zero) {
            try await Task.sleep(for: .milliseconds(400))
            return "done"
        }
        try await withClient(of: app) { client in
            var names = ends.makeAsyncIterator()
            for (name, time) in [("slow", "0.2 s"), ("hasty", "0.05 s")] {
                let result = try await client.callTool(name)
                #expect(result.isError)
                #expect(result.text == "tool \"\(name)\" was cancelled: it took longer than \(time)")
                #expect(await names.next() == name)
            }
            #expect(try await client.callTool("patient").text == "done")
        }
    }

    /// python-sdk 1152, punkpeye/fastmcp 328: a handler that ignores its cancellation runs on, and what it returns goes
    /// nowhere.
    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func anAnswerThatComesLaterGoesNowhere(revision: String) async throws {
        let cancelled = Event(), release = Event(), over = Event(), failed = Event()
        let app = Server("timeouts", onError: { error, _ in Task { await failed.set("\(error)") } })
        app.tool("deaf", timeout: .milliseconds(50)) {
            await withTaskCancellationHandler {
                _ = await release.value()
            } onCancel: {
                Task { await cancelled.set("cancelled") }
            }
            await over.set("over")
            return "late"
        }
        app.tool("quick") { "done" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let result = try await client.callTool("deaf")
            #expect(result.isError)
            #expect(result.text == "tool \"deaf\" was cancelled: it took longer than 0.05 s")
            #expect(try await client.callTool("quick").text == "done")
            #expect(await cancelled.value() == "cancelled")
            await release.set()
            #expect(await over.value() == "over")
            #expect(try await client.callTool("quick").text == "done")
        }
        #expect(await failed.value(within: .milliseconds(50)) == nil)
    }

    /// openclaw 105784: more than any clock holds, and none at all.
    @Test(arguments: [Duration.zero, .milliseconds(Int64(1) << 31), .seconds(Int64(1) << 53)])
    func timesBeyondAllCalls(time: Duration) async throws {
        let app = Server("timeouts", toolTimeout: time)
        app.tool("own", timeout: time) {
            try await Task.sleep(for: .milliseconds(20))
            return "done"
        }
        app.tool("shared") {
            try await Task.sleep(for: .milliseconds(20))
            return "done"
        }
        try await withClient(of: app) { client in
            for name in ["own", "shared"] {
                let result = try await client.callTool(name)
                #expect(result.text == "done")
            }
        }
    }
}
