// Parts of the options of a client and of a request that are not options themselves.

extension ClientOptions {
    /// Hears what is wrong but no reason to fail.
    public typealias WarningListener = @Sendable (_ message: String) -> Void

    /// Hears a log message of a server.
    public typealias LogListener = @Sendable (_ level: Context.LogLevel, _ logger: String?, _ data: JSONValue) -> Void

    static let toStandardError: WarningListener = { StandardError.write("\($0)\n") }

    /// The core's defaults, and a revision that is read from somewhere.
    @_disfavoredOverload
    public init(revision: String?) { self.init(revision: revision.map(ProtocolRevision.init(rawValue:))) }
}

/// The part of the environment that a program gets of the one that starts it.
public enum InheritEnv: Sendable, Hashable {
    /// All of it.
    case all
    /// A short list of what programs need, in which no secret is: `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`.
    case safe
    /// The same and these.
    case names([String])

    var json: JSONValue {
        switch self {
        case .all: true
        case .safe: false
        case .names(let names): .array(names.map { .string($0) })
        }
    }
}

extension RequestOptions {
    /// The progress of the peer.
    public struct Progress: Sendable, Hashable {
        /// Grows with every report.
        public var progress: Double
        /// The number that `progress` grows to, when that is known.
        public var total: Double?
        /// Words for people about what is going on.
        public var message: String?
    }

    /// Empty when every option is the default.
    var json: String {
        if timeout == nil, maxTimeout == nil, onProgress == nil, task == nil, !idempotent, !untilOver,
            follows == nil, !anyResult, cache == .default, traceContext == nil
        {
            return ""
        }
        var options = OptionsText()
        options.set("timeout", duration: timeout)
        // In the core's words, zero is at once and null is never.
        if timeout == .zero { options.set("timeout", JSONValue.null) }
        if maxTimeout != .zero { options.set("max_timeout", duration: maxTimeout) }
        if idempotent { options.set("idempotent", true) }
        if onProgress != nil { options.set("progress", true) }
        options.set("task", task?.json)
        if untilOver { options.set("wait", true) }
        options.set("follow", number: follows.map { Int($0) })
        if anyResult { options.set("any_result", true) }
        if cache != .default { options.set("cache", text: cache.rawValue) }
        options.set("trace_context", traceContext?.json)
        return options.json.description
    }
}

/// An event of a request whose progress is listened to; see `Client.toolEvents`.
public enum RequestEvent<Result: Sendable>: Sendable {
    /// The progress of the peer.
    case progress(RequestOptions.Progress)
    /// Its outcome: the last of them.
    case result(Result)
}

/// A message from the peer that wants no answer.
public struct PeerNotification: Sendable, Hashable {
    /// Such as `notifications/message`.
    public var method: String
    /// Its parameters, nil when it has none.
    public var params: JSONValue?
}
