internal import TricornCore

extension Server {
    /// Serves over Streamable HTTP until `close` is called or the task is cancelled.
    ///
    /// - Parameters:
    ///   - host: the address to bind (`127.0.0.1`).
    ///   - port: the port (8000); 0 takes any free one.
    ///   - path: the endpoint's path (`/mcp`).
    ///   - allowedHosts: accepted `Host` headers; the loopback names of the bound port when empty.
    ///   - allowedOrigins: accepted `Origin` headers; the same when empty.
    ///   - maxSessions: legacy sessions kept (10,000).
    ///   - sessionIdleTimeout: after which one is dropped (30 min).
    ///   - keepAliveInterval: between comments on silent streams (15 s).
    ///   - onListening: called with the endpoint's URL once it accepts connections.
    public func serveHTTP(
        host: String? = nil, port: Int? = nil, path: String? = nil, allowedHosts: [String]? = nil,
        allowedOrigins: [String]? = nil, maxSessions: Int? = nil, sessionIdleTimeout: Duration? = nil,
        keepAliveInterval: Duration? = nil, onListening: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        try check()
        let options = JSONValue.object(
            JSONObject([
                ("host", host.map(JSONValue.string)), ("port", port.map(JSONValue.int)),
                ("path", path.map(JSONValue.string)),
                ("allowed_hosts", allowedHosts.map { .array($0.map(JSONValue.string)) }),
                ("allowed_origins", allowedOrigins.map { .array($0.map(JSONValue.string)) }),
                ("max_sessions", maxSessions.map(JSONValue.int)),
                ("session_idle_timeout", sessionIdleTimeout?.json), ("keep_alive_interval", keepAliveInterval?.json),
            ])
        ).description
        listening.with { $0.append(onListening) }
        try await serve { op in try core.serveHttp(options: options, op: op) }
    }
}

final class HTTPExchanges: Sendable {
    static let shared = HTTPExchanges()
    func event(_ name: String, _ value: JSONValue) {}
}
