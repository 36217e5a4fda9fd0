#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// An error of this library, one case for each party at fault; the same kinds in every language.
///
/// A tool that fails is not an error: `callTool` returns a result whose `isError` is true.
public enum TricornError: Error, Sendable, Hashable {
    /// A JSON-RPC error: sent by the peer, or thrown by a handler to be sent to it as it is.
    case rpc(code: Int, message: String, data: JSONValue? = nil)
    /// The peer broke the protocol.
    case peerMisbehaved(String)
    /// The peer, or the negotiated revision, does not offer what was asked for.
    case unsupported(String)
    /// No answer in time.
    case timeout(String)
    /// The operation was cancelled, but not by cancelling the calling task: that throws `CancellationError`.
    case cancelled(String)
    /// The connection is closed.
    case closed(String)
    /// Bytes could not be moved: process, socket, HTTP status.
    case transport(String)
    /// Authorization is missing or was refused.
    case auth(String)
    /// This library was called wrongly.
    case misuse(String)

    /// The kind's name, the same in every language: `rpc`, `peer_misbehaved`, …
    public var kind: Kind {
        switch self {
        case .rpc: .rpc
        case .peerMisbehaved: .peerMisbehaved
        case .unsupported: .unsupported
        case .timeout: .timeout
        case .cancelled: .cancelled
        case .closed: .closed
        case .transport: .transport
        case .auth: .auth
        case .misuse: .misuse
        }
    }

    /// Words for people about what went wrong.
    public var message: String {
        switch self {
        case .rpc(_, let message, _), .peerMisbehaved(let message), .unsupported(let message), .timeout(let message),
            .cancelled(let message), .closed(let message), .transport(let message), .auth(let message),
            .misuse(let message):
            message
        }
    }

    /// The JSON-RPC error code; nil for every kind but `rpc`.
    public var code: Int? { if case .rpc(let code, _, _) = self { code } else { nil } }

    /// The JSON-RPC error's `data`.
    public var data: JSONValue? { if case .rpc(_, _, let data) = self { data } else { nil } }
}

extension TricornError {
    /// There is no resource at `uri`: thrown by a resource's handler. −32002, which the core turns into what newer revisions
    /// want: −32602 with the same `data`.
    public static func resourceNotFound(_ uri: String) -> TricornError {
        .rpc(code: -32002, message: "there is no resource \"\(uri)\"", data: ["uri": .string(uri)])
    }

    /// True if an error of `Client.readResource` says that there is no such resource. In every revision: the code is −32002,
    /// since 2026-07-28 it is −32602, and `data` name the URI.
    public var isResourceNotFound: Bool {
        code == -32002 || (code == -32602 && data?["uri"]?.stringValue != nil)
    }

    /// The user has to visit these pages first (−32042); the client sends the request again when they are done. In revision
    /// 2026-07-28 each page is a question of the call, and the handler runs again, more and more seldom, until it no longer
    /// throws; a user who declines ends it (−32603). `misuse` instead, when there is no page, or the URL of one is neither
    /// http nor https.
    public static func urlElicitationRequired(
        _ elicitations: [URLElicitation], message: String = "the user has to visit a page first"
    ) -> TricornError {
        let pages = JSONValue.array(elicitations.map(\.json))
        let writer = JSONWriter()
        writer.append(pages)
        do {
            try Tricorn.core { try writer.withData { try coreCheckPages(pages: $0) } }
        } catch {
            return TricornError.from(error)
        }
        return .rpc(code: -32042, message: message, data: ["elicitations": pages])
    }

    /// The pages of `urlElicitationRequired`; empty for every other error.
    public var urlElicitations: [URLElicitation] {
        guard code == -32042 else { return [] }
        return (data?["elicitations"]?.arrayValue ?? []).compactMap { URLElicitation(json: $0) }
    }
}

extension TricornError: CustomStringConvertible {
    /// Kind and message; of a JSON-RPC error message and code. A peer's control characters are escaped, and what is too
    /// long to be shown is cut.
    public var description: String {
        if case .rpc(let code, let message, _) = self { return "\(printable(message)) (JSON-RPC error \(code))" }
        return "\(kind): \(printable(message))"
    }
}

