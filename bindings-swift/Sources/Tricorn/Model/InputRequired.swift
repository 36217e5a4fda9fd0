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
