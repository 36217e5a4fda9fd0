#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// Options of a server over Streamable HTTP; each has the core's default.
public struct HTTPOptions: Sendable, Hashable {
    /// The address to bind (`127.0.0.1`). `unix:/run/mcp.sock` is a Unix socket, which has no port: its file has the
    /// permissions that the umask leaves, and its clients count as 127.0.0.1.
    public var host: String?
    /// The port (8000); 0 takes any free one.
    public var port: Int?
    /// The endpoint's path where a port is listened on (`/mcp`).
    public var path: String?
    /// The certificate of the server that listens on a port, and those between it and its authority, as PEM or as the
    /// path of a file with that, which is read again when it changes. Clients speak https then (none).
    public var cert: String?
    /// The private key of `cert`, in the same way; it may be in `cert`.
    public var key: String?
    /// True if each request is written to standard error when its answer is over, in the Common Log Format with the
    /// milliseconds that it took; without queries, headers and bodies (false).
    public var accessLog: Bool?
    /// Accepted `Host` headers; the loopback names of the bound port when empty.
    public var allowedHosts: [String]?
    /// Accepted `Origin` headers; the same when empty.
    public var allowedOrigins: [String]?
    /// Legacy sessions kept (10,000); then an idle one of whoever has the most goes.
    public var maxSessions: Int?
    /// After which an idle session is dropped (30 min).
    public var sessionIdleTimeout: Duration?
    /// Time in which requests are answered after SIGTERM or `Server.drain()`: no connection is taken meanwhile, and streams
    /// that wait for news end (5 s). What is left then is cancelled; zero cancels at once.
    public var drainTimeout: Duration?
    /// Between comments on silent streams (15 s).
    public var keepAliveInterval: Duration?
    /// Events of one session kept for clients that lose a stream (256); 0 keeps none.
    public var maxEvents: Int?
    /// Bytes of them (1 MiB).
    public var maxEventBytes: Int?
    /// After which a client that lost a stream asks for the rest (1 s).
    public var sseRetry: Duration?
    /// True if clients of the handshake revisions are served without sessions, so that any of several processes can answer
    /// each request (false). What needs a session then fails with an error that says so.
    public var stateless: Bool?
    /// True if the oldest transport, HTTP+SSE, is served, too (false).
    @available(*, deprecated, message: "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")
    public var sse: Bool? {
        get { kept.sse }
        set { kept.sse = newValue }
    }
    /// The path of its stream on the port that is listened on (`/sse`).
    @available(*, deprecated, message: "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")
    public var ssePath: String? {
        get { kept.ssePath }
        set { kept.ssePath = newValue }
    }
    /// The path to which its messages are posted, on the port that is listened on (`/messages`).
    @available(*, deprecated, message: "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")
    public var sseMessagePath: String? {
        get { kept.sseMessagePath }
        set { kept.sseMessagePath = newValue }
    }
    /// Sockets at once, and stateless requests at work at once (4096).
    public var maxConnections: Int?
    /// Proxies whose `X-Forwarded-For` or `Forwarded` says where a request comes from, by which sockets, streams and sessions
    /// are counted: addresses, or networks as `10.0.0.0/8` (none: all clients behind a proxy count as one).
    public var trustedProxies: [String]?

    /// Values of the deprecated options, for the library to use.
    struct Kept: Sendable, Hashable {
        var sse: Bool?
        var ssePath: String?
        var sseMessagePath: String?
    }
    var kept = Kept()

    /// Options; nil has the core's default.
    public init(
        host: String? = nil, port: Int? = nil, path: String? = nil, allowedHosts: [String]? = nil,
        allowedOrigins: [String]? = nil, maxSessions: Int? = nil, sessionIdleTimeout: Duration? = nil,
        keepAliveInterval: Duration? = nil, maxConnections: Int? = nil
    ) {
        self.host = host
        self.port = port
        self.path = path
        self.allowedHosts = allowedHosts
        self.allowedOrigins = allowedOrigins
        self.maxSessions = maxSessions
        self.sessionIdleTimeout = sessionIdleTimeout
        self.keepAliveInterval = keepAliveInterval
        self.maxConnections = maxConnections
    }

