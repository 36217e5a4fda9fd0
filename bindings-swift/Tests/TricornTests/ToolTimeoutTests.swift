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
}
