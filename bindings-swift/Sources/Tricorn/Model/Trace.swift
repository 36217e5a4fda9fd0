/// The trace that a request belongs to, each member as its W3C header has it.
///
/// In a request's `_meta` the members have the same names. What is malformed there is left out; what a program gives is
/// checked when the request is made, with `TricornError.misuse` that names the member.
public struct TraceContext: Sendable, Hashable {
    /// `version-traceid-parentid-flags`, such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
    public var traceparent: String?
    /// Notes that tracing systems keep beside it, `key=value,…`; only with a `traceparent`.
    public var tracestate: String?
    /// Values that the program gave the trace on its way, `key=value,…`, percent-encoded; 8,192 bytes at most.
    public var baggage: String?

    /// A trace of these.
    public init(traceparent: String? = nil, tracestate: String? = nil, baggage: String? = nil) {
        self.traceparent = traceparent
        self.tracestate = tracestate
        self.baggage = baggage
    }

    init?(json: JSONValue?) {
        guard let json, json.objectValue != nil else { return nil }
        self.init(
            traceparent: json["traceparent"]?.stringValue, tracestate: json["tracestate"]?.stringValue,
            baggage: json["baggage"]?.stringValue)
    }

    var json: JSONValue {
        var options = OptionsText()
        options.set("traceparent", text: traceparent)
        options.set("tracestate", text: tracestate)
        options.set("baggage", text: baggage)
        return options.json
    }
}

extension RequestInfo {
    /// The trace that the request belongs to, as its `_meta` says it.
    public var traceContext: TraceContext? { TraceContext(json: json["traceContext"]) }
}

extension RequestContext {
    /// The trace that the request belongs to; what a handler asks belongs to it, too. Of a request that a client sends: what
    /// it will carry. Nil: nobody said, or the call is over.
    public var traceContext: TraceContext? { request?.traceContext }
}
