/// Turns to change a login, of all clients of this process that share a store. A refresh token is used up by being
/// used, so two of them at once would lose the login.
final class StoreTurns: Sendable {
    private struct Shared {
        weak var turns: StoreTurns?
    }

    private static let shared = Locked([ObjectIdentifier: Shared]())

    private let id: ObjectIdentifier
    /// Held, so that nothing else is where it is.
    private let owner: any Sendable
    /// Those who wait; a key is there while somebody has its turn.
    private let waiting = Locked([TokenKey: [Awaited<Void>]]())

    private init(_ id: ObjectIdentifier, _ owner: any Sendable) {
        self.id = id
        self.owner = owner
    }

    deinit {
        // What is there now is let go outside of the lock.
        let others = Self.shared.with { shared -> StoreTurns? in
            let others = shared[id]?.turns
            if others == nil { shared[id] = nil }
            return others
        }
        _ = others
    }

    /// Those of a store: an object's are its own; what is none is told apart by what it was given with.
    static func of(_ store: any TokenStore, with auth: AuthTrace) -> StoreTurns {
        let isObject = type(of: store) is any AnyObject.Type
        let owner: any Sendable = isObject ? store : auth
        let id = ObjectIdentifier(owner as AnyObject)
        return shared.with { shared in
            if let turns = shared[id]?.turns { return turns }
            let turns = StoreTurns(id, owner)
            shared[id] = Shared(turns: turns)
            return turns
        }
    }

    /// Waits until it is this one's turn, which is to be given away again.
    func take(_ key: TokenKey, within wait: Duration) async throws {
        let outcome = Awaited<Void>()
        let isFree = waiting.with { waiting in
            let isFree = waiting[key] == nil
            if isFree { waiting[key] = [] } else { waiting[key]?.append(outcome) }
            return isFree
        }
        if isFree { return }
        let limit = Task {
            try await Task.sleep(for: wait)
            leave(
                key, outcome,
                TricornError.timeout("another client of this store changes the login for more than \(wait)"))
        }
        defer { limit.cancel() }
        try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            leave(key, outcome, CancellationError())
        }
    }

    /// The turn is the next one's.
    func give(_ key: TokenKey) {
        let next = waiting.with { waiting -> Awaited<Void>? in
            guard waiting[key]?.isEmpty == false else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
        next?.resume(.success(()))
    }

    private func leave(_ key: TokenKey, _ outcome: Awaited<Void>, _ error: any Error) {
        let waited = waiting.with { waiting in
            guard let at = waiting[key]?.firstIndex(where: { $0 === outcome }) else { return false }
            waiting[key]?.remove(at: at)
            return true
        }
        if waited { outcome.resume(.failure(error)) }
    }
}
