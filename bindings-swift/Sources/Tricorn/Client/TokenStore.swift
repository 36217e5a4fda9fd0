/// The key of a login: tokens of one issuer are never shown to another, nor those for one server to another.
public struct TokenKey: Sendable, Hashable {
    /// The authorization server's issuer identifier, as its metadata spells it.
    public var issuer: String
    /// The MCP server's URL, as the `resource` of its tokens.
    public var server: String

    /// Both are compared as texts.
    public init(issuer: String, server: String) {
        self.issuer = issuer
        self.server = server
    }
}

/// A store of logins, each one text of at most 256 KiB, in which there are secrets:
/// `ClientAuth.store = .custom(store)`.
///
/// A refresh token is used up by being used. So whatever is changed is changed by one at a time: reserve, load, refresh,
/// save, release. In one process the library sees to that: clients with the same store take turns. It is the same when it is the
/// same object, an actor or a class; of one that is a structure, when the clients have copies of one `ClientAuth`. A store that
/// several processes share does it with `reserve` and `release`.
///
/// A function that throws fails the login, which says so; when that is `save`, the login is used, and `ClientOptions.onWarning`
/// hears of it.
public protocol TokenStore: Sendable {
    /// The login kept under this key; nil when that is nothing.
    func load(_ key: TokenKey) async throws -> String?
    /// All that is kept for a server, whatever the issuer. A client asks for it before it knows the issuer.
    func find(server: String) async throws -> [(issuer: String, login: String)]
    /// Keeps this in place of what was there. When it returns, no crash must undo it; when it throws, what was there is still to
    /// be there.
    func save(_ key: TokenKey, login: String) async throws
    /// Keeps nothing any more.
    func remove(_ key: TokenKey) async throws
    /// Keeps everybody else from changing what is kept under this key, until `release`. Waits for whoever has it, at most `wait`,
    /// and throws then. By default it does nothing.
    func reserve(_ key: TokenKey, wait: Duration) async throws
    /// It is somebody else's turn, after a `reserve` that did not throw. By default it does nothing.
    func release(_ key: TokenKey) async throws
}

extension TokenStore {
    /// Does nothing: one process at a time has the store.
    public func reserve(_ key: TokenKey, wait: Duration) async throws {}
    /// Does nothing.
    public func release(_ key: TokenKey) async throws {}
}

/// Carries out what the core wants of a store.
final class StoreKeeper: Sendable {
    private struct State {
        /// The reservations that are held, or asked for.
        var turns: [TokenKey: Task<Void, any Error>] = [:]
        /// Reservations that were over before they were begun.
        var over: Set<TokenKey> = []
        var whenFree: (@Sendable () -> Void)?
    }

    private let store: any TokenStore
    private let shared: StoreTurns
    private let state = Locked(State())

    init(_ store: any TokenStore, of auth: AuthTrace) {
        self.store = store
        shared = .of(store, with: auth)
    }

    /// Runs `body` once nothing is reserved any more: a refresh ends after its client, or what it has brought would be lost.
    func whenFree(_ body: @escaping @Sendable () -> Void) {
        let isFree = state.with { state in
            if !state.turns.isEmpty { state.whenFree = body }
            return state.turns.isEmpty
        }
        if isFree { body() }
    }

    func perform(_ asked: JSONValue) async throws -> JSONValue {
        let server = asked["server"]?.stringValue ?? ""
        let key = TokenKey(issuer: asked["issuer"]?.stringValue ?? "", server: server)
        switch asked["op"]?.stringValue {
        case "load": return ["login": try await store.load(key).map { .string($0) } ?? .null]
        case "find":
            let found = try await store.find(server: server)
            return ["logins": .array(found.map { ["issuer": .string($0.issuer), "login": .string($0.login)] })]
        case "save": try await store.save(key, login: asked["login"]?.stringValue ?? "")
        case "remove": try await store.remove(key)
        case "reserve": try await reserve(key, .seconds(asked["wait"]?.doubleValue ?? 0))
        case "release": try await release(key)
        default: throw TricornError.misuse("a store can not \(asked["op"] ?? .null)")
        }
        return [:]
    }

    private func reserve(_ key: TokenKey, _ wait: Duration) async throws {
        let turn = state.with { [store, shared] state -> Task<Void, any Error>? in
            if state.over.remove(key) != nil { return nil }
            let turn = Task {
                let began = ContinuousClock.now
                try await shared.take(key, within: wait)
                do {
                    try await store.reserve(key, wait: max(.zero, wait - (.now - began)))
                } catch {
                    shared.give(key)
                    throw error
                }
            }
            state.turns[key] = turn
            return turn
        }
        guard let turn else { throw CancellationError() }
        try await withTaskCancellationHandler {
            try await turn.value
        } onCancel: {
            turn.cancel()
        }
    }

    /// Comes after every `reserve`, also after one that has failed or was given up, and then maybe sooner than that begins.
    private func release(_ key: TokenKey) async throws {
        let turn = state.with { state in
            if state.turns[key] == nil { state.over.insert(key) }
            return state.turns[key]
        }
        guard let turn else { return }
        defer {
            let free = state.with { state in
                state.turns[key] = nil
                return state.turns.isEmpty ? state.whenFree : nil
            }
            free?()
        }
        if case .success = await turn.result {
            defer { shared.give(key) }
            try await store.release(key)
        }
    }
}
