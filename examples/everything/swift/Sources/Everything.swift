// The fixture server of the contract suite: `run --stdio | --http HOST:PORT`.
import Tricorn

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@main struct Everything {
    static func main() async throws {
        let app = Server(
            "everything", version: "1.0.0", title: "Everything", description: "Every fixture of the contract suite",
            websiteURL: "https://example.com/everything",
            icons: [
                .init(src: "https://example.com/icon.png", mimeType: "image/png", sizes: ["48x48"], theme: .light)
            ],
            instructions: "Call any tool.", revision: text("EVERYTHING_REVISION").map(ProtocolRevision.init(rawValue:)),
            pageSize: setting("EVERYTHING_PAGE_SIZE"), maxInFlight: setting("EVERYTHING_MAX_IN_FLIGHT"),
            tasks: setting("EVERYTHING_TASKS").map { TaskOptions(maxTaskTTL: .seconds($0)) },
            requestStateKeys: text("EVERYTHING_REQUEST_STATE_KEY").map { [$0] },
            auth: try text("EVERYTHING_AUTH").map(protection), cache: try cache())
        if text("EVERYTHING_EXTENSION") != nil { try addSearch(to: app) }
        if text("EVERYTHING_TASKS") != nil { addTaskTools(to: app) }
        addOfficialTools(to: app)
        addResources(to: app, cached: text("EVERYTHING_CACHE") != nil)
        addPrompts(to: app)
        addQuestions(to: app)
        addQuestionsByHand(to: app)
        addQuestionsInARow(to: app)
        addContractTools(to: app)
        if text("EVERYTHING_AUTH") != nil { addProtected(to: app) }

        let arguments = CommandLine.arguments
        guard let at = arguments.firstIndex(of: "--http") else { return try await app.run() }
        let address = arguments[at + 1].split(separator: ":")
        var options = HTTPOptions(
            host: String(address[0]), port: Int(address[1]), maxSessions: setting("EVERYTHING_MAX_SESSIONS"),
            sessionIdleTimeout: setting("EVERYTHING_SESSION_IDLE_TIMEOUT").map { .seconds($0) })
        options.maxConnections = setting("EVERYTHING_MAX_CONNECTIONS")
        options.allowedHosts = text("EVERYTHING_ALLOWED_HOSTS").map { [$0] }
        options.sse = text("EVERYTHING_SSE").map { _ in true }
        options.cert = text("EVERYTHING_CERT")
        options.key = text("EVERYTHING_KEY")
        options.drainTimeout = text("EVERYTHING_DRAIN_TIMEOUT").flatMap(Double.init).map { .seconds($0) }
        options.sseRetry = text("EVERYTHING_SSE_RETRY").flatMap(Double.init).map { .seconds($0) }
        guard text("EVERYTHING_MOUNT") == nil else { return try await serveMounted(app, options) }
        try await app.run(.http(options))
    }

    /// The option `cache` as JSON, its times in seconds.
    static func cache() throws -> ServerCache? {
        guard let json = try text("EVERYTHING_CACHE").map({ try JSONValue(parsing: $0) }) else { return nil }
        func hints(_ json: JSONValue) -> CacheHints {
            CacheHints(
                ttl: json["ttl"]?.doubleValue.map { .seconds($0) },
                scope: json["scope"]?.stringValue.map { CacheScope(rawValue: $0) })
        }
        var cache = ServerCache(
            discover: json["discover"].map(hints), tools: json["tools"].map(hints), prompts: json["prompts"].map(hints),
            resources: json["resources"].map(hints), resourceTemplates: json["resource_templates"].map(hints),
            read: json["read"].map(hints))
        cache.general = hints(json)
        return cache
    }

    static func text(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }
    static func setting(_ name: String) -> Int? { text(name).flatMap { Int($0) } }
}
