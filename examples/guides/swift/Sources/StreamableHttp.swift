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
        // Port 0 is any free one. As a program of its own: app.run(.http(HTTPOptions(port: 8000))).
        let serving = try await app.start(port: 0)

        for revision in [nil, "2025-11-25"] {
            var options = ClientOptions(revision: revision)
            options.headers = ["X-User": "ada"]
            let client = try await connect(serving.url, options)
            print("\(client.protocolVersion) over \(client.transport), session: \(client.sessionID != nil)")
            print(try await client.callTool("greet").text)
            await client.close()
        }

        await serving.stop()
        do {
            _ = try await connect(serving.url)
        } catch let error as TricornError {
            print("stopped:", error.kind)
        }
    }
}
