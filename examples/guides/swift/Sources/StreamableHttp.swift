// Streamable HTTP: a server at a URL, for any number of clients of both eras.
import Tricorn

private func server() -> Server {
    let app = Server("http")
    app.tool("greet", "Greet whoever calls") { (_: NoArguments, context) in
        "hello, \(context.request?.headers["x-user"] ?? "stranger")"
    }
    return app
}

enum StreamableHttpExample {
    static func main() async throws {
        let app = server()
        let (urls, listening) = AsyncStream.makeStream(of: String.self)
        // Port 0 is any free one. As a program of its own: app.run(.http(HTTPOptions(port: 8000))).
        let serving = Task { try await app.serveHTTP(port: 0) { listening.yield($0) } }
        var url = urls.makeAsyncIterator()
        guard let url = await url.next() else { return }

        for revision in [nil, "2025-11-25"] {
            var options = ClientOptions(revision: revision)
            options.headers = ["X-User": "ada"]
            let client = try await connect(url, options)
            print("\(client.protocolVersion) over \(client.transport), session: \(client.sessionID != nil)")
            print(try await client.callTool("greet").text)
            await client.close()
        }

        app.close()
        try await serving.value
        do {
            _ = try await connect(url)
        } catch let error as TricornError {
            print("stopped:", error.kind)
        }
    }
}
