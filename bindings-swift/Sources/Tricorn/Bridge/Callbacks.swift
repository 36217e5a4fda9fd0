@preconcurrency import Dispatch

/// Runs the user's callbacks one after the other, away from the core's thread and from the tasks' threads: they may
/// block, even on what they are told about.
final class Callbacks: Sendable {
    private static let most = 1024
    private let queue = DispatchQueue(label: "tricorn.callbacks")
    private let waiting = Locked(0)

    /// For what happens once.
    func run(_ callback: @escaping @Sendable () -> Void) { queue.async(execute: callback) }

    /// For what a peer can cause as often as it likes: dropped while 1024 of them wait.
    func offer(_ callback: @escaping @Sendable () -> Void) {
        let dropped = waiting.with {
            if $0 < Self.most { $0 += 1 } else { return true }
            return false
        }
        if dropped { return }
        queue.async { [self] in
            waiting.with { $0 -= 1 }
            callback()
        }
    }
}

/// Runs the progress callback of one request with what is reported, in the order in which it came and away from the
/// core's thread and from the tasks' threads: it may block, and then stops nobody else. The newest 1024 reports wait for
/// a slow one.
final class Reports: Sendable {
    private static let most = 1024

    private struct State {
        var waiting: [RequestOptions.Progress] = []
        var isRunning = false
        var idle: CheckedContinuation<Void, Never>?
    }

    private let callback: @Sendable (RequestOptions.Progress) -> Void
    private let queue = DispatchQueue(label: "tricorn.progress")
    private let state = Locked(State())

    init(_ callback: @escaping @Sendable (RequestOptions.Progress) -> Void) { self.callback = callback }

    func tell(_ report: RequestOptions.Progress) {
        let wasRunning = state.with { state in
            if state.waiting.count == Self.most { state.waiting.removeFirst() }
            state.waiting.append(report)
            defer { state.isRunning = true }
            return state.isRunning
        }
        if !wasRunning { queue.async { self.run() } }
    }

    private func run() {
        while let report = next() { callback(report) }
    }

    private func next() -> RequestOptions.Progress? {
        var idle: CheckedContinuation<Void, Never>?
        let report: RequestOptions.Progress? = state.with { state in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.isRunning = false
            swap(&state.idle, &idle)
            return nil
        }
        idle?.resume()
        return report
    }

    /// Waits until the callback has heard everything. Once, when nothing more comes.
    func finish() async {
        await withCheckedContinuation { continuation in
            let isRunning = state.with {
                if $0.isRunning { $0.idle = continuation }
                return $0.isRunning
            }
            if !isRunning { continuation.resume() }
        }
    }

    /// Drops the reports that wait.
    func discard() { state.with { $0.waiting = [] } }
}
