internal import TricornCore

extension ServerAuth {
    /// Says who a token belongs to; nil refuses it.
    public typealias Verifier = @Sendable (_ token: String) async throws -> Principal?

    enum Source: Sendable {
        case issuer(String)
        case introspection(url: String, clientID: String, clientSecret: String)
        case verifier(Verifier)
    }

    private init(_ source: Source, _ resource: String?, _ requiredScopes: [String]) {
        self.source = source
        self.resource = resource
        self.requiredScopes = requiredScopes
    }

    /// Takes JSON Web Tokens (RFC 9068) of this issuer: the text that their `iss` has, byte for byte. Its keys are found by its
    /// metadata (RFC 8414, OpenID Connect Discovery), kept, and fetched again when they are an hour old or a token is signed with
    /// another, once in 30 s at most; those that are known are used for a day while there are no others. Signatures are RS, PS,
    /// ES or EdDSA.
    public static func issuer(
        _ issuer: String, resource: String? = nil, requiredScopes: [String] = []
    ) -> ServerAuth {
        ServerAuth(.issuer(issuer), resource, requiredScopes)
    }

    /// Asks the authorization server about each token (RFC 7662), as this client of it (`client_secret_basic`). What is active
    /// has to say for whom it is (`aud`). An answer is believed for 30 s.
    public static func introspection(
        _ url: String, clientID: String, clientSecret: String, authorizationServers: [String], resource: String? = nil,
        requiredScopes: [String] = []
    ) -> ServerAuth {
        let source = Source.introspection(url: url, clientID: clientID, clientSecret: clientSecret)
        var auth = ServerAuth(source, resource, requiredScopes)
        auth.authorizationServers = authorizationServers
        return auth
    }

    /// Asks a function about each token. It has to make sure that the token is for this server; what it says of the expiry is
    /// checked. With nil the token is refused, and with what it throws; but for `TricornError.timeout`, `TricornError.transport`
    /// and `URLError`, which mean that nobody can tell now. The client is told no error's text; the server's `onError` hears of
    /// those that are no `TricornError`.
    ///
    /// ```swift
    /// let auth = ServerAuth.verifier(authorizationServers: ["https://login.example.com"]) { token in
    ///     guard let user = await users.byToken(token) else { return nil }
    ///     return Principal(subject: user.name, scopes: user.scopes)
    /// }
    /// ```
    public static func verifier(
        authorizationServers: [String], resource: String? = nil, requiredScopes: [String] = [],
        _ verify: @escaping Verifier
    ) -> ServerAuth {
        var auth = ServerAuth(.verifier(verify), resource, requiredScopes)
        auth.authorizationServers = authorizationServers
        return auth
    }

    /// The function that the core asks about tokens.
    var verifier: AskedFunction? {
        guard case .verifier(let verify) = source else { return nil }
        return { asked in
            let principal = try await verify(asked["token"]?.stringValue ?? "")
            return principal.map { ["principal": $0.json] } ?? [:]
        }
    }

    /// The core's option `auth`, with the verifier's number in the table of handlers.
    func json(_ verifier: UInt32?) -> JSONValue {
        var options = text
        switch source {
        case .issuer(let issuer): options.set("issuer", text: issuer)
        case .introspection(let url, let clientID, let clientSecret):
            options.set(
                "introspection",
                ["url": .string(url), "client_id": .string(clientID), "client_secret": .string(clientSecret)])
        case .verifier: options.set("verifier", number: verifier.map { Int($0) })
        }
        return options.json
    }
}

extension ServerAuth: Guarded {
    var shown: KeyValuePairs<String, Any> {
        let kind =
            switch source {
            case .issuer(let issuer): "issuer \(issuer)"
            // Its query may hold a key.
            case .introspection: "introspection"
            case .verifier: "verifier"
            }
        return ["source": kind, "resource": resource as Any, "requiredScopes": requiredScopes]
    }
}

/// A document that says how to get into a protected server (RFC 9728).
public struct ResourceMetadata: Sendable, Hashable {
    /// The path where clients look for it, from the root of the host: `/.well-known/oauth-protected-resource/mcp`.
    public var path: String
    /// The document, JSON.
    public var text: String
}

extension HTTPEndpoint {
    /// The metadata that clients look for at the root of the host, of a server with `auth`; nil without. `handle` answers for
    /// it, too: route requests for `path` to it besides those for the server's own, with the target as it came.
    public var resourceMetadata: ResourceMetadata? {
        guard let payload = try? endpoint.resourceMetadata(), let text = try? JSONText(payload) else { return nil }
        let document = JSONValue(text, 0)
        guard let path = document["path"]?.stringValue, let text = document["text"]?.stringValue else { return nil }
        return ResourceMetadata(path: path, text: text)
    }
}
