#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A function that runs a request: parameters in, an answer out.
typealias Body = @Sendable (CorePayload, Context) async throws -> Answer

/// The same on either side.
typealias CallBody = @Sendable (CorePayload, Call) async throws -> Answer

/// Hears of an error that is not for the peer, of a name alone, and of what failed, for people.
typealias Report = @Sendable (_ error: any Error, _ name: String, _ subject: String) -> Void

/// The name of a function that answers requests, and what becomes of its errors.
struct Subject: Sendable {
    /// A name alone, such as the tool's.
    var name: String
    /// For people: `tool "add"`.
    var text: String
    /// Hears of errors that are not for the peer.
    var report: Report
    /// Errors that other peers sent are for this one, too: a proxy's.
    var passesOn = false
    /// It is middleware: what runs inside belongs to the same request.
    var isMiddleware = false
    /// Its errors are for the code of this process whose request it is about.
    var isOutward = false
    /// The server's.
    var state: ServerState?
}

/// A call of a function that is running: what belongs to it and goes with it.
final class Call: Sendable {
    let key: UInt64
    let side: Side
    let subject: Subject
    /// That of the middleware that it came through; it may be over before this, when this goes on as a task.
    private let around: Call?
    /// Knowledge of the web framework around a mounted server about the request.
    let host: (any Sendable)?
    private let kept = Locked(Kept())

    /// The one that runs in this task.
    @TaskLocal static var current: Call?

    /// The side whose function it is.
    enum Side: Sendable { case server, client }

    /// The source of an error of this library.
    enum Origin {
        /// A question that this call asked its own peer.
        case question
        /// The handler, or the middleware, that middleware let run.
        case inside
        /// Another connection.
        case elsewhere
    }

    private struct Kept {
        var values: RequestValues?
        var origins: [TricornError: Origin] = [:]
        var isFull = false
        var hasAsked = false
        var lastStep = 0
        /// Steps that are at work, each waits for its own.
        var steps: [Int: @Sendable () async -> Void] = [:]
    }

    /// The most errors whose origin is kept.
    private static let most = 64

    init(key: UInt64, side: Side, subject: Subject, around: Call?, host: (any Sendable)?) {
        self.key = key
        self.side = side
        self.subject = subject
        self.around = around
        self.host = host
    }

    /// Values that middleware and handlers of this request share.
    var values: RequestValues {
        if let values = kept.with({ $0.values }) { return values }
        let found = around?.values ?? RequestValues()
        return kept.with {
            let values = $0.values ?? found
            $0.values = values
            return values
        }
    }

    /// The core's knowledge of the request; nil when the call is over.
    var info: JSONValue? {
        guard let payload = try? Host.shared.bridge.context(key: key), let text = try? JSONText(payload) else {
            return nil
        }
        return JSONValue(text, 0)
    }

    /// Nobody waits for the answer any more. The task hears of that later than the core.
    var isOver: Bool { (try? Host.shared.bridge.context(key: key)) == nil }

    func progress(_ progress: Double, total: Double?, message: String?) {
        _ = try? Host.shared.bridge.progress(key: key, progress: progress, total: total, message: message)
    }

    // MARK: - errors

    /// A question has ended this run, of revision 2026-07-28.
    var hasAsked: Bool { kept.with { $0.hasAsked } }

    /// Keeps where an error came from, which decides who may read it.
    func note(_ error: any Error, _ origin: Origin) {
        if error is InputRequired { kept.with { $0.hasAsked = true } }
        guard let error = error as? TricornError else { return }
        kept.with {
            if $0.origins.count < Self.most || $0.origins[error] != nil {
                $0.origins[error] = origin
            } else {
                $0.isFull = true
            }
        }
    }

    /// Runs `body`, an error of which came from `origin`.
    func noting<Result>(_ origin: Origin, _ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch {
            note(error, origin)
            throw error
        }
    }

    /// True if an error is the handler's own, and did not come from anybody.
    func isOwn(_ error: any Error) -> Bool {
        guard let error = error as? TricornError else { return true }
        return kept.with { $0.origins[error] == nil && !$0.isFull }
    }

    /// The answer to an error; nil when it is not for the peer.
    func answer(to error: TricornError, passesOn: Bool) -> Answer? {
        let origin = kept.with { $0.origins[error] ?? ($0.isFull ? .elsewhere : nil) }
        switch (origin, error) {
        case (.inside, _): return .error(error)
        case (.elsewhere, .rpc): return passesOn ? .error(error) : nil
        // It is about the question, and not about the request that is answered here.
        case (.question, .rpc(let code, let message, _)) where !passesOn:
            return .failed("the question was answered with error \(code): \(message)")
        case (_, .rpc): return .error(error)
        // The core knows what this call was refused, whatever the handler says of it.
        case (.question, .unsupported) where !subject.isMiddleware: return .error(error)
        case (.question, .unsupported(let message)), (.question, .timeout(let message)),
            (.question, .peerMisbehaved(let message)):
            return .failed(message)
        default: return nil
        }
    }

    // MARK: - steps

    /// Does a step in a task of its own: a question that ends the run cancels what the handler does beside it, and what is
    /// done once is to be done before the handler runs again.
    func atWork<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        // The task is entered under the lock that it needs to leave.
        let step = kept.with { kept in
            kept.lastStep += 1
            let number = kept.lastStep
            let step = Task<Value, any Error> { [self] in
                defer { self.kept.with { $0.steps[number] = nil } }
                return try await work()
            }
            kept.steps[number] = { _ = await step.result }
            return step
        }
        return try await withTaskCancellationHandler {
            try await step.value
        } onCancel: {
            if Host.shared.isCancelled(key) { step.cancel() }
        }
    }

    /// Waits for the steps that are at work.
    func finishSteps() async {
        while let step = kept.with({ $0.steps.values.first }) { await step() }
    }

    // MARK: - answering

    func answer(with answer: Answer) {
        guard let bridge = try? Host.shared.bridge else { return }
        do {
            switch answer {
            case .text(var text):
                _ = try text.withUTF8 { try bridge.completeText(key: key, utf8: Data(borrowing: $0)) }
            case .value(let writer): _ = try writer.withData { try bridge.completeValue(key: key, json: $0) }
            case .result(let writer): _ = try writer.withData { try bridge.completeResult(key: key, json: $0) }
            case .failed(let text): _ = try bridge.completeFailed(key: key, text: text)
            case .error(let error): _ = try bridge.completeError(key: key, error: sendable(error).core)
            case .inputRequired(let writer):
                _ = try writer.withData { try bridge.completeInputRequired(key: key, json: $0) }
            case .ended: _ = try bridge.completeError(key: key, error: InputRequired.core)
            }
        } catch {
            let error = TricornError.rpc(code: -32603, message: "internal error")
            _ = try? bridge.completeError(key: key, error: error.core)
        }
    }

    /// The error; what is said instead when its data have a number that JSON does not have, of which the subject's owner hears.
    private func sendable(_ error: TricornError) -> TricornError {
        do {
            _ = try error.data?.checkedText
            return error
        } catch {
            let text = "\(subject.text) failed: its error cannot be sent"
            let why = TricornError.misuse("\(text): data: \(TricornError.from(error).message)")
            subject.report(why, subject.name, subject.text)
            return .rpc(code: -32603, message: text)
        }
    }
}
