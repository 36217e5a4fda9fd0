// How long answers keep (revision 2026-07-28): what servers say of it, and what clients make of that.

extension CacheHints {
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

extension ClientCache {
    /// Nothing is kept.
    public static let off = ClientCache(enabled: false)

    /// - Parameter functions: the store's, in the table of handlers.
    func json(_ functions: CacheFunctions?) -> JSONValue { text(functions).json }
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
