// Roots: the folders that a client lets its server work on.
import Tricorn

private func server() -> Server {
    let app = Server("roots")
    app.tool("folders", "Say where I may look") { (_: NoArguments, context) in
        try context.require("roots")
        let roots = try await context.listRoots().roots
        return roots.map { root in root.name.map { "\(root.uri) (\($0))" } ?? root.uri }.joined(separator: " ")
    }
    return app
}

enum RootsExample {
    static func main() async throws {
        let app = server()
        var options = ClientOptions(revision: .v20251125)
        options.roots = ["/srv/notes", ClientRoot(uri: "file:///srv/pictures", name: "Pictures")]
        let client = try await connect(to: app, options)
        print("roots:", try await client.callTool("folders").text)
        try client.setRoots(["/srv/music"])  // the server is told that they have changed
        print("roots:", try await client.callTool("folders").text)
        await client.close()

        let other = try await connect(to: app, ClientOptions(revision: .v20251125))
        do {
            _ = try await other.callTool("folders")
        } catch TricornError.rpc(let code, let message, _) {
            print("without roots: error \(code), \(message)")
        }
        await other.close()
    }
}
