#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A server that listens on a port: what `Server.start` returns.
///
/// It goes on until `stop` or `Server.close`, also when nobody holds this any more.
public final class Serving: Sendable {
    /// The endpoint, such as `http://127.0.0.1:8000/mcp`.
    public let url: URL
    private let listening: Task<Void, any Error>
    private let end: @Sendable () -> Void
    private let state: ServerState

    fileprivate init(
        url: URL, state: ServerState, listening: Task<Void, any Error>, end: @escaping @Sendable () -> Void
    ) {
        self.url = url
        self.state = state
        self.listening = listening
        self.end = end
    }

    /// Stops listening and waits until all has ended: what runs over this port, and what the lifespan started when that was its
    /// last use. The server goes on elsewhere. Also in a task that is cancelled, and more than once. Within the server's own
    /// lifespan it does not wait: the end waits for that.
    public func stop() async {
        end()
        if ServerState.inLifespan === state { return }
        _ = await listening.result
    }

    /// Waits until it has ended, by `stop` or `Server.close`; throws what else ended it. Cancelling the waiting task stops it.
    public func wait() async throws {
        try await withTaskCancellationHandler {
            try await listening.value
        } onCancel: { [end] in
            end()
        }
        try Task.checkCancellation()
    }
}

extension Server {
    /// Serves over Streamable HTTP in the background, and returns when it accepts connections.
    ///
    /// ```swift
    /// let serving = try await app.start(port: 8000)
    /// print("serving at \(serving.url)")
    /// …
    /// await serving.stop()
    /// ```
    /// Throws what keeps it from that: a port that is taken (`TricornError.transport`), a mistake in what was declared or in an
    /// option (`TricornError.misuse`), what the start of the lifespan throws.
    ///
    /// - Parameters:
    ///   - host: the address to bind (`127.0.0.1`).
    ///   - port: 8000; 0 takes any free one.
    ///   - path: the endpoint's path (`/mcp`).
    public func start(host: String? = nil, port: Int? = nil, path: String? = nil) async throws -> Serving {
        try await start(HTTPOptions(host: host, port: port, path: path))
    }

    /// Serves over Streamable HTTP in the background, and returns when it accepts connections; throws what keeps it from that.
    public func start(_ options: HTTPOptions) async throws -> Serving {
        try check()
        try Task.checkCancellation()
        let ready = Awaited<String>()
        let number = Locked<UInt64?>(nil)
        let listening = Task { [self] in
            do {
                try await listen(options, number) { ready.resume(.success($0)) }
                ready.resume(.failure(TricornError.closed("the server was closed before it listened")))
            } catch {
                ready.resume(.failure(error))
                throw error
            }
        }
        let end: @Sendable () -> Void = { [core] in
            if let op = number.with({ $0 }) { try? core.endHttp(op: op) }
        }
        let text = try await withTaskCancellationHandler {
            try await ready.value()
        } onCancel: {
            ready.resume(.failure(CancellationError()))
            listening.cancel()
        }
        guard let url = URL(string: text) else {
            end()
            throw TricornError.misuse("the endpoint's address is no URL: \(text)")
        }
        return Serving(url: url, state: state, listening: listening, end: end)
    }

    /// Listens until this operation or the server is ended.
    private func listen(
        _ options: HTTPOptions, _ number: Locked<UInt64?>, _ onListening: @escaping @Sendable (String) -> Void
    ) async throws {
        // Also of a server that was closed before it listened.
        defer { if let op = number.with({ $0 }) { _ = listening.with { $0.removeValue(forKey: op) } } }
        do {
            _ = try await Host.shared.perform(isServing: true) { [core, listening] op in
                number.with { $0 = op }
                listening.with { $0[op] = onListening }
                try core.serveHttp(options: options.json, op: op)
            }
        } catch {
            throw state.own(error)
        }
    }
}
