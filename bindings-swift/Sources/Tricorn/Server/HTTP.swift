#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

extension HTTPOptions {
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

    var json: String { text.json.description }
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
