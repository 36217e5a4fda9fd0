/// Options of one request.
public struct RequestOptions: Sendable {
    /// Without an answer or progress for so long, the request fails; the client's `requestTimeout` when nil, no limit
    /// when `.zero`.
    public var timeout: Duration?
    /// A limit that progress does not move; none when nil or `.zero`.
    public var maxTimeout: Duration?
    /// It may be sent again although nobody knows whether it was carried out: after a lost session, and in revision
    /// 2026-07-28 once when the connection breaks off before the answer. Listing, reading and the like always may.
    public var idempotent: Bool
    /// Sent as the request's `_meta`, beside what the call itself puts there; of members of the same name, these count.
    public var meta: JSONObject?
    /// It is to run as a task of the peer, of which the result is waited for (2025-11-25, experimental): a tool's call, or
    /// sampling and elicitation of a handler. Cancelling the call cancels the task. In 2026-07-28 the server decides what is
    /// one; there this only refuses, with `TricornError.unsupported`, to call a tool where there can be none.
    public var task: TaskRequest?
    /// Use of the answers that the client keeps (2026-07-28).
    public var cache: CacheMode
    /// Takes a result of a type (`resultType`, 2026-07-28) that this library does not know, such as an extension's, as it is;
    /// otherwise that is `TricornError.peerMisbehaved`.
    public var anyResult: Bool
    /// The trace that it belongs to; what `ClientOptions.traceContext` says when nil, and of what a handler asks the trace of
    /// its call. What `meta` says comes first.
    public var traceContext: TraceContext?
    /// Called with progress reports, in order, before the request returns, in a thread of its own: it may block. The newest
    /// 1024 wait for a slow one; of a request that fails, what waits is dropped.
    public var onProgress: (@Sendable (Progress) -> Void)?
    /// True for `tasks/get` to be answered when the task is finished.
    var untilOver = false
    /// A number for `tasks/get` to be answered at the task's next change, of those that have this number, beginning
    /// with how it is.
    var follows: UInt64?

    /// Every option has its default.
    public init(
        timeout: Duration? = nil, maxTimeout: Duration? = nil, idempotent: Bool = false,
        meta: JSONObject? = nil, task: TaskRequest? = nil, cache: CacheMode = .default, anyResult: Bool = false,
        traceContext: TraceContext? = nil,
        onProgress: (@Sendable (Progress) -> Void)? = nil
    ) {
        self.timeout = timeout
        self.maxTimeout = maxTimeout
        self.idempotent = idempotent
        self.meta = meta
        self.task = task
        self.cache = cache
        self.anyResult = anyResult
        self.traceContext = traceContext
        self.onProgress = onProgress
    }

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
