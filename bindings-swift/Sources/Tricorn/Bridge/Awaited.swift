/// One wait for one outcome, whichever of outcome, wait and cancellation comes first.
final class Awaited<Value: Sendable>: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, any Error>)
        case done(Result<Value, any Error>?)
    }

    private let state = Locked(State.idle)

    /// False when the outcome is there already; the continuation has been resumed then.
    func wait(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        let early: Result<Value, any Error>? = state.with {
            if case .done(let outcome) = $0 {
                $0 = .done(nil)
                return outcome
            }
            $0 = .waiting(continuation)
            return nil
        }
        guard let early else { return true }
        continuation.resume(with: early)
        return false
    }

    /// The outcome, once.
    func value() async throws -> Value {
        try await withCheckedThrowingContinuation { _ = wait($0) }
    }

    func resume(_ outcome: Result<Value, any Error>) {
        let continuation: CheckedContinuation<Value, any Error>? = state.with {
            switch $0 {
            case .idle:
                $0 = .done(outcome)
                return nil
            case .waiting(let continuation):
                $0 = .done(nil)
                return continuation
            case .done: return nil
            }
        }
        continuation?.resume(with: outcome)
    }
}