    /// From `[HOST:]PORT` or `unix:PATH`. Throws `TricornError.misuse` when it is something else.
    public init(address: String) throws {
        if address.lowercased().hasPrefix("unix:"), address.contains("/") {
            self.init(host: address)
            return
        }
        let parts = address.split(separator: ":", omittingEmptySubsequences: false)
        guard let port = parts.last.flatMap({ UInt16($0) }) else {
            throw TricornError.misuse("expected [HOST:]PORT or unix:PATH, got \"\(address)\"")
        }
        let host = parts.dropLast().joined(separator: ":")
        self.init(host: host.isEmpty ? nil : host, port: Int(port))
    }

    var json: String {
        var options = OptionsText()
        options.set("host", text: host)
        options.set("port", number: port)
        options.set("path", text: path)
        options.set("cert", text: cert)
        options.set("key", text: key)
        options.set("access_log", flag: accessLog)
        options.set("allowed_hosts", texts: allowedHosts)
        options.set("allowed_origins", texts: allowedOrigins)
        options.set("max_sessions", number: maxSessions)
        options.set("session_idle_timeout", duration: sessionIdleTimeout)
        options.set("drain_timeout", duration: drainTimeout)
        options.set("keep_alive_interval", duration: keepAliveInterval)
        options.set("max_events", number: maxEvents)
        options.set("max_event_bytes", number: maxEventBytes)
        options.set("sse_retry", duration: sseRetry)
        options.set("stateless", flag: stateless)
        options.set("sse", flag: kept.sse)
        options.set("sse_path", text: kept.ssePath)
        options.set("sse_message_path", text: kept.sseMessagePath)
        options.set("max_connections", number: maxConnections)
        options.set("trusted_proxies", texts: trustedProxies)
        return options.json.description
    }
}

extension Server {
    /// Serves over Streamable HTTP at `host` and `port` until `close` is called or the task is cancelled.
    ///
    /// - Parameter onListening: called with the endpoint's URL once it accepts connections.
    public func serveHTTP(
        host: String? = nil, port: Int? = nil, onListening: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        try await serveHTTP(HTTPOptions(host: host, port: port), onListening: onListening)
    }

    /// Serves over Streamable HTTP until `close` is called or the task is cancelled.
    ///
    /// - Parameter onListening: called with the endpoint's URL once it accepts connections.
    public func serveHTTP(
        _ options: HTTPOptions, onListening: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        try check()
        let number = Locked<UInt64?>(nil)
        defer { if let op = number.with({ $0 }) { _ = listening.with { $0.removeValue(forKey: op) } } }
        try await serve { [core, listening] op in
            number.with { $0 = op }
            listening.with { $0[op] = onListening }
            try core.serveHttp(options: options.json, op: op)
        }
    }
}

/// An HTTP request for a mounted server, as the host's own web framework has it.
public struct HTTPRequest: Sendable {
    /// Such as `POST`.
    public var method: String
    /// Path and query as they came, such as `/mcp?key=1`: the metadata of a protected server has a path of its own, a token in a
    /// query is refused, and the clients of HTTP+SSE name their session there.
    public var target: String
    /// In order; names in any case. `host` has to be there: under HTTP/2 it is what `:authority` says.
    public var headers: [(name: String, value: String)]
    /// Empty when there is none.
    public var body: [UInt8]
    /// Knowledge of the web framework about it, such as the user that has logged in: `Context.host` of what it causes.
    public var host: (any Sendable)?

