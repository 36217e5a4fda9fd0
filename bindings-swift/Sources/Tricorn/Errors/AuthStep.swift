internal import TricornCore

/// A step of a login.
public struct AuthStep: Sendable, Hashable {
    /// The thing that was wanted: `resource metadata`, `authorization server metadata`, `registration`, `token`, …
    public var step: String
    /// The URL that was asked, without what may be secret in it.
    public var url: String?
    /// The HTTP status, if there was an answer.
    public var status: Int?
    /// The conclusion from it.
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

/// The steps of the logins of all clients with the same `ClientAuth`.
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
