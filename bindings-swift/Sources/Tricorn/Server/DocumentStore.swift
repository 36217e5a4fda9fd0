#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A text in a store, and its version.
public struct Document: Sendable, Hashable {
    /// Another one each time that the text is written: visible ASCII of at most 32 bytes, used once.
    public var version: String
    /// JSON without control characters, of some hundred bytes mostly, and of at most 16 MiB.
    public var text: String

    /// A text of this version.
    public init(version: String, text: String) {
        self.version = version
        self.text = text
    }

    var json: JSONValue { ["version": .string(version), "text": .string(text)] }
}

/// One write to a store.
public struct DocumentWrite: Sendable, Hashable {
    /// Visible ASCII of at most 512 bytes, in which letters of either case are different.
    public var key: String
    /// The content of the key from now on; nil when that is nothing.
    public var document: Document?
    /// Whole seconds, at least one, after which nobody needs it any more, in place of those before. It may stay there
    /// for longer.
    public var ttl: Duration

    /// A write of `document` under `key`, or its removal.
    public init(key: String, document: Document?, ttl: Duration) {
        self.key = key
        self.document = document
        self.ttl = ttl
    }

    init(json: JSONValue) {
        let document = json["document"]?.objectValue.map {
            Document(version: $0["version"]?.stringValue ?? "", text: $0["text"]?.stringValue ?? "")
        }
        let ttl = Duration.seconds(json["ttl"]?.intValue ?? 0)
        self.init(key: json["key"]?.stringValue ?? "", document: document, ttl: ttl)
    }
}

/// A store of the program's own that makes one server of several processes, such as a table of a database: documents,
/// which are texts under keys, each with a version: `StoreOptions(documents: store)`.
///
/// Two operations are enough: documents are read, and written all or none if nobody has written some others meanwhile.
/// A store whose documents are in a dictionary, for one process:
///
/// ```swift
/// actor Kept: DocumentStore {
///     private var kept: [String: Document] = [:]
///
///     func get(_ keys: [String]) -> [Document?] { keys.map { kept[$0] } }
///
///     func commit(expected: [String: String?], writes: [DocumentWrite]) -> Bool {
///         guard expected.allSatisfy({ key, version in kept[key]?.version == version }) else { return false }
///         for write in writes { kept[write.key] = write.document }
///         return true
///     }
/// }
/// ```
///
/// Functions are called several times at once. An operation that takes longer than 2 seconds counts as failed and is
/// cancelled. Requests that need the store are refused (503) while it fails, and the rest goes on: a line on standard
/// error says so once, and the server's `onError`, where it is given, hears what a function throws each time, under the
/// name `store`. A `TricornError.misuse` of `get` or `commit` refuses that one question, such as one with a text that is
/// too long for the database, and the others go on. `checkDocumentStore` tries all rules.
public protocol DocumentStore: Sendable {
    /// The documents under these keys, in their order, as they are at one time; at most 64. Nil for a key without one.
    func get(_ keys: [String]) async throws -> [Document?]
    /// Does all of `writes` in one step, at most 1,024, and returns true, if the document under each key of `expected`
    /// still has this version, or is still not there where it is nil. Else does nothing, and returns false.
    func commit(expected: [String: String?], writes: [DocumentWrite]) async throws -> Bool
    /// True if `wait` tells of changes. By default it does not, and each process reads the store ten times in a second.
    /// It is asked once, when the server is made; of an actor it is `nonisolated`.
    var waits: Bool { get }
    /// Waits until a document under one of these keys has another version than this, or for `timeout`; too early is no
    /// error.
    func wait(seen: [String: String?], timeout: Duration) async throws
    /// True if `now` is the time to go by, for machines whose clocks do not agree to a second. By default the clock of
    /// this machine is right. It is asked once, when the server is made; of an actor it is `nonisolated`.
    var tellsTime: Bool { get }
    /// The store's time, which is asked for once in a minute.
    func now() async throws -> Date
}

extension DocumentStore {
    /// False: it cannot tell of changes.
    public var waits: Bool { false }
    /// Returns at once; it is not called.
    public func wait(seen: [String: String?], timeout: Duration) async throws {}
    /// False: the clock of this machine is right.
    public var tellsTime: Bool { false }
    /// The time of this machine; it is not called.
    public func now() async throws -> Date { Date() }
}

/// A store among options: equal to itself.
final class OwnDocuments: Sendable, Hashable {
    let store: any DocumentStore

    init(_ store: any DocumentStore) { self.store = store }

    static func == (one: OwnDocuments, other: OwnDocuments) -> Bool { one === other }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A server's store, in the table of handlers for as long as it is needed.
final class DocumentFunctions: Sendable {
    /// The members of the core's option `store` that stand for the functions.
    let members: JSONObject
    private let number: UInt32

    /// `report` hears of all that the store throws.
    init(_ store: any DocumentStore, _ report: @escaping Report) {
        number = Host.shared.add("store", "the store", report, all: true) {
            try await Self.perform($0, store)
        }
        members = [
            "documents": .int(Int(number)), "waits": .bool(store.waits), "tells_time": .bool(store.tellsTime),
        ]
    }

    private static func perform(_ asked: JSONValue, _ store: any DocumentStore) async throws -> JSONValue {
        switch asked["op"]?.stringValue {
        case "get":
            let keys = (asked["keys"]?.arrayValue ?? []).compactMap(\.stringValue)
            return ["documents": .array(try await store.get(keys).map { $0?.json ?? .null })]
        case "commit":
            let writes = (asked["writes"]?.arrayValue ?? []).map { DocumentWrite(json: $0) }
            return ["done": .bool(try await store.commit(expected: versions(asked["expected"]), writes: writes))]
        case "wait":
            let timeout = Duration.seconds(asked["timeout"]?.doubleValue ?? 0)
            try await store.wait(seen: versions(asked["seen"]), timeout: timeout)
        case "now": return ["now": .double(try await store.now().timeIntervalSince1970)]
        default: throw TricornError.unsupported("a store can not \(asked["op"] ?? .null)")
        }
        return [:]
    }

    /// Versions by keys; nil where nothing is to be there.
    private static func versions(_ json: JSONValue?) -> [String: String?] {
        var versions: [String: String?] = [:]
        for (key, version) in json?.objectValue ?? [:] { versions.updateValue(version.stringValue, forKey: key) }
        return versions
    }

    deinit { Host.shared.removeHandlers([number]) }
}

extension Server {
    /// Tries the rules of the store.
    func checkStore() async throws {
        try check()
        _ = try await Host.shared.perform { [core] op in try core.checkStore(op: op) }
    }
}
