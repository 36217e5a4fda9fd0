internal import TricornCore

/// Hands what a client's connection tells by itself to everybody who listens.
final class Streams: Sendable {
    private struct State {
        var last = 0
        var notifications: [Int: AsyncStream<PeerNotification>.Continuation] = [:]
        var lines: [Int: AsyncStream<String>.Continuation] = [:]
        var finished = false
        /// Ended by this side, or told already.
        var closed = false
    }

    private static let waiting = 1024
    private let state = Locked(State())
    private let callbacks = Callbacks()
    private let options: ClientOptions
    /// The server's description of the connection and itself.
    private let opening: Locked<JSONValue>

    init(_ options: ClientOptions, _ opening: Locked<JSONValue>) {
        self.options = options
        self.opening = opening
    }

    func event(_ name: String, _ params: CorePayload) {
        switch name {
        case "notification":
            let listeners = state.with { Array($0.notifications.values) }
            guard !listeners.isEmpty || options.hearsNotifications, let value = Self.value(params) else { return }
            let notification = PeerNotification(method: value["method"]?.stringValue ?? "", params: value["params"])
            for listener in listeners { listener.yield(notification) }
            guard options.hearsNotifications else { return }
            callbacks.offer { [options] in options.hear(notification) }
        case "stderr":
            let listeners = state.with { Array($0.lines.values) }
            guard !listeners.isEmpty || options.onStderr != nil,
                let line = Self.value(params)?["line"]?.stringValue
            else { return }
            for listener in listeners { listener.yield(line) }
            if let heard = options.onStderr { callbacks.offer { heard(line) } }
        case "warning":
            let message = Self.value(params)?["message"]?.stringValue ?? ""
            callbacks.offer { [heard = options.onWarning] in heard(message) }
        case "reopened":
            guard var value = Self.value(params) else { return }
            opening.with {
                value["transport"] = $0["transport"]
                $0 = value
            }
        case "request":
            guard let value = Self.value(params) else { return }
            callbacks.offer { [options] in options.log(RequestRecord(json: value)) }
        case "closed":
            finish()
            guard close(), let heard = options.onClose else { return }
            let reason = Self.value(params)?["reason"]?.stringValue ?? ""
            callbacks.run { heard(reason) }
        default: break
        }
    }

    private static func value(_ params: CorePayload) -> JSONValue? {
        (try? JSONText(params)).map { JSONValue($0, 0) }
    }

    func notifications() -> AsyncStream<PeerNotification> { stream(\.notifications) }

    func lines() -> AsyncStream<String> { stream(\.lines) }

    private func stream<Element>(
        _ table: WritableKeyPath<State, [Int: AsyncStream<Element>.Continuation]> & Sendable
    ) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(Self.waiting))
        let number: Int? = state.with {
            guard !$0.finished else { return nil }
            $0.last += 1
            $0[keyPath: table][$0.last] = continuation
            return $0.last
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.with { $0[keyPath: table].removeValue(forKey: number) }
        }
        return stream
    }

    /// False when the connection had been closed before.
    @discardableResult
    func close() -> Bool {
        state.with {
            let open = !$0.closed
            $0.closed = true
            return open
        }
    }

    /// The connection is there again.
    func reopen() {
        state.with {
            $0.closed = false
            $0.finished = false
        }
    }

    func finish() {
        let (notifications, lines) = state.with {
            let open = (Array($0.notifications.values), Array($0.lines.values))
            $0.notifications = [:]
            $0.lines = [:]
            $0.finished = true
            return open
        }
        for listener in notifications { listener.finish() }
        for listener in lines { listener.finish() }
    }
}
