internal import TricornCore

/// A function of the program, which the core asks apart from any request: an object in, an object out.
typealias AskedFunction = @Sendable (_ asked: JSONValue) async throws -> JSONValue

extension Host {
    /// Adds a function of an option. What it throws is an error of authorization, unless its kind says more; `report` hears of what
    /// is no error of this library, or one about a wrong use of it, or of `all`.
    func add(
        _ name: String, _ text: String, _ report: @escaping Report, all: Bool = false,
        _ function: @escaping AskedFunction
    ) -> UInt32 {
        let subject = Subject(name: name, text: text, report: report)
        return add { key, params, _, host in
            let call = Call(key: key, side: .client, subject: subject, around: nil, host: host)
            do {
                call.answer(with: try .of(result: await function(JSONValue(try JSONText(params), 0))))
            } catch {
                let told = TricornError.ofAuthorization(error)
                if all || !error.isMeant, !Task.isCancelled { report(error, name, text) }
                call.answer(with: .error(told))
            }
        }
    }
}

extension Error {
    /// An error by which a function of the program says how it ended, in words that are meant for others.
    fileprivate var isMeant: Bool {
        guard let error = self as? TricornError else { return false }
        if case .misuse = error { return false }
        return true
    }
}

extension TricornError {
    /// The error of a function of `auth`. The words of errors that are not of this library may have secrets in them, so only
    /// their type is said.
    static func ofAuthorization(_ error: any Error) -> TricornError {
        let type = "\(type(of: error))"
        return switch error {
        case let error as TricornError: error
        case is CancellationError: .cancelled("it was cancelled")
        // `URLError`, which is not in every Foundation, and what the system says of sockets.
        case _ where ["NSURLErrorDomain", "NSPOSIXErrorDomain"].contains(error._domain): .transport(type)
        default: .auth(type)
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

    /// `report` hears of what the functions throw without meaning it.
    init(_ auth: ClientAuth, _ report: @escaping Report) {
        var options = auth.text
        var numbers: [UInt32] = []
        func set(_ name: String, _ what: String, _ function: @escaping AskedFunction) {
            numbers.append(Host.shared.add(what, "auth: \(what)", report, function))
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
        keeper = if case .custom(let store) = auth.store { StoreKeeper(store, of: auth.traced) } else { nil }
        if let keeper {
            numbers.append(Host.shared.add("store", "auth: store", report) { try await keeper.perform($0) })
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

extension AuthFunctions: CustomReflectable {
    /// Without the options, which have secrets in them: a client that is dumped shows what it has.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
