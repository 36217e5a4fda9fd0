#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
@preconcurrency import Dispatch
internal import TricornCore

/// The process's side of the bridge: the tables of handlers, running tasks and waiting operations.
///
/// The core holds only the integers; everything that is Swift's lives here. One wake-up brings a batch; tasks are
/// started from the core's thread and answer from whatever thread they end on.
final class Host: Sendable {
    static let shared = Host()

    typealias Handler = @Sendable (_ key: UInt64, _ params: CorePayload, _ around: Call?) async -> Void
    typealias Listener = @Sendable (_ name: String, _ params: CorePayload) -> Void

    /// What is to be done with what becomes of an operation.
    struct Expected: Sendable {
        var settled: @Sendable (Result<CorePayload, any Error>) -> Void
        var progress: (@Sendable (CorePayload) -> Void)?
    }

    private struct Tables {
        var handlers: [UInt32: Handler] = [:]
        var listeners: [UInt32: Listener] = [:]
        var operations: [UInt64: Expected] = [:]
        var lastHandler: UInt32 = 0
        var lastSource: UInt32 = 0
        var lastOperation: UInt64 = 0
    }

    private let tables = Locked(Tables())
    private let tasks = Locked([UInt64: Task<Void, Never>]())
    /// Of middleware, for what runs inside.
    private let calls = Locked([UInt64: Call]())
    /// By functions around a client's requests.
    let thrown = ThrownErrors()
    private let made = Result {
        outliveBrokenPipes()
        return try CoreBridge(host: Waker())
    }

    var bridge: CoreBridge { get throws { try made.get() } }

    // MARK: what the core calls

    private final class Waker: CoreHost {
        func wake() { Host.shared.wake() }
    }

    private func wake() {
        guard let bridge = try? bridge else { return }
        // An empty answer re-arms the wake-up.
        while let batch = try? bridge.take(), !batch.isEmpty {
            for delivery in batch { handle(delivery) }
        }
    }

    private func handle(_ delivery: CoreDelivery) {
        switch delivery {
        case .call(let key, let number, let params): start(key, number, params)
        case .cancel(let key, _):
            // Elsewhere: what handlers do when they are cancelled runs at once, and may wait for what only this thread brings.
            if let task = tasks.with({ $0[key] }) { DispatchQueue.global().async { task.cancel() } }
        case .settle(let op, let result, let error):
            let expected = tables.with { $0.operations.removeValue(forKey: op) }
            if let result {
                expected?.settled(.success(result))
            } else {
                let own = error.map { thrown.own(TricornError($0)) } ?? TricornError.misuse("settled with nothing")
                expected?.settled(.failure(error.flatMap { InputRequired($0) } ?? own))
            }
        case .progress(let op, let params): tables.with { $0.operations[op] }?.progress?(params)
        case .event(0, "released", let params):
            let handler = (try? JSONText(params)).flatMap { JSONValue($0, 0)["handler"]?.intValue }
            removeHandlers(handler.map { [UInt32($0)] } ?? [])
        case .event(let source, let name, let params): tables.with { $0.listeners[source] }?(name, params)
        }
    }

    private func start(_ key: UInt64, _ number: UInt32, _ params: CorePayload) {
        guard let handler = tables.with({ $0.handlers[number] }) else {
            _ = try? bridge.completeError(
                key: key, error: TricornError.rpc(code: -32603, message: "the handler is gone").core)
            return
        }
        // Here, because a task's middleware may be over as soon as the core has told of more.
        let around = around(key)
        // The task is entered under the lock that it needs to leave: it cannot end before it is in the table.
        tasks.with { tasks in
            tasks[key] = Task { [self] in
                await handler(key, params, around)
                self.tasks.with { $0[key] = nil }
            }
        }
    }

    /// Whether the call of `key` is cancelled, and not just a part of what its handler does.
    func isCancelled(_ key: UInt64) -> Bool { tasks.with { $0[key] }?.isCancelled ?? true }

    // MARK: what Swift registers

    func add(_ handler: @escaping Handler) -> UInt32 {
        tables.with {
            $0.lastHandler += 1
            $0.handlers[$0.lastHandler] = handler
            return $0.lastHandler
        }
    }

    /// Adds a function that answers with what `run` comes to.
    func add(_ subject: Subject, _ side: Call.Side, _ run: @escaping CallBody) -> UInt32 {
        add { [self] key, params, around in
            let call = Call(key: key, side: side, subject: subject, around: around)
            if subject.isMiddleware { calls.with { $0[key] = call } }
            let answer = await Call.$current.withValue(call) {
                await Answer.of(subject, call) { try await run(params, call) }
            }
            if answer.isQuestion || call.hasAsked { await call.finishSteps() }
            // Let go outside of the lock.
            if subject.isMiddleware { _ = calls.with { $0.removeValue(forKey: key) } }
            call.answer(with: answer)
        }
    }

