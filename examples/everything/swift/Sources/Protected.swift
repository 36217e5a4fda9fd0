// What tests/cases/FIXTURES.md has of a server that protects itself.
import Tricorn

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The option `auth`, of what the languages share.
func protection(_ text: String) throws -> ServerAuth {
    let given = try JSONValue(parsing: text)
    @Sendable func texts(_ json: JSONValue?) -> [String] { (json?.arrayValue ?? []).compactMap(\.stringValue) }
    func seconds(_ name: String) -> Duration? { given[name]?.doubleValue.map { .seconds($0) } }
    let authorizationServers = texts(given["authorization_servers"])
    var auth: ServerAuth
    if let issuer = given["issuer"]?.stringValue {
        auth = .issuer(issuer)
        auth.authorizationServers = authorizationServers
    } else if let asked = given["introspection"] {
        auth = .introspection(
            asked["url"]?.stringValue ?? "", clientID: asked["client_id"]?.stringValue ?? "",
            clientSecret: asked["client_secret"]?.stringValue ?? "", authorizationServers: authorizationServers)
    } else if let known = given["verifier"]?.objectValue {
        auth = .verifier(authorizationServers: authorizationServers) { token in
            guard let found = known[token] else { return nil }
            if found.isNull { throw TricornError.timeout("nobody can tell") }
            return Principal(
                subject: found["subject"]?.stringValue ?? "", issuer: found["issuer"]?.stringValue,
                clientID: found["client_id"]?.stringValue, scopes: texts(found["scopes"]),
                claims: found["claims"]?.objectValue ?? [:],
                expiresAt: found["expires_at"]?.doubleValue.map { Date(timeIntervalSince1970: $0) })
        }
    } else {
        throw ToolError("EVERYTHING_AUTH: expected issuer, introspection or verifier")
    }
    auth.jwksURI = given["jwks_uri"]?.stringValue
    auth.resource = given["resource"]?.stringValue
    auth.audiences = texts(given["audiences"])
    auth.requiredScopes = texts(given["required_scopes"])
    auth.scopesSupported = texts(given["scopes_supported"])
    for (scope, narrower) in given["scope_implies"]?.objectValue ?? [:] { auth.scopeImplies[scope] = texts(narrower) }
    auth.resourceName = given["resource_name"]?.stringValue
    auth.resourceDocumentation = given["resource_documentation"]?.stringValue
    auth.clockSkew = seconds("clock_skew")
    auth.timeout = seconds("timeout")
    return auth
}

private struct Named: Codable { var name: String }
private struct Of: Codable { var id: String }

/// What needs scopes, and what tells who asks.
func addProtected(to app: Server) {
    app.tool("whoami", "Say who asks") { (_: NoArguments, context) -> JSONValue in
        let principal = context.principal
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        return [
            "subject": text(principal?.subject), "issuer": text(principal?.issuer),
            "client_id": text(principal?.clientID),
            "scopes": principal.map { .array($0.scopes.map { .string($0) }) } ?? .null,
            "expires_at": principal?.expiresAt.map { .int(Int($0.timeIntervalSince1970)) } ?? .null,
            "team": principal?.claims["team"] ?? .null, "reads": .bool(principal?.hasScope("files:read") ?? false),
        ]
    }
    app.tool("delete_file", "Delete a file", scopes: ["files:read", "files:write"]) { (file: Named) in
        "deleted \(file.name)"
    }
    app.resource("test://secret", name: "secret", mimeType: "text/plain", scopes: ["files:read"]) { "the secret" }
    app.resource("test://secret/{id}", name: "secret-of", mimeType: "text/plain", scopes: ["files:read"]) { (of: Of) in
        "the secret of \(of.id)"
    }
    app.prompt("secret_prompt", "Say a secret", scopes: ["files:read"], complete: ["id": { _, _ in ["alpha"] }]) {
        (of: Of) in
        "Say the secret of \(of.id)."
    }
}