    /// A request that has arrived whole.
    public init(
        method: String, target: String = "/", headers: [(name: String, value: String)], body: [UInt8] = [],
        host: (any Sendable)? = nil
    ) {
        self.host = host
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

/// The answer of a mounted server. Send each part of the body at once: it may be an event stream.
public struct HTTPResponse: Sendable {
    /// Such as 200.
    public var status: Int
    /// In order; names in lower case.
    public var headers: [(name: String, value: String)]
    /// Parts as they come; ends with the response.
    public var body: AsyncThrowingStream<String, any Error>

    /// A response of one's own, such as that of a login in front of the server.
    public init(
        status: Int, headers: [(name: String, value: String)] = [],
        body: AsyncThrowingStream<String, any Error> = AsyncThrowingStream { $0.finish() }
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// A server as a function from request to response, for mounting in a web framework.
public final class HTTPEndpoint: Sendable {
    private let server: Server
    let endpoint: CoreEndpoint

    init(_ server: Server, _ endpoint: CoreEndpoint) {
        self.server = server
        self.endpoint = endpoint
    }

    /// Answers one request. Handlers run with the task-local values of the calling task. When the task is cancelled, or the
    /// response's body let go, the client has gone away.
    public func handle(_ request: HTTPRequest) async throws -> HTTPResponse {
        let (arriving, chunks) = AsyncThrowingStream.makeStream(of: String.self)
        let (heads, head) = AsyncThrowingStream.makeStream(of: JSONValue.self)
        let cause = Cause(host: request.host)
        let op = Host.shared.operation(
            Host.Expected(
                settled: { outcome in
                    switch outcome {
                    case .success:
                        head.finish()
                        chunks.finish()
                    case .failure(let error):
                        head.finish(throwing: error)
                        chunks.finish(throwing: error)
                    }
                }, cause: cause))
        cause.keep()
        let server = server
        server.exchanges.with { $0[op] = Exchange(head: head, chunks: chunks) }
        chunks.onTermination = { _ in
            server.exchanges.with { $0[op] = nil }
            if !Host.shared.settle(op) { cause.end() }
        }
        let line: JSONValue = [
            "method": .string(request.method),
            "target": .string(request.target),
            "headers": .array(request.headers.map { [.string($0.name), .string($0.value)] }),
        ]
        do {
            try core {
                try request.body.withUnsafeBufferPointer {
                    try endpoint.exchange(op: op, head: line.description, body: Data(borrowing: $0))
                }
            }
            for try await head in heads {
                let headers = (head["headers"]?.arrayValue ?? []).map { pair in
                    (name: pair[0]?.stringValue ?? "", value: pair[1]?.stringValue ?? "")
                }
                let endpoint = endpoint
                let body = AsyncThrowingStream<String, any Error>(unfolding: {
                    var chunks = arriving.makeAsyncIterator()
                    let chunk = try await chunks.next()
                    // The core makes the next chunk only when this one is taken: a slow reader makes no queue grow.
                    if chunk != nil { try? endpoint.written(op: op) }
                    return chunk
                })
                return HTTPResponse(status: head["status"]?.intValue ?? 500, headers: headers, body: body)
            }
            try Task.checkCancellation()
            throw TricornError.closed("the exchange ended before it began")
        } catch {
            chunks.finish()
            throw error
        }
    }

    /// Ends what is mounted, in order: streams that are listened to end at once, what runs has `grace` to be answered, then what
    /// is left is cancelled, and the lifespan stops. Call it where the web framework shuts down, before it waits for its
    /// connections. A request that comes later begins anew. Also in a task that is cancelled.
    public func shutdown(grace: Duration = .seconds(5)) async {
        let (seconds, attoseconds) = grace.components
        let time = Double(seconds) + Double(attoseconds) / 1e18
        await Host.shared.finish { [endpoint] op in try endpoint.shutdown(op: op, grace: time) }
    }
}

/// An exchange whose response is under way.
struct Exchange: Sendable {
    var head: AsyncThrowingStream<JSONValue, any Error>.Continuation
    var chunks: AsyncThrowingStream<String, any Error>.Continuation
}

extension Server {
    /// The server as an HTTP endpoint without a socket. Host and port of the options do not matter.
    public func httpEndpoint(_ options: HTTPOptions = .init()) throws -> HTTPEndpoint {
        try check()
        return HTTPEndpoint(self, try Tricorn.core { try core.http(options: options.json) })
    }

    func exchangeEvent(_ name: String, _ value: JSONValue) {
        guard let op = value["op"]?.intValue, let exchange = exchanges.with({ $0[UInt64(op)] }) else { return }
        if name == "http_head" {
            exchange.head.yield(value)
            exchange.head.finish()
        } else if let text = value["text"]?.stringValue {
            exchange.chunks.yield(text)
        }
    }
}
