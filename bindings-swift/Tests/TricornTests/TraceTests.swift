import Foundation
import Testing

import Tricorn

private let revisions = ["2024-11-05", "2025-11-25", "2026-07-28"]

private func trace(_ number: Int) -> TraceContext {
    let digits = String(number)
    let parent = String(repeating: "0", count: 16 - digits.count) + digits
    return TraceContext(
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-\(parent)-01", tracestate: "vendor=1",
        baggage: "tenant=a%20b")
}

private func seen(_ trace: TraceContext?) -> String {
    guard let trace else { return "nothing" }
    return [trace.traceparent, trace.tracestate, trace.baggage].map { $0 ?? "-" }.joined(separator: " ")
}

private func filled() -> Server {
    let app = Server("s")
    app.tool("seen") { (_: NoArguments, context) in seen(context.traceContext) }
    app.tool("meta") { (_: NoArguments, context) in context.request?.meta?.description ?? "{}" }
    app.tool("asks") { (_: NoArguments, context) in
        let first = try await context.sample("first?", maxTokens: 9).text
        let second = try await context.sample("second?", maxTokens: 9).text
        return "\(first) | \(second)"
    }
    return app
}

private func options(_ revision: String) -> ClientOptions {
    var options = ClientOptions(revision: revision)
    options.sampling = { _, context in CreateMessageResult(text: seen(context.traceContext), model: "m") }
    return options
}

/// The trace that requests belong to: into handlers, and out with what they ask.
@Suite struct TraceTests {
    @Test(arguments: revisions) func aTraceGoesToTheHandlerAndBackWithItsQuestions(_ revision: String) async throws {
        let count = Counter()
        var options = options(revision)
        options.traceContext = { trace(count.next()) }
        try await withClient(of: filled(), options) { client in
            let first = try await client.callTool("seen").text
            #expect(first == seen(trace(1)))
            // All rounds of one request are of one trace.
            let asked = try await client.callTool("asks").text
            #expect(asked == "\(seen(trace(2))) | \(seen(trace(2)))")
            let third = try await client.callTool("seen").text
            #expect(third == seen(trace(3)))
        }
    }

    @Test(arguments: revisions) func whatIsSaidOfOneRequestComesFirst(_ revision: String) async throws {
        var options = options(revision)
        options.traceContext = { trace(1) }
        try await withClient(of: filled(), options) { client in
            let own = RequestOptions(traceContext: trace(2))
            let said = try await client.callTool("seen", [:], own).text
            #expect(said == seen(trace(2)))
            let traceparent = try #require(trace(3).traceparent)
            let byHand = RequestOptions(meta: ["traceparent": .string(traceparent)], traceContext: trace(2))
            let told = try await client.callTool("seen", [:], byHand).text
            #expect(told == seen(TraceContext(traceparent: traceparent, baggage: "tenant=a%20b")))
        }
        options.traceContext = { nil }
        try await withClient(of: filled(), options) { client in
            let nothing = try await client.callTool("seen").text
            #expect(nothing == "nothing")
        }
    }

    @Test(arguments: revisions) func whatIsMalformedIsAsIfItWereNotThere(_ revision: String) async throws {
        try await withClient(of: filled(), options(revision)) { client in
            for bad: JSONValue in ["junk", 7, nil] {
                let meta: JSONObject = ["traceparent": bad, "tracestate": "a=1"]
                let malformed = try await client.callTool("seen", [:], RequestOptions(meta: meta)).text
                #expect(malformed == "nothing")
                var more = meta
                more["baggage"] = "k=v"
                let told = try await client.callTool("seen", [:], RequestOptions(meta: more)).text
                #expect(told == seen(TraceContext(baggage: "k=v")))
            }
            for (wrong, part) in [
                (TraceContext(traceparent: "junk"), #""traceparent": expected"#),
                (TraceContext(tracestate: "a=1"), #"a "traceparent" beside it"#),
            ] {
                do {
                    _ = try await client.callTool("seen", [:], RequestOptions(traceContext: wrong))
                    Issue.record("no error")
                } catch TricornError.misuse(let message) {
                    #expect(message.contains(part))
                }
            }
        }
    }
}

/// Counts from 1.
private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var last = 0

    func next() -> Int {
        lock.lock()
        defer { lock.unlock() }
        last += 1
        return last
    }
}
