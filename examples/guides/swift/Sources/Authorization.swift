// Authorization: a server that takes access tokens, and clients that have one.
import Tricorn

private struct Note: Codable { var text: String }

// Whose tokens they are. A server in production lets its authorization server say so:
// ServerAuth.issuer("https://login.example.com", resource: "https://notes.example.com/mcp", requiredScopes: ["notes:read"])
private let people = [
    "token-of-ada": Principal(subject: "ada", scopes: ["notes:read", "notes:write"]),
    "token-of-bob": Principal(subject: "bob", scopes: ["notes:read"]),
]

private func server() -> Server {
    let auth = ServerAuth.verifier(
        authorizationServers: ["https://login.example.com"], requiredScopes: ["notes:read"]
    ) { token in people[token] }
    let app = Server("notes", auth: auth)
    app.tool("whoami", "Say who asks") { (_: NoArguments, context) in context.principal?.subject ?? "nobody" }
    app.tool("write", "Write a note", scopes: ["notes:write"]) { (note: Note, context) in
        "\(context.principal?.subject ?? "") wrote \(note.text)"
    }
    return app
}

enum AuthorizationExample {
    static func main() async throws {
        let app = server()
        let serving = try await app.start(port: 0)

        for name in ["ada", "bob"] {
            var options = ClientOptions()
            // A user logs in with a browser, and the program finds out the rest: ClientAuth().
            options.auth = .bearer("token-of-\(name)")
            let client = try await connect(serving.url, options)
            let tools = try await client.listTools().map(\.name).joined(separator: ", ")
            print("\(try await client.callTool("whoami").text) may use: \(tools)")
            do {
                print(try await client.callTool("write", ["text": "milk"]).text)
            } catch let error as TricornError {
                print("refused:", error.kind)
            }
            await client.close()
        }
        do {
            _ = try await connect(serving.url)
        } catch let error as TricornError {
            print("without a token:", error.kind)
        }
        await serving.stop()
    }
}
