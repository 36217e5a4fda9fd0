/// A store that several processes share: Redis 6.2 or later, or Valkey; for a server also one of the program's own.
///
/// ```swift
/// Server("shop", store: "redis://10.0.0.9:6379")
/// Server("shop", store: StoreOptions(documents: store))
/// ```
public struct StoreOptions: Sendable, Hashable, ExpressibleByStringLiteral {
    /// `redis://` or with TLS `rediss://`, then `user:password@host:6379/0`, all but the host optional;
    /// `redis+cluster://host:6379,host:6379`; `redis+sentinel://host:26379,host:26379/service/0`, with
    /// `?sentinel_user=…&sentinel_password=…` where the sentinels want a login of their own; `rediss+cluster://` and
    /// `rediss+sentinel://`; `unix:///path?db=0&user=…&pass=…`. Special characters of a password are percent-encoded.
    /// Empty for a store of the program's own.
    public var url: String
    /// First part of every key, 1 to 64 letters, digits or `-_.:`; `tricorn` by default.
    public var prefix: String?
    /// Secret of at least 32 bytes, the same in all processes, that seals a server's keys of request states, a client's
    /// answers, and logins, which need one. By default the others are not sealed.
    public var secret: String?
    /// The store of the program, in place of one at a URL.
    let documents: OwnDocuments?

    /// - Parameters:
    ///   - url: address of the store; see `url`.
    ///   - prefix: first part of every key (`tricorn`).
    ///   - secret: secret of at least 32 bytes that seals what is secret in the store; see `secret`.
    public init(_ url: String, prefix: String? = nil, secret: String? = nil) {
        self.url = url
        self.prefix = prefix
        self.secret = secret
        documents = nil
    }

    /// A store of the program's own, for a server; clients take a `CacheStore` and a `TokenStore`.
    ///
    /// - Parameters:
    ///   - documents: the store.
    ///   - prefix: first part of every key (`tricorn`).
    ///   - secret: secret of at least 32 bytes that seals the server's keys of request states; see `secret`.
    public init(documents: any DocumentStore, prefix: String? = nil, secret: String? = nil) {
        url = ""
        self.prefix = prefix
        self.secret = secret
        self.documents = OwnDocuments(documents)
    }

    /// The store at this URL.
    public init(stringLiteral url: String) { self.init(url) }

    var json: JSONValue { placed(nil) }

    /// - Parameter functions: those of the program's own store, in the table of handlers.
    func placed(_ functions: DocumentFunctions?) -> JSONValue {
        var members = functions?.members ?? ["url": .string(url)]
        if let prefix { members["prefix"] = .string(prefix) }
        if let secret { members["secret"] = .string(secret) }
        return .object(members)
    }
}

extension StoreOptions: CustomStringConvertible, CustomReflectable {
    /// Shows nothing of the URL or the secret.
    public var description: String { "StoreOptions" }
    /// Shows nothing of the URL or the secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
