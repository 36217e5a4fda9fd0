// HTTP+SSE: the oldest transport, for clients and servers that have nothing newer.
import Foundation
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
        let serving = try await app.start(http)

        let client = try await connect(serving.url)
        print("/mcp: \(client.protocolVersion)")
        await client.close()

        // A client finds out by itself that there is nothing newer at a URL.
        let older = try await connect(serving.url.deletingLastPathComponent().appending(path: "sse"))
        print("/sse: \(older.protocolVersion), \(try await older.callTool("greet").text)")
        await older.close()

        await serving.stop()
    }
}
