/// A text of which the library knows the usual values; any other is kept.
public protocol _OpenText:
    RawRepresentable, Hashable, Sendable, Codable, ExpressibleByStringLiteral, CustomStringConvertible
where RawValue == String {
    /// Any text, also one that is not listed.
    init(rawValue: String)
}

extension _OpenText {
    /// The text.
    public init(stringLiteral value: String) { self.init(rawValue: value) }

    /// The text.
    public var description: String { rawValue }
}

/// A revision of the protocol, or all that open a connection alike.
///
/// ```swift
/// let client = try await connect("https://example.org/mcp", ClientOptions(revision: .v20251125))
/// ```
/// One that is read from a configuration is `ProtocolRevision(rawValue: text)`.
public struct ProtocolRevision: _OpenText {
    /// 2024-11-05.
    public static let v20241105 = ProtocolRevision(rawValue: "2024-11-05")
    /// 2025-03-26.
    public static let v20250326 = ProtocolRevision(rawValue: "2025-03-26")
    /// 2025-06-18.
    public static let v20250618 = ProtocolRevision(rawValue: "2025-06-18")
    /// 2025-11-25.
    public static let v20251125 = ProtocolRevision(rawValue: "2025-11-25")
    /// 2026-07-28.
    public static let v20260728 = ProtocolRevision(rawValue: "2026-07-28")
    /// The newest of those that `initialize` opens.
    public static let legacy = ProtocolRevision(rawValue: "legacy")
    /// The newest of those without a handshake.
    public static let modern = ProtocolRevision(rawValue: "modern")

    /// As on the wire, such as `2025-11-25`.
    public let rawValue: String

    /// Any revision, also one that is not listed.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// The way a connection is opened.
public struct ProtocolEra: _OpenText {
    /// By `initialize`: up to 2025-11-25.
    public static let legacy = ProtocolEra(rawValue: "legacy")
    /// Without a handshake: from 2026-07-28 on.
    public static let modern = ProtocolEra(rawValue: "modern")

    /// `legacy` or `modern`.
    public let rawValue: String

    /// Any era, also one that is not listed.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// The way that messages take.
public struct TransportKind: _OpenText {
    /// The standard input and output of a process.
    public static let stdio = TransportKind(rawValue: "stdio")
    /// HTTP, Streamable or the older HTTP+SSE.
    public static let http = TransportKind(rawValue: "http")
    /// Within this process.
    public static let memory = TransportKind(rawValue: "memory")

    /// `stdio`, `http` or `memory`.
    public let rawValue: String

    /// Any transport, also one that is not listed.
    public init(rawValue: String) { self.rawValue = rawValue }
}

extension TricornError {
    /// The kind of an error, the same in every language.
    public struct Kind: _OpenText {
        /// The peer answered with a JSON-RPC error.
        public static let rpc = Kind(rawValue: "rpc")
        /// The peer broke the protocol.
        public static let peerMisbehaved = Kind(rawValue: "peer_misbehaved")
        /// The peer or the revision does not have it.
        public static let unsupported = Kind(rawValue: "unsupported")
        /// No answer in time.
        public static let timeout = Kind(rawValue: "timeout")
        /// The operation was cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// The connection is closed.
        public static let closed = Kind(rawValue: "closed")
        /// Bytes could not be moved.
        public static let transport = Kind(rawValue: "transport")
        /// Authorization is missing or was refused.
        public static let auth = Kind(rawValue: "auth")
        /// This library was called wrongly.
        public static let misuse = Kind(rawValue: "misuse")

        /// `rpc`, `peer_misbehaved`, …
        public let rawValue: String

        /// Any kind, also one that is not listed.
        public init(rawValue: String) { self.rawValue = rawValue }
    }
}

extension _WireObject {
    /// A field by its name on the wire, also one that the schema does not name.
    public subscript(name: String) -> JSONValue? { fields.object[name] }
}

extension Types.Implementation {
    /// A peer's description of itself. Peers leave out what the schema requires: that is empty then.
    init?(lenient json: JSONValue?) {
        guard var object = json?.objectValue else { return nil }
        for name in ["name", "version"] where object[name]?.stringValue == nil { object[name] = "" }
        self.init(checked: .object(object))
    }
}

extension Server {
    /// Gauges of a server.
    public struct Metrics: Sendable, Hashable {
        /// As the core has them.
        public let json: JSONValue

        /// Pipes, sockets, and clients in this process.
        public var connections: Int { json["connections"]?.intValue ?? 0 }
        /// Calls that run, of all transports.
        public var inFlight: Int { json["in_flight"]?.intValue ?? 0 }
        /// Clients that listen (2026-07-28).
        public var listeners: Int { json["listeners"]?.intValue ?? 0 }
        /// Tasks that are kept, finished or not.
        public var tasks: Int { json["tasks"]?.intValue ?? 0 }
        /// Bytes that the whole process keeps for its peers, of at most `maxMemory`.
        public var memory: Int { json["memory"]?.intValue ?? 0 }
        /// Sessions of HTTP.
        public var sessions: Int { json["sessions"]?.intValue ?? 0 }
        /// Streams of HTTP.
        public var streams: Int { json["streams"]?.intValue ?? 0 }
        /// The counts of `Middleware.timing`.
        public var timing: JSONValue? { json["timing"] }

        /// A gauge by its name.
        public subscript(name: String) -> JSONValue? { json[name] }
    }
}

extension Client {
    /// Gauges of a client.
    public struct Metrics: Sendable, Hashable {
        /// As the core has them.
        public let json: JSONValue

        /// Requests that wait for an answer.
        public var awaited: Int { json["awaited"]?.intValue ?? 0 }
        /// The cache of the server's answers.
        public var cache: Cache? { json["cache"].map { Cache(json: $0) } }
        /// The counts of `Middleware.timing`.
        public var timing: JSONValue? { json["timing"] }

        /// A gauge by its name.
        public subscript(name: String) -> JSONValue? { json[name] }

        /// Gauges of the cache of the server's answers.
        public struct Cache: Sendable, Hashable {
            /// As the core has it.
            public let json: JSONValue

            /// Answers that are kept.
            public var entries: Int { json["entries"]?.intValue ?? 0 }
            /// Bytes that they take.
            public var bytes: Int { json["bytes"]?.intValue ?? 0 }
            /// Requests that were answered by what was kept.
            public var hits: Int { json["hits"]?.intValue ?? 0 }
            /// Requests that were not.
            public var misses: Int { json["misses"]?.intValue ?? 0 }
            /// Answers that were too old.
            public var stale: Int { json["stale"]?.intValue ?? 0 }
            /// Failures of a `CacheStore`.
            public var failures: Int { json["failures"]?.intValue ?? 0 }
        }
    }
}
