// Servers that change while they run: for everybody, for one client, and by themselves.
import Foundation
import Tricorn

private func server() -> Server {
    let app = Server("dynamic")
    app.tool("unlock", "Show the vault to this client, and give it a key") { (_: NoArguments, context) in
        try context.setEnabled(.tool, named: "vault", to: true)
        try context.addToSession { $0.tool("key", "What this client alone has") { "brass" } }
        return "open"
    }
    app.tool("vault", "What is in the vault", enabled: false) { "gold" }
    app.resource("note://first", value: "1")
    app.prompt("first", "The first prompt") { "1" }
    return app
}

enum DynamicServersExample {
    static func main() async throws {
        let app = server()
        let (lists, heard) = AsyncStream.makeStream(of: String.self)
        var changes = lists.makeAsyncIterator()
        var options = ClientOptions(revision: .v20251125)
        options.onListChanged = { heard.yield($0.rawValue) }
        let client = try await connect(to: app, options)
        let other = try await connect(to: app, ClientOptions(revision: .v20251125))
        print("tools:", try await tools(client))

        app.tool("clock", "What time it is") { "noon" }
        print("changed:", await changes.next() ?? "")
        print("tools:", try await tools(client))

        app.tool("clock", "What time it is", replacing: true) { "midnight" }
        print("replaced:", await changes.next() ?? "")
        print("clock:", try await client.callTool("clock").text)

        app.resource("note://second", value: "2")
        print("changed:", await changes.next() ?? "")
        print("resources:", try await client.listResources().map(\.uri).joined(separator: ", "))

        app.prompt("second", "The second prompt") { "2" }
        print("changed:", await changes.next() ?? "")
        print("prompts:", try await client.listPrompts().map(\.name).joined(separator: ", "))

        app.setEnabled(.tool, named: "clock", to: false)
        print("hidden:", await changes.next() ?? "")
        print("tools:", try await tools(client))
        do {
            _ = try await client.callTool("clock")
        } catch TricornError.rpc(let code, _, _) {
            print("clock: error \(code)")
        }

        _ = try await client.callTool("unlock")
        print("for this client:", await changes.next() ?? "")
        print("tools:", try await tools(client))
        print("key:", try await client.callTool("key").text)
        print("other client:", try await tools(other))

        // What is registered nowhere comes from a source, such as a database.
        app.setSource(.resource, list: nil) { params, _ in
            "row \(params["uri"]?.stringValue?.dropFirst("row://".count) ?? "")"
        }
        print("from a source:", try await client.readResource("row://7").text)
        await client.close()
        await other.close()
    }

    private static func tools(_ client: Client) async throws -> String {
        try await client.listTools().map(\.name).joined(separator: ", ")
    }
}
