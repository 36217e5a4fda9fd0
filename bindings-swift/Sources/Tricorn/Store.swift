/// A store that several processes share: Redis 6.2 or later, or Valkey.
///
/// ```swift
/// Server("shop", store: "redis://10.0.0.9:6379")
/// ```
public struct StoreOptions: Sendable, Hashable, ExpressibleByStringLiteral {
    /// `redis://` or with TLS `rediss://`, then `user:password@host:6379/0`, all but the host optional;
    /// `redis+cluster://host:6379,host:6379`; `redis+sentinel://host:26379,host:26379/service/0`, with
    /// `?sentinel_user=…&sentinel_password=…` where the sentinels want a login of their own; `rediss+cluster://` and
    /// `rediss+sentinel://`; `unix:///path?db=0&user=…&pass=…`. Special characters of a password are percent-encoded.
    public var url: String
    /// First part of every key, 1 to 64 letters, digits or `-_.:`; `tricorn` by default.
    public var prefix: String?
    /// Secret of at least 32 bytes, the same in all processes, that seals a server's keys of request states, a client's
    /// answers, and logins, which need one. By default the others are not sealed.
    public var secret: String?

    /// - Parameters:
    ///   - url: address of the store; see `url`.
    ///   - prefix: first part of every key (`tricorn`).
    ///   - secret: secret of at least 32 bytes that seals what is secret in the store; see `secret`.
    public init(_ url: String, prefix: String? = nil, secret: String? = nil) {
        self.url = url
        self.prefix = prefix
        self.secret = secret
    }

    /// The store at this URL.
    public init(stringLiteral url: String) { self.init(url) }

    var json: JSONValue {
        var members = JSONObject()
        members["url"] = .string(url)
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
