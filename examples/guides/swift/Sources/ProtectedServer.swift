// A protected server, for production: an authorization server says who comes in.
//
//     ISSUER=https://login.example.com RESOURCE=https://example.com/files/mcp ALLOWED_HOSTS=example.com PORT=8000 \
//         swift run -c release
//
// ISSUER          whose access tokens are taken
// RESOURCE        the server's public URL, as its clients write it
// ALLOWED_HOSTS   the hosts in it, with commas between them
// PORT            of this machine, which the proxy in front passes requests to; 8000 if not said
//
// Without RESOURCE and ALLOWED_HOSTS it is for clients on this machine, which need no proxy.
import Foundation
import Tricorn

private struct File: Codable { var name: String }

private func who(_ context: Context) -> String { context.principal?.subject ?? "nobody" }

private func server(_ auth: ServerAuth) -> Server {
    let app = Server("files", auth: auth)
    app.tool("whoami", "Say who asks") { (_: NoArguments, context) in who(context) }
    app.tool("delete_file", "Delete a file", scopes: ["files:write"]) { (file: File, context) in
        "\(who(context)) deleted \(file.name)"
    }
    return app
}

enum ProtectedServerExample {
    static func main() async throws {
        let settings = ProcessInfo.processInfo.environment
        guard let issuer = settings["ISSUER"] else { throw TricornError.misuse("ISSUER is not set") }
        var auth = ServerAuth.issuer(issuer, resource: settings["RESOURCE"], requiredScopes: ["files:read"])
        auth.resourceName = "Files"
        let hosts = settings["ALLOWED_HOSTS"]?.split(separator: ",").map(String.init)
        let options = HTTPOptions(port: settings["PORT"].flatMap(Int.init), allowedHosts: hosts)
        try await server(auth).run(.http(options))
    }
}
