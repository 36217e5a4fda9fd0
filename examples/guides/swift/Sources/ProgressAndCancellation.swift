// Progress and cancellation: how far a call is, and that nobody wants its answer any more.
import Foundation
import Tricorn

private struct Print: Codable { var pages: Int }

private func server(_ watching: AsyncStream<String>.Continuation) -> Server {
    // A handler that is cancelled ends with `CancellationError`, which is no news.
    let app = Server("printer", onError: { _, _ in })
    app.tool("print", "Print some pages") { (input: Print, context) in
        for page in stride(from: 1, through: input.pages, by: 1) {
            context.progress(Double(page), total: Double(input.pages), message: "page \(page)")
        }
        return "printed \(input.pages) pages"
    }
    app.tool("watch", "Watch the printer for ever") {
        watching.yield("started")
        do {
            try await Task.sleep(for: .seconds(3600))
        } catch {
            print("server: stopped")
            watching.yield("stopped")
            throw error
        }
        return "never"
    }
    return app
}

enum ProgressAndCancellationExample {
    static func main() async throws {
        let (events, watching) = AsyncStream.makeStream(of: String.self)
        var event = events.makeAsyncIterator()
        let client = try await connect(to: server(watching))

        // Where the loop runs, in order; `RequestOptions(onProgress:)` calls back instead.
        for try await event in client.toolEvents("print", ["pages": 3]) {
            switch event {
            case .progress(let now): print("\(Int(now.progress)) of \(Int(now.total ?? 0)): \(now.message ?? "")")
            case .result(let result): print("print:", result.text)
            }
        }

        let call = Task { try await client.callTool("watch") }
        _ = await event.next()  // started
        call.cancel()
        _ = await event.next()  // stopped
        do {
            print("call:", try await call.value.text)
        } catch is CancellationError {
            print("call: cancelled")
        }

        do {
            _ = try await client.callTool("watch", [:], RequestOptions(timeout: .milliseconds(200)))
        } catch TricornError.timeout {
            for _ in 1...2 { _ = await event.next() }  // started, stopped
            print("call: no answer in time")
        }
        await client.close()
    }
}
