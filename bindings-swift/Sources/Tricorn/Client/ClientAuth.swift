/// Authorization of a client at a protected server. `ClientAuth()` discovers everything, registers the program where
/// that is possible, and lets the user log in with a browser.
///
/// ```swift
/// var options = ClientOptions()
/// options.auth = ClientAuth()
/// let client = try await connect("https://mcp.example.com/mcp", options)
/// ```
public struct ClientAuth: Sendable {
    /// The way tokens are obtained; chosen by the other options when nil, and a user's login otherwise.
    public var grant: Grant?
    /// The program's id at the authorization server, where it is registered already.
    public var clientID: String?
    /// Its secret there.
    public var clientSecret: String?
    /// Its private key there, PEM; it proves itself with `private_key_jwt` (RFC 7523) then.
    public var privateKey: String?
    /// The key's algorithm (`ES256`).
    public var signingAlgorithm: String?
    /// The key's id (`kid`), where the server needs it.
    public var keyID: String?
    /// The issuer that `clientID` belongs to; of the authorization servers that a server lists, this one is taken. For servers
    /// without metadata, the one that is asked. Say it beside a secret: what a server lists is its own choice.
    public var issuer: String?
    /// The URL of the program's own Client ID Metadata Document: its id at servers that understand that.
    public var clientMetadataURL: String?
    /// The program's name for people, where it registers itself (the client's own name).
    public var clientName: String?
    /// The URL of a page about the program.
    public var clientURI: String?
    /// The kind of program (OpenID Connect); `.native` where the browser comes back to this machine.
    public var applicationType: ApplicationType?
    /// The user of the login, where one program has several: the login of one is not used for another.
    public var user: String?
    /// Scopes that are always asked for, besides what the server wants.
    public var scopes: [String]
    /// Tokens bound to a key (RFC 9449): true wherever the authorization server can, false never; where the MCP server asks for it
    /// when nil.
    public var dpop: Bool?
    /// The identity provider that answers for the user.
    public var identity: Identity?
    /// A workload's JWT, which is the grant; or, asked for when it is wanted, what the identity provider has said.
    public var assertion: Credential?
    /// An access token: nothing else is done then. One that is asked for is asked for again when the server refuses it.
    public var token: Credential?
    /// Time that a user has to log in (300 s).
    public var loginTimeout: Duration?
    /// Says the login page's address on standard error instead of opening it, where no `browser` is given.
    public var noBrowser = false
    /// The port of this machine that the browser comes back to, at `/callback`, where no `redirectURI` is given; one that is free
    /// when nil. A client that was registered by hand may need its own.
    public var redirectPort: Int?
    /// Shows the login page to the user; the system's browser does when nil. It gets https URLs, and http ones of this machine, and
    /// need not wait for the user. What it throws ends the login; it is cancelled when the user is back, or nobody waits any more.
    public var browser: (@Sendable (_ url: String) async throws -> Void)?
    /// The URL the browser comes back to: https, or http on this machine. Goes with `callback`.
    public var redirectURI: String?
    /// Waits until the browser has come back to `redirectURI`, and gives the URL that it came with, or its query.
    public var callback: (@Sendable (_ redirectURI: String) async throws -> String)?
    /// The place where logins are kept. When nil `.keychain`, which then says nothing where there is no keychain at
    /// all; for a user without a home directory the memory of this process, which is said on standard error.
    public var store: Store?
    let traced = AuthTrace()

    /// Discovers what is not given.
    public init(
        clientID: String? = nil, clientSecret: String? = nil, issuer: String? = nil, clientMetadataURL: String? = nil,
        scopes: [String] = [], store: Store? = nil
    ) {
        self.clientID = clientID
        self.clientSecret = clientSecret
        self.issuer = issuer
        self.clientMetadataURL = clientMetadataURL
        self.scopes = scopes
        self.store = store
    }

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

extension ClientAuth {
    /// The core's option `auth`, without what names a function.
    var text: OptionsText {
        var options = OptionsText()
        options.set("grant", text: grant?.rawValue)
        options.set("client_id", text: clientID)
        options.set("client_secret", text: clientSecret)
        options.set("private_key", text: privateKey)
        options.set("signing_algorithm", text: signingAlgorithm)
        options.set("key_id", text: keyID)
        options.set("issuer", text: issuer)
        options.set("client_metadata_url", text: clientMetadataURL)
        options.set("client_name", text: clientName)
        options.set("client_uri", text: clientURI)
        options.set("application_type", text: applicationType?.rawValue)
        options.set("user", text: user)
        if !scopes.isEmpty { options.set("scopes", texts: scopes) }
        options.set("dpop", flag: dpop)
        options.set("identity", identity?.json)
        options.set("assertion", text: assertion?.text)
        options.set("token", text: token?.text)
        options.set("login_timeout", duration: loginTimeout)
        if noBrowser { options.set("no_browser", flag: true) }
        options.set("redirect_port", number: redirectPort)
        options.set("redirect_uri", text: redirectURI)
        switch store {
        case .file: options.set("store", text: "file")
        case .directory(let path): options.set("store", ["directory": .string(path)])
        case .keychain: options.set("store", text: "keychain")
        case .memory: options.set("store", text: "memory")
        case .shared(let store): options.set("store", store.json)
        case .custom, nil: break
        }
        return options
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
