/// Errors that functions around a client's requests have thrown, until who sent the request gets them: the core has no
/// place for an error of Swift's, so it carries a name.
final class ThrownErrors: Sendable {
    /// The most that wait; an older one becomes an ordinary JSON-RPC error.
    private static let most: UInt64 = 256

    private struct State {
        var errors: [UInt64: any Error] = [:]
        var last: UInt64 = 0
    }

    private let state = Locked(State())
    /// Begins every name, so that no peer can say one.
    private let secret = "\(UInt64.random(in: .min ... .max))-\(UInt64.random(in: .min ... .max))-"

    /// The error that stands for one in the core.
    func standIn(for error: any Error) -> TricornError {
        let number = state.with { state in
            state.last += 1
            state.errors[state.last] = error
            if state.last > Self.most { state.errors[state.last - Self.most] = nil }
            return state.last
        }
        let name: JSONValue = ["thrown": .string("\(secret)\(number)")]
        switch error {
        case TricornError.rpc(let code, let message, _): return .rpc(code: code, message: message, data: name)
        case let error as TricornError: return .rpc(code: -32603, message: error.message, data: name)
        default: return .rpc(code: -32603, message: "\(error)", data: name)
        }
    }

    /// The error that this one stands for, once; else the error itself.
    func own(_ error: TricornError) -> any Error {
        guard let name = error.data?["thrown"]?.stringValue, name.hasPrefix(secret),
            let number = UInt64(name.dropFirst(secret.count))
        else { return error }
        return state.with { $0.errors.removeValue(forKey: number) } ?? error
    }
}
