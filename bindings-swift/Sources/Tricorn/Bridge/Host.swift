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

    typealias Handler =
        @Sendable (_ key: UInt64, _ params: CorePayload, _ around: Call?, _ host: (any Sendable)?) async -> Void
    typealias Listener = @Sendable (_ name: String, _ params: CorePayload) -> Void

    /// Functions that take what becomes of an operation.
    struct Expected: Sendable {
        var settled: @Sendable (Result<CorePayload, any Error>) -> Void
        var progress: (@Sendable (CorePayload) -> Void)?
        /// Starts what the operation causes; when nil, a task without task-local values does.
        var cause: Cause?
    }

    /// A call that is begun.
    private enum Run {
        /// By another task, soon.
        case waiting(isCancelled: Bool)
        case running(Task<Void, Never>)
    }

    private struct Tables {
        var handlers: [UInt32: Handler] = [:]
        var listeners: [UInt32: Listener] = [:]
        var operations: [UInt64: Expected] = [:]
        /// Causes of operations that are over, for which something goes on.
        var held: [UInt64: Cause] = [:]
        var lastHandler: UInt32 = 0
        var lastSource: UInt32 = 0
        var lastOperation: UInt64 = 0
    }

    private let tables = Locked(Tables())
    private let tasks = Locked([UInt64: Run]())
    /// Calls of middleware, for what runs inside.
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
        case .call(let key, let number, let params, let origin): start(key, number, params, origin)
        case .cancel(let key, _):
            // Elsewhere: what handlers do when they are cancelled runs at once, and may wait for what only this thread brings.
            if let task = cancel(key) { DispatchQueue.global().async { task.cancel() } }
        case .settle(let op, let result, let error):
            let expected = tables.with { $0.operations.removeValue(forKey: op) }
            if let result {
                expected?.settled(.success(result))
            } else {
                let own = error.map { thrown.own(TricornError($0)) } ?? TricornError.misuse("settled with nothing")
                expected?.settled(.failure(error.flatMap { InputRequired($0) } ?? own))
            }
        case .progress(let op, let params): tables.with { $0.operations[op] }?.progress?(params)
        case .event(0, "released", let params, _):
            let handler = (try? JSONText(params)).flatMap { JSONValue($0, 0)["handler"]?.intValue }
            removeHandlers(handler.map { [UInt32($0)] } ?? [])
        case .event(0, "held", let params, _):
            guard let op = Self.operation(params) else { return }
            tables.with { $0.held[op] = $0.operations[op]?.cause }
        case .event(0, "freed", let params, _):
            guard let op = Self.operation(params) else { return }
            tables.with { $0.held.removeValue(forKey: op) }?.end()
        case .event(let source, let name, let params, _): tables.with { $0.listeners[source] }?(name, params)
        }
    }

    private static func operation(_ params: CorePayload) -> UInt64? {
        (try? JSONText(params)).flatMap { JSONValue($0, 0)["op"]?.intValue }.map { UInt64($0) }
    }

    private func start(_ key: UInt64, _ number: UInt32, _ params: CorePayload, _ origin: UInt64) {
        let (found, cause) = tables.with { tables in
            (
                tables.handlers[number],
                origin == 0 ? nil : tables.operations[origin].map { $0.cause } ?? tables.held[origin]
            )
        }
        guard let handler = found else {
            _ = try? bridge.completeError(
                key: key, error: CoreError.Failed(kind: "gone", message: "", code: nil, data: nil))
            return
        }
        // Here, because a task's middleware may be over as soon as the core has told of more.
        let around = around(key)
        let begin: Cause.Job = { [self] in
            // The task is entered under the lock that it needs to leave: it cannot end before it is in the table.
            let cancelled: Task<Void, Never>? = tasks.with { tasks in
                let task = Task { [self] in
                    await handler(key, params, around, cause?.host)
                    _ = self.tasks.with { $0.removeValue(forKey: key) }
                }
                defer { tasks[key] = .running(task) }
                if case .waiting(isCancelled: true) = tasks[key] { return task }
                return nil
            }
            cancelled?.cancel()
        }
        guard let cause else { return begin() }
        tasks.with { $0[key] = .waiting(isCancelled: false) }
        if !cause.begin(begin) { begin() }
    }

    /// The task that is to be cancelled, when it is there already.
    private func cancel(_ key: UInt64) -> Task<Void, Never>? {
        tasks.with { tasks in
            switch tasks[key] {
            case .running(let task): return task
            case .waiting: tasks[key] = .waiting(isCancelled: true)
            case nil: break
            }
            return nil
        }
    }

    /// True if the call of `key` is cancelled, and not just a part of what its handler does.
    func isCancelled(_ key: UInt64) -> Bool {
        switch tasks.with({ $0[key] }) {
        case .running(let task): task.isCancelled
        case .waiting(let isCancelled): isCancelled
        case nil: true
        }
    }

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
        add { [self] key, params, around, host in
            let call = Call(key: key, side: side, subject: subject, around: around, host: host)
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
        // Let go outside of the lock: what a handler holds may be the last that holds a client or a server, whose end comes here.
        let before = tables.with { tables in numbers.map { tables.handlers.removeValue(forKey: $0) } }
        _ = before
    }

    func listen(_ listener: Listener? = nil) -> UInt32 {
        tables.with {
            $0.lastSource += 1
            $0.listeners[$0.lastSource] = listener
            return $0.lastSource
        }
    }

    func replaceListener(_ source: UInt32, _ listener: Listener?) {
        // Let go outside of the lock.
        let before = tables.with { tables -> Listener? in
            defer { tables.listeners[source] = listener }
            return tables.listeners[source]
        }
        _ = before
    }

    /// Numbers of the calls that run and the operations that wait; both are 0 when the process is at rest.
    var counts: (calls: Int, operations: Int) { (tasks.with { $0.count }, tables.with { $0.operations.count }) }

    /// A number for an operation; without `expected`, nobody is told what becomes of it.
    func operation(_ expected: Expected? = nil) -> UInt64 {
        tables.with {
            $0.lastOperation += 1
            $0.operations[$0.lastOperation] = expected
            return $0.lastOperation
        }
    }

    /// Nobody waits for the operation any more; what is unfinished is cancelled. True when something goes on for it, which its
    /// cause begins.
    @discardableResult
    func settle(_ op: UInt64) -> Bool {
        let expected = tables.with { tables -> Expected? in
            let expected = tables.operations.removeValue(forKey: op)
            // First, as the end of what goes on may be told at once.
            if let cause = expected?.cause { tables.held[op] = cause }
            return expected
        }
        let goesOn = (try? bridge.settle(op: op)) ?? false
        // Let go outside of the lock.
        let (isHeld, before) = tables.with { tables -> (Bool, Cause?) in
            let before = expected != nil && !goesOn ? tables.held.removeValue(forKey: op) : nil
            return (tables.held[op] != nil, before)
        }
        _ = before
        return isHeld
    }

    /// Starts an operation of the core and waits for its outcome.
    ///
    /// Cancelling the task ends the wait at once with `CancellationError` and tells the core, which tells the peer.
    /// What it causes in this process runs with the task-local values of this task.
    ///
    /// - Parameters:
    ///   - isServing: what it causes comes from elsewhere, and runs without any.
    ///   - onSuccess: called in the core's thread, before anything that the core tells later.
    func perform(
        progress: (@Sendable (CorePayload) -> Void)? = nil, isServing: Bool = false,
        onSuccess: (@Sendable () -> Void)? = nil, _ start: (_ op: UInt64) throws -> Void
    ) async throws -> CorePayload {
        let cause = Cause(), outcome = Outcome(cause)
        let op = operation(
            Expected(
                settled: { settled in
                    if case .success = settled { onSuccess?() }
                    outcome.set(settled)
                }, progress: progress, cause: isServing ? nil : cause))
        defer { if settle(op) { cause.keep() } else { cause.finish() } }
        return try await withTaskCancellationHandler {
            if outcome.value == nil {
                do { try start(op) } catch { outcome.set(.failure(TricornError.from(error))) }
            }
            await cause.run()
            return try outcome.value?.get() ?? { throw CancellationError() }()
        } onCancel: {
            outcome.set(.failure(CancellationError()))
        }
    }

    /// The outcome of an operation, once.
    private final class Outcome: Sendable {
        private let kept = Locked<Result<CorePayload, any Error>?>(nil)
        private let cause: Cause

        init(_ cause: Cause) { self.cause = cause }

        var value: Result<CorePayload, any Error>? { kept.with { $0 } }

        func set(_ outcome: Result<CorePayload, any Error>) {
            kept.with { $0 = $0 ?? outcome }
            cause.ready()
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
        let causes = starts.map { _ in Cause() }
        let ops = zip(operations, causes).map { operation, cause in
            self.operation(Expected(settled: { operation.resume($0) }, cause: cause))
        }
        // Any of them may cause something while another is waited for.
        for cause in causes { cause.keep() }
        defer { for (op, cause) in zip(ops, causes) where !settle(op) { cause.end() } }
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
