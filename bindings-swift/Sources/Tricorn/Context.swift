#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// What a running handler knows of its call, and what it can tell the client meanwhile.
public struct Context: Sendable {
    let key: UInt64

    /// That of the handler that runs here: for code that is not handed it, such as the backend of a logging library.
    @TaskLocal public static var current: Context?

    /// How important a log message is, least important first.
    public enum LogLevel: String, Sendable, Codable, CaseIterable {
        case debug, info, notice, warning, error, critical, alert, emergency
    }

    /// True once the client has cancelled the call or has gone; the task is cancelled then, too.
    public var isCancelled: Bool { Task.isCancelled }

    /// Tells the client how far the work is. Nothing is sent when it did not ask for that.
    ///
    /// - Parameter progress: grows with every call, up to `total` when that is known.
    public func progress(_ progress: Double, total: Double? = nil, message: String? = nil) {
        _ = try? Host.shared.bridge.progress(key: key, progress: progress, total: total, message: message)
    }

    /// Sends the client a log message, when it wants messages of that level. `data` is anything that encodes to JSON.
    public func log(_ level: LogLevel = .info, _ data: some Encodable, logger: String? = nil) {
        guard let writer = try? JSONWriter.encode(data) else {
            return log(level, String(describing: data), logger: logger)
        }
        _ = try? writer.withData {
            try Host.shared.bridge.log(key: key, level: level.rawValue, logger: logger, data: $0)
        }
    }

    /// Throws the protocol's error when the client has not declared `capability`, such as `sampling` or
    /// `elicitation.url`; let it pass.
    public func require(_ capability: String) throws {
        try core { try Host.shared.bridge.require(key: key, capability: capability) }
    }

    /// The request and its sender; nil when the call is over.
    public var request: RequestInfo? {
        guard let payload = try? Host.shared.bridge.context(key: key), let text = try? JSONText(payload) else {
            return nil
        }
        return RequestInfo(json: JSONValue(text, 0))
    }

    func answer(with answer: Answer) {
        guard let bridge = try? Host.shared.bridge else { return }
        do {
            switch answer {
            case .text(var text):
                _ = try text.withUTF8 { try bridge.completeText(key: key, utf8: Data(borrowing: $0)) }
            case .value(let writer): _ = try writer.withData { try bridge.completeValue(key: key, json: $0) }
            case .result(let writer): _ = try writer.withData { try bridge.completeResult(key: key, json: $0) }
            case .failed(let text): _ = try bridge.completeFailed(key: key, text: text)
            case .error(let code, let message, let data):
                _ = try bridge.completeError(key: key, code: Int64(code), message: message, data: data?.description)
            }
        } catch {
            _ = try? bridge.completeError(key: key, code: -32603, message: "internal error", data: nil)
        }
    }
}

/// A request, seen from its handler: the same in every revision of the protocol.
public struct RequestInfo: Sendable, Hashable {
    /// Everything below, and what later versions add, as JSON.
    public let json: JSONValue

    /// The JSON-RPC id, a string or a number.
    public var id: JSONValue { json["requestId"] ?? .null }
    /// Such as `tools/call`.
    public var method: String { json["method"]?.stringValue ?? "" }
    /// The revision in force, such as `2025-11-25`.
    public var protocolVersion: String { json["protocolVersion"]?.stringValue ?? "" }
    /// `legacy` for revisions opened by `initialize`, `modern` for later ones.
    public var era: String { json["era"]?.stringValue ?? "" }
    /// The client's name, version and so on.
    public var clientInfo: JSONValue? { json["clientInfo"] }
    /// What the client has declared, as the protocol has it.
    public var clientCapabilities: JSONValue { json["clientCapabilities"] ?? [:] }
    /// Nil when the client wants no progress.
    public var progressToken: JSONValue? { json["progressToken"] }
    /// The least level of log messages that the client wants; nil when it has not said.
    public var logLevel: Context.LogLevel? { json["logLevel"]?.stringValue.flatMap(Context.LogLevel.init) }
    /// The request's `_meta`.
    public var meta: JSONValue? { json["meta"] }
    /// `stdio`, `http` or `memory`.
    public var transport: String { json["transport"]?.stringValue ?? "" }
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

extension Data {
    /// Bytes that belong to someone else, who keeps them until this is gone.
    init(borrowing bytes: UnsafeBufferPointer<UInt8>) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            self.init()
            return
        }
        self.init(bytesNoCopy: UnsafeMutableRawPointer(mutating: base), count: bytes.count, deallocator: .none)
    }
}
