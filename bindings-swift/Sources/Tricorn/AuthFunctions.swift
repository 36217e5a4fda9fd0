@preconcurrency import Dispatch
internal import TricornCore

/// A function of `auth`, which the core asks apart from any request: an object in, an object out.
typealias AuthFunction = @Sendable (_ asked: JSONValue) async throws -> JSONValue

extension Host {
    /// Adds a function of `auth`. What it throws is an error of authorization, unless its kind says more; `hear` is told of
    /// what is no error of this library.
    func add(
        _ name: String, hear: @escaping @Sendable (any Error) -> Void = { _ in }, _ function: @escaping AuthFunction
    ) -> UInt32 {
        let subject = Subject(name: name, text: "auth: \(name)", report: { error, _, _ in hear(error) })
        return add { key, params, _ in
            let call = Call(key: key, side: .client, subject: subject, around: nil)
            let asked = Task { try await function(JSONValue(try JSONText(params), 0)) }
            do {
                // Cancelled elsewhere: a page that is fetched by `URLSession` may hang in that, on Linux, when it is just there.
                let answer = try await withTaskCancellationHandler {
                    try await asked.value
                } onCancel: {
                    DispatchQueue.global().async { asked.cancel() }
                }
                call.answer(with: try .of(result: answer))
            } catch {
                if !(error is TricornError), !asked.isCancelled { hear(error) }
                call.answer(with: .error(.ofAuthorization(error)))
            }
        }
    }
}

extension TricornError {
    /// What a function of `auth` threw.
    static func ofAuthorization(_ error: any Error) -> TricornError {
        switch error {
        case let error as TricornError: error
        case is CancellationError: .cancelled("it was cancelled")
        // `URLError`, which is not in every Foundation, and what the system says of sockets.
        case _ where ["NSURLErrorDomain", "NSPOSIXErrorDomain"].contains(error._domain): .transport("\(error)")
        default: .auth("\(error)")
        }
    }
}

/// The functions of a client's or a group's `auth`, in the table of handlers for as long as they are needed, and its options
/// for the core.
final class AuthFunctions: Sendable {
    /// The core's option `auth`.
    let json: JSONValue
    private let numbers: [UInt32]
    private let keeper: StoreKeeper?
    private let traced: AuthTrace

    init(_ auth: ClientAuth) {
        var options = auth.text
        var numbers: [UInt32] = []
        func set(_ name: String, _ what: String, _ function: @escaping AuthFunction) {
            numbers.append(Host.shared.add(what, function))
            options.set(name, number: Int(numbers[numbers.count - 1]))
        }
        if let browser = auth.browser {
            set("browser", "browser") { asked in
                try await browser(asked["url"]?.stringValue ?? "")
                return [:]
            }
        }
        if let callback = auth.callback {
            set("callback", "callback") { asked in
                ["url": .string(try await callback(asked["redirect_uri"]?.stringValue ?? ""))]
            }
        }
        if case .asked(let token) = auth.token {
            set("tokens", "token") { ["token": .string(try await token(ClientAuth.Wanted(json: $0)))] }
        }
        if case .asked(let assertion) = auth.assertion {
            set("assertions", "assertion") { asked in
                ["assertion": .string(try await assertion(ClientAuth.Wanted(json: asked)))]
            }
        }
        keeper = if case .custom(let store) = auth.store { StoreKeeper(store) } else { nil }
        if let keeper {
            numbers.append(Host.shared.add("store") { try await keeper.perform($0) })
            options.set("store", ["handler": .int(Int(numbers[numbers.count - 1])), "reserves": true])
        }
        self.numbers = numbers
        traced = auth.traced
        json = options.json
    }

    /// Logins begin; `steps` says what they have done, until `end`.
    func begin(_ steps: @escaping @Sendable () -> [AuthStep]) { traced.begin(ObjectIdentifier(self), steps) }

    /// Nobody logs in any more; `steps` are what the logins have done.
    func end(_ steps: [AuthStep]) { traced.end(ObjectIdentifier(self), steps) }

    deinit {
        traced.end(ObjectIdentifier(self), [])
        // Nobody needs them any more, but for what is under way.
        let forget: @Sendable () -> Void = { [numbers] in Host.shared.removeHandlers(numbers) }
        if let keeper { keeper.whenFree(forget) } else { forget() }
    }
}

/// A step of a login.
public struct AuthStep: Sendable, Hashable {
    /// What was wanted: `resource metadata`, `authorization server metadata`, `registration`, `token`, …
    public var step: String
    /// Where, without what may be secret in it.
    public var url: String?
    /// The HTTP status, if there was an answer.
    public var status: Int?
    /// What followed from it.
    public var decision: String

    init(json: JSONValue) {
        step = json["step"]?.stringValue ?? ""
        url = json["url"]?.stringValue
        status = json["status"]?.intValue
        decision = json["decision"]?.stringValue ?? ""
    }

    static func all(_ payload: CorePayload?) -> [AuthStep] {
        guard let payload, let text = try? JSONText(payload) else { return [] }
        return (JSONValue(text, 0).arrayValue ?? []).map { AuthStep(json: $0) }
    }
}

extension AuthStep: CustomStringConvertible {
    /// In one line, for people.
    public var description: String {
        let answer = status.map { " → \($0)" } ?? ""
        return "\(step)\(url.map { " \($0)" } ?? "")\(answer): \(decision)"
    }
}

/// What the logins of all clients with the same `ClientAuth` have done.
final class AuthTrace: Sendable {
    private struct State {
        var ended: [AuthStep] = []
        var running: [(id: ObjectIdentifier, steps: @Sendable () -> [AuthStep])] = []
    }

    /// As many are kept as the core keeps of one client.
    private static let most = 128
    private let state = Locked(State())

    func begin(_ id: ObjectIdentifier, _ steps: @escaping @Sendable () -> [AuthStep]) {
        state.with { $0.running.append((id, steps)) }
    }

    func end(_ id: ObjectIdentifier, _ steps: [AuthStep]) {
        state.with { state in
            guard let at = state.running.firstIndex(where: { $0.id == id }) else { return }
            state.running.remove(at: at)
            state.ended = (state.ended + steps).suffix(Self.most)
        }
    }

    var steps: [AuthStep] {
        let (ended, running) = state.with { ($0.ended, $0.running) }
        return ended + running.flatMap { $0.steps() }
    }
}
