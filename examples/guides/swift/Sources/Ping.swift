// Ping: whether the other side is still there.
import Tricorn

private func server() -> Server {
    let app = Server("ping")
    app.tool("ask_back", "Ping the client") { (_: NoArguments, context) in
        _ = try await context.ask("ping", nil, RequestOptions(timeout: .seconds(5)))
        return "the client is there"
    }
    return app
}

enum PingExample {
    static func main() async throws {
        let app = server()

        let older = try await connect(to: app, ClientOptions(revision: .v20251125))
        try await older.ping(RequestOptions(timeout: .seconds(5)))
        print("\(older.protocolVersion): the server is there")
        print("\(older.protocolVersion):", try await older.callTool("ask_back").text)
        await older.close()

        let client = try await connect(to: app)
        try await client.ping(RequestOptions(timeout: .seconds(5)))
        print("\(client.protocolVersion): the server is there")
        await client.close()
    }
}