    /// The call of the middleware that a call comes through, which is running.
    private func around(_ key: UInt64) -> Call? {
        guard calls.with({ !$0.isEmpty }), let payload = try? bridge.context(key: key),
            let text = try? JSONText(payload), let at = text.member("through", of: 0),
            let through = text.integer(at, as: UInt64.self)
        else { return nil }
        return calls.with { $0[through] }
    }

    /// Those of the handlers that are not removed yet.
    func known(_ numbers: [UInt32]) -> [UInt32] {
        numbers.isEmpty ? [] : tables.with { tables in numbers.filter { tables.handlers[$0] != nil } }
    }

    func removeHandlers(_ numbers: some Sequence<UInt32>) {
        tables.with { for number in numbers { $0.handlers[number] = nil } }
    }

    func listen(_ listener: Listener? = nil) -> UInt32 {
        tables.with {
            $0.lastSource += 1
            $0.listeners[$0.lastSource] = listener
            return $0.lastSource
        }
    }

    func replaceListener(_ source: UInt32, _ listener: Listener?) {
        tables.with { $0.listeners[source] = listener }
    }

    /// How many calls run and how many operations wait; both are 0 when the process is at rest.
    var counts: (calls: Int, operations: Int) { (tasks.with { $0.count }, tables.with { $0.operations.count }) }

    /// A number for an operation; without `expected`, nobody is told what becomes of it.
    func operation(_ expected: Expected? = nil) -> UInt64 {
        tables.with {
            $0.lastOperation += 1
            $0.operations[$0.lastOperation] = expected
            return $0.lastOperation
        }
    }

    /// Nobody waits for the operation any more; what is unfinished is cancelled.
    func settle(_ op: UInt64) {
        tables.with { $0.operations[op] = nil }
        try? bridge.settle(op: op)
    }

    /// Starts an operation of the core and waits for its outcome.
    ///
    /// Cancelling the task ends the wait at once with `CancellationError` and tells the core, which tells the peer.
    func perform(
        progress: (@Sendable (CorePayload) -> Void)? = nil, _ start: (_ op: UInt64) throws -> Void
    ) async throws -> CorePayload {
        let operation = Awaited<CorePayload>()
        let op = self.operation(Expected(settled: { operation.resume($0) }, progress: progress))
        defer { settle(op) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard operation.wait(continuation) else { return }
                do { try start(op) } catch { operation.resume(.failure(TricornError.from(error))) }
            }
        } onCancel: {
            operation.resume(.failure(CancellationError()))
        }
    }

    /// The same for what has to be done in a task that is cancelled, too: a task of its own waits for it.
    func finish(_ start: @escaping @Sendable (_ op: UInt64) throws -> Void) async {
        await Task { _ = try? await perform(start) }.value
    }

    /// Starts operations of the core, in this order, and waits for all, or until the first of them that fails.
    func perform(all starts: [@Sendable (_ op: UInt64) throws -> Void]) async throws -> [CorePayload] {
        try Task.checkCancellation()
        let operations = starts.map { _ in Awaited<CorePayload>() }
        let ops = operations.map { operation in self.operation(Expected(settled: { operation.resume($0) })) }
        defer { for op in ops { settle(op) } }
        return try await withTaskCancellationHandler {
            for (n, start) in starts.enumerated() {
                do { try start(ops[n]) } catch { operations[n].resume(.failure(TricornError.from(error))) }
            }
            var outcomes: [CorePayload] = []
            for operation in operations { outcomes.append(try await operation.value()) }
            return outcomes
        } onCancel: {
            for operation in operations { operation.resume(.failure(CancellationError())) }
        }
    }
}

extension Host {
    /// Sends a request by `start` and waits for its result.
    func request(
        _ params: JSONWriter, _ options: RequestOptions,
        _ start: @escaping @Sendable (_ op: UInt64, _ params: Data, _ options: String) throws -> Void
    ) async throws -> JSONText {
        let params = try options.meta.map { try params.merging(meta: $0) } ?? params
        func begin(_ op: UInt64) throws { try params.withData { try start(op, $0, options.json) } }
        guard let onProgress = options.onProgress else { return try JSONText(try await perform(begin)) }
        // The callback is the caller's code: it runs neither on the core's thread nor on one of the tasks'.
        let reports = Reports(onProgress)
        defer { reports.discard() }
        let outcome = try await perform(
            progress: { payload in
                guard let text = try? JSONText(payload) else { return }
                let value = JSONValue(text, 0)
                reports.tell(
                    RequestOptions.Progress(
                        progress: value["progress"]?.doubleValue ?? 0, total: value["total"]?.doubleValue,
                        message: value["message"]?.stringValue))
            }, begin)
        await reports.finish()
        return try JSONText(outcome)
    }
}
