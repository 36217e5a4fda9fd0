#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// Ends a run of a handler at what the client has to answer first (specification 2026-07-28, "Multi Round-Trip
/// Requests"). The handler runs again, from its beginning, when the client comes back.
///
/// `Context.elicit`, `sample`, `listRoots`, `askAll` and `ask` throw it in revision 2026-07-28 for a question that has no
/// answer yet. Let it pass; whatever a handler makes of it, the client is asked, and nobody is told of a failure.
///
/// A handler that keeps its rounds itself throws one of its own, which works in every revision: where servers send
/// requests, it is asked by these.
///
/// ```swift
/// app.tool("greet") { (_: NoArguments, context) in
///     guard let name = try context.inputResponses["who"]?["content"]?["name"]?.stringValue else {
///         throw InputRequired(["who": Question.elicit("Who are you?", schema: form)], state: ["since": 7])
///     }
///     return "Hello, \(name), since \(try context.requestState?["since"] ?? .null)"
/// }
/// ```
public struct InputRequired: Error, Sendable {
    /// The questions to the client, by names of the handler's; none: it is to come back after some time.
    public var questions: [String: any AnyQuestion]
    /// The state that the handler keeps for the next round, sealed: `Context.requestState`. It travels with the request, so
    /// it has to be small.
    public var state: JSONValue?
    /// It ends a run at a question that was asked.
    let isEnd: Bool

    /// Asks these, and keeps a state for the next round. There must be one or the other.
    public init(_ questions: [String: any AnyQuestion] = [:], state: JSONValue? = nil) {
        self.questions = questions
        self.state = state
        isEnd = false
    }

    /// Nil for another error of the core.
    init?(_ error: CoreError) {
        guard case .Failed(let kind, _, _, _) = error, kind == Self.kind else { return nil }
        questions = [:]
        isEnd = true
    }

    private static let kind = "input_required"

    /// The end of a run, in the core's words.
    static let core = CoreError.Failed(kind: kind, message: "", code: nil, data: nil)

    /// As the core reads it.
    var json: JSONValue {
        var input = OptionsText(), requests = JSONObject()
        for (key, question) in questions.sorted(by: { $0.key < $1.key }) {
            var request = OptionsText()
            request.set("method", text: question.method)
            request.set("params", question.params)
            requests[key] = request.json
        }
        input.set("inputRequests", .object(requests))
        input.set("state", state)
        return input.json
    }
}

extension InputRequired: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}

extension InputRequired: CustomStringConvertible {
    /// For who looks at it, though it is no failure.
    public var description: String {
        "this run of the handler ends at a question to the client; it runs again with the answer"
    }
}

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
