internal import TricornCore

/// Something that a server has from its first use to the end of its last: a pool of connections, a cache.
///
/// ```swift
/// let lifespan = Lifespan { try await Database.open() } stop: { database in await database.close() }
/// let app = Server("demo", lifespan: lifespan)
/// app.tool("count") { (_: NoArguments, context) in try await context.state(Database.self).count() }
/// ```
/// `start` runs when the server is first used by any transport, before anything is answered; what it throws, serving or
/// connecting throws, and the next use calls it again. It must not connect to the server itself. `stop` runs once when
/// the last use has ended: also after Ctrl-C and SIGTERM, and when the task that serves is cancelled.
public struct Lifespan: Sendable {
    let start: @Sendable () async throws -> any Sendable
    let stop: @Sendable (any Sendable) async throws -> Void

    /// A lifespan; what `start` makes is `Context.state` for every handler.
    public init<State: Sendable>(
        start: @escaping @Sendable () async throws -> State,
        stop: @escaping @Sendable (State) async throws -> Void = { _ in }
    ) {
        self.start = start
        self.stop = { state in if let state = state as? State { try await stop(state) } }
    }
}

/// The state of a server, and the entries of the handler table that start and stop it.
final class ServerState: Sendable {
    private struct Life {
        var value: (any Sendable)?
        var entries: [UInt32] = []
        var isRunning = false
        /// The server is gone; what runs still has to stop.
        var isOrphan = false
        var failure: (told: TricornError, own: any Error)?
    }

    /// The server whose lifespan starts or stops in this task: what waits for its end there would wait for itself.
    @TaskLocal static var inLifespan: ServerState?

    private let life: Locked<Life>
    private let owner = Locked(Owner())

    private struct Owner { weak var server: Server? }

    /// The server whose state it is, while that is there.
    var server: Server? {
        get { owner.with { $0.server } }
        set { owner.with { $0.server = newValue } }
    }

    /// The identifiers of the extensions that the server offers.
    let extensions = Locked(Set<String>())

    init(_ value: (any Sendable)?) { life = Locked(Life(value: value)) }

    var value: (any Sendable)? { life.with { $0.value } }

    /// The error of a start as it was thrown.
    func own(_ error: any Error) -> any Error {
        guard let error = error as? TricornError, let failure = life.with({ $0.failure }), failure.told == error else {
            return error
        }
        return failure.own
    }

    func attach(_ lifespan: Lifespan, to core: CoreServer, _ report: @escaping Report) throws {
        let subject = Subject(name: "lifespan", text: "the lifespan", report: report)
        let start = Host.shared.add(subject, .server) { [self] _, _ in
            await starting(lifespan, report)
        }
        let stop = Host.shared.add(subject, .server) { [self] _, _ in
            await stopping(lifespan, report)
            return try .of(result: JSONValue.object([:]))
        }
        life.with { $0.entries = [start, stop] }
        try core.setLifespan(start: start, stop: stop)
    }

    private func starting(_ lifespan: Lifespan, _ report: Report) async -> Answer {
        life.with { $0.isRunning = true }
        do {
            let made = try await Self.$inLifespan.withValue(self) { try await lifespan.start() }
            life.with { $0.value = made }
            if Task.isCancelled {
                // Nobody waits for it any more, so nobody will stop it.
                await stopping(lifespan, report)
                throw CancellationError()
            }
            return try .of(result: JSONValue.object([:]))
        } catch {
            let told = error as? TricornError ?? .misuse("the server could not start: \(type(of: error)): \(error)")
            life.with { $0.failure = (told, error) }
            stopped()
            return .error(told)
        }
    }

    private func stopping(_ lifespan: Lifespan, _ report: Report) async {
        if let value = life.with({ $0.value }) {
            do {
                try await Self.$inLifespan.withValue(self) { try await lifespan.stop(value) }
            } catch {
                report(error, "lifespan", "the stop of the server")
            }
        }
        stopped()
    }

    private func stopped() {
        let (entries, before) = life.with { life in
            let before = life.value
            life.value = nil
            life.isRunning = false
            return (life.isOrphan ? life.entries : [], before)
        }
        _ = before
        Host.shared.removeHandlers(entries)
    }

    /// The server is let go.
    func orphan() {
        let entries = life.with {
            $0.isOrphan = true
            return $0.isRunning ? [] : $0.entries
        }
        Host.shared.removeHandlers(entries)
    }
}

extension Context {
    /// The state that the server's lifespan made, or its `state`. Throws `TricornError.misuse` when that is no `State`.
    public func state<State>(_ type: State.Type = State.self) throws -> State {
        guard let value = call.subject.state?.value else {
            throw TricornError.misuse("the server has no state: give it `state` or `lifespan`")
        }
        guard let state = value as? State else {
            throw TricornError.misuse("the server's state is \(Swift.type(of: value)), not \(type)")
        }
        return state
    }
}
