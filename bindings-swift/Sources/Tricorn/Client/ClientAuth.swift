extension ClientAuth {
    /// A way to obtain tokens.
    public enum Grant: String, Sendable, Hashable {
        /// A user logs in with a browser (RFC 6749 §4.1).
        case authorizationCode = "authorization_code"
        /// The program is let in as itself (RFC 6749 §4.4).
        case clientCredentials = "client_credentials"
        /// A workload's own JWT is the grant (RFC 7523 §2.1).
        case jwtBearer = "jwt_bearer"
        /// An identity provider answers for the user: RFC 8693, then RFC 7523 (enterprise-managed authorization).
        case idJAG = "id_jag"
    }

    /// A kind of program.
    public enum ApplicationType: String, Sendable, Hashable {
        /// On the user's machine.
        case native
        /// On a server.
        case web
    }

    /// A place where logins are kept.
    public enum Store: Sendable {
        /// In files that only the user can read, which all programs of this user share: in `$XDG_DATA_HOME/tricorn/logins`, which
        /// is below `~/.local/share` if not set, on macOS in `~/Library/Application Support/tricorn/logins`.
        case file
        /// In this folder, the same way. It is made when it is needed; one that others can write in is refused.
        case directory(String)
        /// In the same files as `file`, sealed with a key of the system's keychain, which may ask the user; without a seal where
        /// no keychain gives a key, which is said on standard error. `TricornError.misuse` on iOS and its like.
        case keychain
        /// Nowhere: for as long as the client, or the group, lives.
        case memory
        /// In a Redis or Valkey that clients of other machines share, sealed with its `secret`.
        case shared(StoreOptions)
        /// A store of the program's own.
        case custom(any TokenStore)
    }

    /// The purpose of a token or an assertion.
    public struct Wanted: Sendable, Hashable {
        /// The authorization server's issuer, which is the assertion's audience. Empty where no server is asked.
        public var issuer: String
        /// The resource that it is to open, as the server names itself.
        public var resource: String?

        init(json: JSONValue) {
            issuer = json["issuer"]?.stringValue ?? ""
            resource = json["resource"]?.stringValue
        }
    }

    /// A secret text: `"…"`, or what a function gives when it is wanted.
    public enum Credential: Sendable, ExpressibleByStringLiteral {
        /// This.
        case text(String)
        /// The text that the function gives; it may take five minutes, because it may ask somebody.
        case asked(@Sendable (_ wanted: Wanted) async throws -> String)

        /// This.
        public init(stringLiteral text: String) { self = .text(text) }

        var text: String? { if case .text(let text) = self { text } else { nil } }
    }

    /// The identity provider of an enterprise, which answers for its users.
    public struct Identity: Sendable, Hashable {
        /// Its token endpoint, an https URL.
        public var tokenEndpoint: String
        /// The id under which this program is known there.
        public var clientID: String
        /// Its secret there, if it has one.
        public var clientSecret: String?
        /// An ID token, which it has given for the user; or `ClientAuth.assertion` is asked for it.
        public var token: String?
        /// The token's type (`urn:ietf:params:oauth:token-type:id_token`).
        public var tokenType: String?

        /// The identity provider with this token endpoint, and the ID token that it gave to `clientID`.
        public init(
            tokenEndpoint: String, clientID: String, clientSecret: String? = nil, token: String? = nil,
            tokenType: String? = nil
        ) {
            self.tokenEndpoint = tokenEndpoint
            self.clientID = clientID
            self.clientSecret = clientSecret
            self.token = token
            self.tokenType = tokenType
        }

        var json: JSONValue {
            var identity = OptionsText()
            identity.set("token_endpoint", text: tokenEndpoint)
            identity.set("client_id", text: clientID)
            identity.set("client_secret", text: clientSecret)
            identity.set("token", text: token)
            identity.set("token_type", text: tokenType)
            return identity.json
        }
    }

    /// The steps of the last logins of all clients with this value, or a copy of it, also of those that could not connect: what
    /// they asked, were answered and decided. Of each client, and of all that are closed, the last 128 steps. There are no
    /// secrets in it.
    public var trace: [AuthStep] { traced.steps }
}

extension ClientAuth {
    /// An access token that is there already.
    public static func bearer(_ token: String) -> ClientAuth { bearing(.text(token)) }

    /// Access tokens from a function, which is asked again when the server refuses one.
    public static func bearer(_ token: @escaping @Sendable (_ wanted: Wanted) async throws -> String) -> ClientAuth {
        bearing(.asked(token))
    }

    private static func bearing(_ token: Credential) -> ClientAuth {
        var auth = ClientAuth()
        auth.token = token
        return auth
    }

    /// The program as itself, with a secret (RFC 6749 §4.4).
    public static func clientCredentials(_ clientID: String, _ clientSecret: String) -> ClientAuth {
        var auth = ClientAuth(clientID: clientID, clientSecret: clientSecret)
        auth.grant = .clientCredentials
        return auth
    }

    /// The program as itself, with a private key in PEM and its algorithm, such as `ES256` (RFC 7523 §2.2).
    public static func privateKeyJWT(
        _ clientID: String, _ privateKey: String, _ signingAlgorithm: String = "ES256"
    ) -> ClientAuth {
        var auth = ClientAuth(clientID: clientID)
        auth.grant = .clientCredentials
        auth.privateKey = privateKey
        auth.signingAlgorithm = signingAlgorithm
        return auth
    }

    /// The user as their identity provider knows them (enterprise-managed authorization); `clientID` is the program's at the MCP
    /// server's own authorization server.
    public static func identityAssertion(
        _ identity: Identity, clientID: String, clientSecret: String? = nil
    ) -> ClientAuth {
        var auth = ClientAuth(clientID: clientID, clientSecret: clientSecret)
        auth.identity = identity
        return auth
    }

    /// A workload, whose platform gives it JWTs: the function is asked for one each time (RFC 7523 §2.1).
    public static func workload(
        _ clientID: String, _ assertion: @escaping @Sendable (_ wanted: Wanted) async throws -> String
    ) -> ClientAuth {
        var auth = ClientAuth(clientID: clientID)
        auth.grant = .jwtBearer
        auth.assertion = .asked(assertion)
        return auth
    }
}

extension ClientAuth.Store {
    /// The store as the core takes it; nil for one of the program's own.
    var json: JSONValue? {
        switch self {
        case .file: "file"
        case .directory(let path): ["directory": .string(path)]
        case .keychain: "keychain"
        case .memory: "memory"
        case .shared(let store): store.json
        case .custom: nil
        }
    }
}

extension ClientAuth: Guarded {
    var shown: KeyValuePairs<String, Any> {
        [
            "grant": grant as Any, "clientID": clientID as Any, "issuer": issuer as Any,
            "clientMetadataURL": clientMetadataURL as Any, "scopes": scopes, "identity": identity as Any,
        ]
    }
}

extension ClientAuth.Identity: Guarded {
    var shown: KeyValuePairs<String, Any> { ["clientID": clientID] }
}

extension ClientAuth.Credential: Guarded {
    var shown: KeyValuePairs<String, Any> { [:] }
}
