internal import TricornCore

/// Validation of access tokens over HTTP: the server is an OAuth 2.1 resource server then, and each of its requests
/// needs a token in its `Authorization` header.
///
/// ```swift
/// let app = Server(
///     "notes",
///     auth: .issuer("https://login.example.com", resource: "https://mcp.example.com/mcp", requiredScopes: ["mcp"]))
/// ```
/// A request without a token, or with one that is not for this server now, is answered with 401 and a challenge that says where
/// the protected-resource metadata is (RFC 9728), which is served, too; one whose token lacks scopes with 403 and a challenge
/// that names all that it needs; one whose token cannot be checked now with 503. Handlers learn who asks by
/// `Context.principal`, and never see the token. A mistake in it is thrown when serving starts.
public struct ServerAuth: Sendable {
    /// Says who a token belongs to; nil refuses it.
    public typealias Verifier = @Sendable (_ token: String) async throws -> Principal?

    enum Source: Sendable {
        case issuer(String)
        case introspection(url: String, clientID: String, clientSecret: String)
        case verifier(Verifier)
    }

    let source: Source
    /// The URL of the issuer's keys, for one that publishes no metadata. It has no effect without an issuer.
    public var jwksURI: String?
    /// The server's own URL, as its clients write it: `https://mcp.example.com/mcp`, with `https` also where a proxy ends TLS,
    /// and `http` only on this machine. Tokens have to be for it (RFC 8707). Needed unless the server listens on the
    /// loopback interface with its default `allowedHosts`: there it is the URL that the request was sent to.
    public var resource: String?
    /// The audiences of which a token needs one, for authorization servers that have names of their own for resources. They replace
    /// `resource`: name that, too, where it may come. No other server may have them.
    public var audiences: [String] = []
    /// The scopes that every request needs, all of them (none).
    public var requiredScopes: [String]
    /// The scopes that the metadata lists: those that a client should ask for at first, and no more (the required ones).
    public var scopesSupported: [String] = []
    /// Narrower scopes that come with a granted one: `["notes": ["notes.read", "notes.write"]]`.
    public var scopeImplies: [String: [String]] = [:]
    /// The issuers that clients may get tokens from, as the metadata lists them (the issuer).
    public var authorizationServers: [String] = []
    /// The server's name for people, in the metadata.
    public var resourceName: String?
    /// The page for developers about the server, in the metadata: an http or https URL.
    public var resourceDocumentation: String?
    /// By how much the clocks of issuer and server may differ, in whole seconds, 10 min at most (60 s).
    public var clockSkew: Duration?
    /// Time that the authorization server, or the function, has for one question (10 s). Longer it is 503.
    public var timeout: Duration?

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
        var options = OptionsText()
        switch source {
        case .issuer(let issuer): options.set("issuer", text: issuer)
        case .introspection(let url, let clientID, let clientSecret):
            options.set(
                "introspection",
                ["url": .string(url), "client_id": .string(clientID), "client_secret": .string(clientSecret)])
        case .verifier: options.set("verifier", number: verifier.map { Int($0) })
        }
        options.set("jwks_uri", text: jwksURI)
        options.set("resource", text: resource)
        options.set("audiences", texts: audiences)
        options.set("required_scopes", texts: requiredScopes)
        options.set("scopes_supported", texts: scopesSupported)
        if !scopeImplies.isEmpty {
            let pairs = scopeImplies.sorted { $0.key < $1.key }
            let implied = pairs.map { (key: $0.key, value: JSONValue.array($0.value.map { .string($0) })) }
            options.set("scope_implies", .object(JSONObject(implied)))
        }
        options.set("authorization_servers", texts: authorizationServers)
        options.set("resource_name", text: resourceName)
        options.set("resource_documentation", text: resourceDocumentation)
        options.set("clock_skew", duration: clockSkew)
        options.set("timeout", duration: timeout)
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
