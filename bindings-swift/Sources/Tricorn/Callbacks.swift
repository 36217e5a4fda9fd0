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
