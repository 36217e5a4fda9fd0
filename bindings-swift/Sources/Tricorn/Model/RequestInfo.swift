/// A request, seen from its handler: the same in every revision of the protocol.
public struct RequestInfo: Sendable, Hashable {
    /// Everything below, and what later versions add, as JSON.
    public let json: JSONValue

    /// The JSON-RPC id, a string or a number.
    public var id: JSONValue { json["requestId"] ?? .null }
    /// Such as `tools/call`.
    public var method: String { json["method"]?.stringValue ?? "" }
    /// The revision in force, such as `2025-11-25`.
    public var protocolVersion: ProtocolRevision { .init(rawValue: json["protocolVersion"]?.stringValue ?? "") }
    /// `legacy` for revisions opened by `initialize`, `modern` for later ones.
    public var era: ProtocolEra { .init(rawValue: json["era"]?.stringValue ?? "") }
    /// The client's name, version and so on.
    public var clientInfo: Types.Implementation? { .init(lenient: json["clientInfo"]) }
    /// The client's declared capabilities, as the protocol has them.
    public var clientCapabilities: Types.ClientCapabilities { .init(checked: json["clientCapabilities"] ?? [:]) }
    /// Nil when the client wants no progress.
    public var progressToken: JSONValue? { json["progressToken"] }
    /// The least level of log messages that the client wants; nil when it has not said.
    public var logLevel: Context.LogLevel? { json["logLevel"]?.stringValue.flatMap(Context.LogLevel.init) }
    /// The request's `_meta`.
    public var meta: JSONValue? { json["meta"] }
    /// Names the task that the request has run as from its beginning, if it has.
    public var taskID: String? { json["taskId"]?.stringValue }
    /// `stdio`, `http` or `memory`.
    public var transport: TransportKind { .init(rawValue: json["transport"]?.stringValue ?? "") }
    /// The `Mcp-Session-Id` of a legacy HTTP connection.
    public var sessionID: String? { json["sessionId"]?.stringValue }
    /// The HTTP request's headers, names in lower case, values of repeated ones joined with `, `.
    public var headers: [String: String] {
        let pairs = (json["headers"]?.arrayValue ?? []).map { pair in
            ((pair[0]?.stringValue ?? "").lowercased(), pair[1]?.stringValue ?? "")
        }
        return Dictionary(pairs) { "\($0), \($1)" }
    }
}

extension RequestInfo: Guarded {
    /// Without headers, `_meta` and what is known of who sent it, beyond the principal.
    var shown: KeyValuePairs<String, Any> {
        [
            "id": id, "method": method, "protocolVersion": protocolVersion, "transport": transport,
            "taskID": taskID as Any, "principal": principal as Any,
        ]
    }
}
