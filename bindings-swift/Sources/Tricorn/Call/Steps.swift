#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

extension Context {
    /// The answers to what the handler asked with `InputRequired` in the last round, by its names: results as the client
    /// sent them, unchecked. Empty in the first round.
    ///
    /// Throws −32602 when the request's state is not this server's.
    public var inputResponses: JSONObject { get throws { try input?["inputResponses"]?.objectValue ?? [:] } }

    /// The state that the handler kept with `InputRequired` in the last round; nil in the first one.
    ///
    /// Throws −32602 when the request's state is not this server's.
    public var requestState: JSONValue? { get throws { try input?["state"] } }

    /// The state that the handler kept with `InputRequired` in the last round, as a `State`; nil in the first one.
    ///
    /// Throws −32602 when the request's state is not this server's, and `DecodingError` when it is something else.
    public func requestState<State: Decodable>(as state: State.Type = State.self) throws -> State? {
        try requestState?.decode(as: state)
    }

    private var input: JSONValue? {
        get throws { try core { try Host.shared.bridge.input(key: key).map { JSONValue(try JSONText($0), 0) } } }
    }

    /// Does something once, in whichever round the handler comes to it first, and gives its result in every round: what
    /// must not happen again when the handler runs again, after a question of revision 2026-07-28 ("Multi Round-Trip
    /// Requests").
    ///
    /// ```swift
    /// let order = try await context.step("order") { try await shop.reserve(input.item) }
    /// guard try await context.elicit("Sure?", sure).action == .accept else { return "no" }
    /// ```
    /// The result travels in the request's sealed state, encoded as a tool's is, so it has to be small. What throws is not
    /// done, and is tried again when the handler comes to it in the next round. What is at work when a question ends the run
    /// is not cancelled with it, and the client is asked when it is done. In other revisions a handler runs once, unless it
    /// throws `InputRequired` itself.
    ///
    /// Throws what `work` throws, and `TricornError.misuse` for a second step of this name in one run, or a result that
    /// does not encode to JSON and decode from it.
    public func step<Value: Codable & Sendable>(
        _ name: String, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        @Sendable func wrong(_ why: String) -> TricornError { .misuse("step \"\(name)\": \(why)") }
        if let done = try core({ try Host.shared.bridge.step(key: key, name: name) }) {
            do {
                return try JSONReader.decode(Value.self, try JSONText(done), 0)
            } catch let error as DecodingError {
                throw wrong("its result of an earlier round: \(error.text(subject: "member"))")
            }
        }
        return try await call.atWork { [key] in
            let value = try await work()
            let writer: JSONWriter
            do { writer = try JSONWriter.encode(value) } catch { throw wrong("its result: \(error)") }
            try core { try writer.withData { try Host.shared.bridge.stepped(key: key, name: name, json: $0) } }
            return value
        }
    }

    /// Does something once that has no result.
    public func step(_ name: String, _ work: @escaping @Sendable () async throws -> Void) async throws {
        _ = try await step(name) { () -> JSONValue in
            try await work()
            return .null
        }
    }
}
