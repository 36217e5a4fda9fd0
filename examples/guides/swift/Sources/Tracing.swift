// Tracing: which trace a request belongs to, on both sides.
import Tricorn

private func tell(_ who: String, _ context: some RequestContext) {
    guard let trace = context.traceContext, let parent = trace.traceparent?.split(separator: "-") else {
        return print("\(who): no trace")
    }
    let baggage = trace.baggage.map { "baggage \($0)" } ?? "no baggage"
    print("\(who): span \(parent[2]) of trace \(parent[1]), \(baggage)")
}

private func server() -> Server {
    let app = Server("tracing")
    app.tool("work", "Does something for a trace") { (_: NoArguments, context) in
        tell("tool", context)
        return try await context.sample("And you?", maxTokens: 9).text
    }
    return app
}

enum TracingExample {
    static func main() async throws {
        let app = server()
        var options = ClientOptions()
        options.sampling = { _, context in
            tell("model", context)
            return "Fine."
        }

        // What your tracing system says is current.
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        var traced = options
        traced.traceContext = { TraceContext(traceparent: traceparent, baggage: "tenant=7") }
        let client = try await connect(to: app, traced)
        _ = try await client.callTool("work")
        let other = TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
        _ = try await client.callTool("work", [:], RequestOptions(traceContext: other))
        await client.close()

        let untraced = try await connect(to: app, options)
        print("malformed:")
        _ = try await untraced.callTool("work", [:], RequestOptions(meta: ["traceparent": "who knows"]))
        await untraced.close()
    }
}
