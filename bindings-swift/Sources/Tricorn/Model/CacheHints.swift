// How long answers keep (revision 2026-07-28): what servers say of it, and what clients make of that.

/// Lifetime and audience of an answer in caches. What is nil is taken from the more general option.
public struct CacheHints: Sendable, Hashable {
    /// For how long after it was received; not at all by default.
    public var ttl: Duration?
    /// For whom; `private` by default.
    public var scope: CacheScope?

    /// Hints; a more general one counts where one is nil.
    public init(ttl: Duration? = nil, scope: CacheScope? = nil) {
        self.ttl = ttl
        self.scope = scope
    }

    var text: OptionsText {
        var options = OptionsText()
        options.set("ttl", duration: ttl)
        options.set("scope", text: scope?.rawValue)
        return options
    }

    var json: JSONValue { text.json }
}

/// Lifetime and audience of a server's answers in caches: `general` for everything, others for a part.
///
/// What is read, and a list of which a function gives a part, may depend on who asks: they are private unless `scope` is said
/// of them.
///
/// ```swift
/// Server("shop", cache: ServerCache(ttl: .seconds(60), scope: .public, prompts: .init(scope: .private)))
/// ```
public struct ServerCache: Sendable, Hashable {
    /// Everything of which nothing else is said.
    public var general: CacheHints
    /// `server/discover`.
    public var discover: CacheHints?
    /// The list of tools.
    public var tools: CacheHints?
    /// The list of prompts.
    public var prompts: CacheHints?
    /// The list of resources.
    public var resources: CacheHints?
    /// The list of resource templates.
    public var resourceTemplates: CacheHints?
    /// Reads of resources, where neither the resource nor the result says it.
    public var read: CacheHints?

    /// - Parameters:
    ///   - ttl: of everything of which nothing else is said; see `CacheHints`.
    ///   - scope: of the same.
    public init(
        ttl: Duration? = nil, scope: CacheScope? = nil, discover: CacheHints? = nil, tools: CacheHints? = nil,
        prompts: CacheHints? = nil, resources: CacheHints? = nil, resourceTemplates: CacheHints? = nil,
        read: CacheHints? = nil
    ) {
        general = CacheHints(ttl: ttl, scope: scope)
        self.discover = discover
        self.tools = tools
        self.prompts = prompts
        self.resources = resources
        self.resourceTemplates = resourceTemplates
        self.read = read
    }

    var json: JSONValue {
        var options = general.text
        options.set("discover", discover?.json)
        options.set("tools", tools?.json)
        options.set("prompts", prompts?.json)
        options.set("resources", resources?.json)
        options.set("resource_templates", resourceTemplates?.json)
        options.set("read", read?.json)
        return options.json
    }
}

/// The answers of its server that a client keeps, as long as these say that they keep. Nil has the core's default.
public struct ClientCache: Sendable {
    /// True if anything is kept, as it is by default.
    public var enabled: Bool?
    /// Answers that are kept (1,000); those that were used longest ago make room.
    public var maxEntries: Int?
    /// Bytes of them (16 MiB).
    public var maxBytes: Int?
    /// Gives the last answer when the server cannot be asked, although it is no longer fresh, with `tricorn/stale` in
    /// its `_meta` (false).
    public var staleOnError: Bool?
    /// Keeps them together with the other clients of this process that do: of one HTTP server, and private answers only
    /// under the same authorization (false).
    public var shared: Bool?
    /// The authorization under which private answers are kept, such as a user's id, where that is not what the HTTP headers
    /// and the address say.
    public var scope: String?
    /// Keeps them in a store of the program's own, which other processes may share: of HTTP servers, what is private only
    /// under the same authorization. What other servers say is kept in the client's memory, as all is when it is nil.
    public var store: (any CacheStore)?
    /// Keeps them in this Redis or Valkey, as `store` does in one of the program's own.
    public var sharedStore: StoreOptions?

    /// Nothing is kept.
    public static let off = ClientCache(enabled: false)

    /// Options of a cache; nil has the core's default.
    public init(
        enabled: Bool? = nil, maxEntries: Int? = nil, maxBytes: Int? = nil, staleOnError: Bool? = nil,
        shared: Bool? = nil, scope: String? = nil, store: (any CacheStore)? = nil, sharedStore: StoreOptions? = nil
    ) {
        self.enabled = enabled
        self.maxEntries = maxEntries
        self.maxBytes = maxBytes
        self.staleOnError = staleOnError
        self.shared = shared
        self.scope = scope
        self.store = store
        self.sharedStore = sharedStore
    }

    /// - Parameter functions: the store's, in the table of handlers.
    func json(_ functions: CacheFunctions?) -> JSONValue {
        var options = OptionsText()
        options.set("enabled", flag: enabled)
        options.set("max_entries", number: maxEntries)
        options.set("max_bytes", number: maxBytes)
        options.set("stale_on_error", flag: staleOnError)
        options.set("shared", flag: shared)
        options.set("scope", text: scope)
        options.set("store", functions?.json ?? sharedStore?.json)
        return options.json
    }
}

/// Use that a request makes of the answers that a client keeps.
public enum CacheMode: String, Sendable, Hashable {
    /// It is answered with what is kept and fresh, and what it is answered with is kept.
    case `default`
    /// Asks the server, and keeps its answer.
    case refresh
    /// Asks the server, and leaves what is kept as it is.
    case bypass
}