/// The most characters of a text that are shown.
private let shownCharacters = 8192

/// A text that may be a peer's as a terminal or a log can show it: no control characters but line breaks and tabs, and not
/// for ever.
private func printable(_ text: String) -> String {
    var shown = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
        if count == shownCharacters { return shown + "… (\(text.utf8.count) bytes)" }
        switch scalar.value {
        case 9, 10: shown.unicodeScalars.append(scalar)
        case 0..<32, 0x7f..<0xa0:
            let hex = String(scalar.value, radix: 16)
            shown += "\\x" + (hex.count < 2 ? "0" : "") + hex
        default: shown.unicodeScalars.append(scalar)
        }
    }
    return shown
}

extension TricornError: LocalizedError {
    /// The same as `description`: what the log says.
    public var errorDescription: String? { description }

    /// The message, without the kind.
    public var failureReason: String? { message }

    /// The remedy for a mistake of this program, where the message says it, behind a semicolon.
    public var recoverySuggestion: String? {
        guard case .misuse(let message) = self else { return nil }
        let parts = message.split(separator: "; ")
        return parts.count > 1 ? parts.last.map(String.init) : nil
    }
}

/// Thrown by a tool's handler to tell the model what failed; the text is shown to it as it is.
///
/// The text of every other error stays on this side: the model learns only its type.
public struct ToolError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The text that the model reads.
    public var message: String

    /// An error with this text.
    public init(_ message: String) { self.message = message }

    /// The text.
    public var description: String { message }
}

extension ToolError: LocalizedError {
    /// The text.
    public var errorDescription: String? { message }
}

extension TricornError {
    /// The public error for one of the core; the only place that knows the kinds' names.
    init(_ error: CoreError) {
        switch error {
        case .Failed(let kind, let message, let code, let data):
            switch kind {
            case "rpc":
                self = .rpc(
                    code: Int(code ?? -32603), message: message, data: data.flatMap { try? JSONValue(parsing: $0) })
            case "peer_misbehaved": self = .peerMisbehaved(message)
            case "unsupported": self = .unsupported(message)
            case "timeout": self = .timeout(message)
            case "cancelled": self = .cancelled(message)
            case "closed": self = .closed(message)
            case "transport": self = .transport(message)
            case "auth": self = .auth(message)
            default: self = .misuse(message)
            }
        }
    }

    /// As the core writes it into what it settles.
    init(json: JSONValue) {
        self.init(
            .Failed(
                kind: json["kind"]?.stringValue ?? "misuse", message: json["message"]?.stringValue ?? "",
                code: json["code"]?.intValue.map { Int64($0) }, data: json["data"]?.description))
    }

    /// This error, of a declaration, with what it is about in front: `tool "add"`, if it names no tool there itself.
    func about(_ subject: String) -> TricornError {
        let kind = subject.prefix { $0 != "\"" } + "\""
        guard case .misuse(let message) = self, !message.hasPrefix(kind) else { return self }
        return .misuse("\(subject): \(message)")
    }

    /// This error in the core's words.
    var core: CoreError {
        .Failed(kind: kind.rawValue, message: message, code: code.map { Int64($0) }, data: data?.description)
    }

    /// The error that a call into the core threw: its own errors, or a panic, which is an ordinary error here.
    static func from(_ error: any Error) -> TricornError {
        switch error {
        case let error as TricornError: error
        case let error as CoreError: TricornError(error)
        default: .misuse("a defect in Tricorn: \(error)")
        }
    }
}

/// Runs `body`, which calls into the core, so that it throws nothing but `TricornError`.
@inline(__always)
func core<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw TricornError.from(error) }
}

extension DecodingError {
    /// The error in the words of the core's validation: `argument "a": expected integer, got "x"`.
    func text(subject: String) -> String {
        let context: Context
        switch self {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .keyNotFound(_, let found),
            .dataCorrupted(let found):
            context = found
        @unknown default: return "\(subject): \(self)"
        }
        let path = JSONPath.text(context.codingPath)
        return path.isEmpty
            ? "\(subject)s: \(context.debugDescription)"
            : "\(subject) \"\(path)\": \(context.debugDescription)"
    }
}
