// HTTP+SSE: the oldest transport, for clients and servers that have nothing newer.
import Foundation
import Tricorn

private func server() -> Server {
    let app = Server("old")
    app.tool("greet", "Greet") { "hello" }
    return app
}

enum HttpSseExample {
    static func main() async throws {
        let app = server()
        var http = HTTPOptions(port: 0)
        http.sse = true
        let (urls, listening) = AsyncStream.makeStream(of: String.self)
        let serving = Task { [http] in try await app.serveHTTP(http) { listening.yield($0) } }
        var url = urls.makeAsyncIterator()
        guard let url = await url.next() else { return }

        let client = try await connect(url)
        print("/mcp: \(client.protocolVersion)")
        await client.close()

        // A client finds out by itself that there is nothing newer at a URL.
        let older = try await connect(url.replacingOccurrences(of: "/mcp", with: "/sse"))
        print("/sse: \(older.protocolVersion), \(try await older.callTool("greet").text)")
        await older.close()

        app.close()
        try await serving.value
    }
}
