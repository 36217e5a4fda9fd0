/// A store that the clients of several processes share for answers, such as a Redis: texts under keys. Those of one
/// HTTP server get what the others have kept, private answers only under the same authorization: `ClientCache.store`.
///
/// A key is visible ASCII of at most 160 characters, `tricorn:1:SERVER:METHOD:…`: the format's version, a digest of the
/// server's address, the method, then digests of what else the answer depends on. It is the same in all processes, languages
/// and versions that have this format; others begin otherwise. A text is JSON, or a word of 24 characters under the keys with
/// `:mark:`, by which clients know what has changed since an answer was kept.
///
/// What is kept may go at any time: it is asked for again then. It must not come back, and whoever can read it can read the
/// answers, private ones too. The machines' clocks have to agree: by what they do not, answers are fresh for longer.
///
/// Functions are called several times at once. What takes longer than 2 seconds counts as failed and is cancelled, and for 5
/// seconds the store is not asked. Where it fails the server is asked instead, and nothing is kept: `ClientOptions.onWarning`
/// hears of that, once in a minute, and where it is given of what a function throws each time; `failures` of
/// `client.metrics["cache"]` counts it.
public protocol CacheStore: Sendable {
    /// The texts kept under each of these keys, in their order, at most 16; nil where that is nothing.
    func get(_ keys: [String]) async throws -> [String?]
    /// Keeps this text instead of the one before. After `ttl`, whole seconds, nobody needs it any more.
    func set(_ key: String, _ text: String, ttl: Duration) async throws
    /// Keeps nothing under this key any more; no error when there was nothing.
    func delete(_ key: String) async throws
}

/// A cache's store, in the table of handlers for as long as it is needed.
final class CacheFunctions: Sendable {
    /// The store as the core's options have it.
    let json: JSONValue
    private let number: UInt32

    /// `report` hears of all that the store throws.
    init(_ store: any CacheStore, _ report: @escaping Report) {
        number = Host.shared.add("cache", "cache: store", report, all: true) {
            try await Self.perform($0, store)
        }
        json = ["handler": .int(Int(number))]
    }

    private static func perform(_ asked: JSONValue, _ store: any CacheStore) async throws -> JSONValue {
        let key = asked["key"]?.stringValue ?? ""
        switch asked["op"]?.stringValue {
        case "get":
            let texts = try await store.get((asked["keys"]?.arrayValue ?? []).compactMap(\.stringValue))
            return ["texts": .array(texts.map { $0.map { .string($0) } ?? .null })]
        case "set":
            let ttl = Duration.seconds(asked["ttl"]?.intValue ?? 0)
            try await store.set(key, asked["text"]?.stringValue ?? "", ttl: ttl)
        case "delete": try await store.delete(key)
        default: throw TricornError.misuse("a store can not \(asked["op"] ?? .null)")
        }
        return [:]
    }

    deinit { Host.shared.removeHandlers([number]) }
}

/// The functions among the options of a client or a group, which the core asks.
struct AskedFunctions: Sendable {
    let auth: AuthFunctions?
    let cache: CacheFunctions?
    let transport: TransportFunctions?

    init(_ options: ClientOptions) {
        auth = options.auth.map { AuthFunctions($0, options.warn) }
        cache = options.cache?.store.map { CacheFunctions($0, options.warnOfStore) }
        transport = options.httpTransport.map { TransportFunctions($0) }
    }
}
