#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// The request that a function takes part in, as all of them know it.
public protocol RequestContext: Sendable {
    /// The request and its sender; nil when the call is over.
    var request: RequestInfo? { get }
    /// Values that middleware and handlers of this request share.
    var values: RequestValues { get }
    /// True once the request is cancelled or the peer has gone; the task is cancelled then, too.
    var isCancelled: Bool { get }
}

/// The call of a running handler of a server, by which it can tell and ask the client something meanwhile.
public struct Context: RequestContext {
    let call: Call

    var key: UInt64 { call.key }

    init(_ call: Call) { self.call = call }

    /// That of the handler that runs here: for code that is not handed it, such as the backend of a logging library.
    public static var current: Context? { Call.current.flatMap { $0.side == .server ? Context($0) : nil } }

    /// The importance of a log message, least important first.
    public enum LogLevel: String, Sendable, Codable, CaseIterable {
        case debug, info, notice, warning, error, critical, alert, emergency
    }

    /// The server that the handler belongs to, such as for `notifyResourceUpdated`: a handler that captures it keeps it for ever.
    /// Nil when nobody else holds it any more.
    public var server: Server? { call.subject.state?.server }

    /// True once the client has cancelled the call or has gone; the task is cancelled then, too.
    public var isCancelled: Bool { Task.isCancelled }

    /// Values that middleware and handlers of this request share, by type.
    public var values: RequestValues { call.values }

    /// Knowledge of the web framework around a mounted server about the request: `HTTPRequest.host`. Nil elsewhere.
    public var host: (any Sendable)? { call.host }

    /// The same, when it is a `Known`: `guard let user = context.host(as: User.self) else { throw ToolError("log in first") }`.
    public func host<Known: Sendable>(as type: Known.Type = Known.self) -> Known? { call.host as? Known }

    /// Tells the client how far the work is. Nothing is sent when it did not ask for that.
    ///
    /// - Parameter progress: grows with every call, up to `total` when that is known.
    public func progress(_ progress: Double, total: Double? = nil, message: String? = nil) {
        call.progress(progress, total: total, message: message)
    }

    /// Sends the client a log message, when it wants messages of that level. `data` is anything that encodes to JSON.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
    )
    public func log(_ level: LogLevel = .info, _ data: some Encodable, logger: String? = nil) {
        send(level, data, logger)
    }

    func send(_ level: LogLevel, _ data: some Encodable, _ logger: String?) {
        guard let writer = try? JSONWriter.encode(data) else { return send(level, String(describing: data), logger) }
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
    public var request: RequestInfo? { call.info.map { RequestInfo(json: $0) } }

    /// The settings with which the client declares an extension of this server, such as `com.example/search`. Nil when it
    /// does not, or the server does not offer it: nothing of it may be used then.
    public func `extension`(_ id: String) -> JSONObject? {
        guard let state = call.subject.state, state.extensions.with({ $0.contains(id) }) else { return nil }
        return request?.clientCapabilities["extensions"]?[id]?.objectValue
    }
}

/// The request that a client's function takes part in: one of the server's that it answers, or one of
/// the client's own that it stands around as middleware.
public struct ClientContext: RequestContext {
    let call: Call

    init(_ call: Call) { self.call = call }

    /// True once the request is cancelled or the server has gone; the task is cancelled then, too.
    public var isCancelled: Bool { Task.isCancelled }

    /// Values that middleware and handlers of this request share, by type.
    public var values: RequestValues { call.values }

    /// Tells the server how far the answer is. Nothing is sent when it did not ask for that.
    ///
    /// - Parameter progress: grows with every call, up to `total` when that is known.
    public func progress(_ progress: Double, total: Double? = nil, message: String? = nil) {
        call.progress(progress, total: total, message: message)
    }

    /// The request; nil when the call is over.
    public var request: RequestInfo? { call.info.map { RequestInfo(json: $0) } }
}

/// Values that middleware and handlers of one request share: at most one value of each type.
///
/// ```swift
/// context.values[User.self] = user
/// guard let user = context.values[User.self] else { throw ToolError("log in first") }
/// ```
public final class RequestValues: Sendable {
    private let held = Locked([ObjectIdentifier: any Sendable]())

    /// The value of this type; assigning nil removes it.
    public subscript<Value: Sendable>(_ type: Value.Type) -> Value? {
        get { held.with { $0[ObjectIdentifier(type)] } as? Value }
        set {
            // What was there is let go outside of the lock.
            _ = held.with { held -> (any Sendable)? in
                let before = held[ObjectIdentifier(type)]
                held[ObjectIdentifier(type)] = newValue
                return before
            }
        }
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
