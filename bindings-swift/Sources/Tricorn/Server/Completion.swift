internal import TricornCore

/// A completion: an array of strings, a `Completion` that says how many there are besides, or a whole
/// `Types.CompleteResult`, which may have `_meta`.
public protocol CompletionValues: Encodable, Sendable {}

extension [String]: CompletionValues {}
extension Types.CompleteResult.Completion: CompletionValues {}
extension Types.CompleteResult: CompletionValues {}

extension Types.CompleteResult {
    /// Up to 100 values, best first.
    public var values: [String] { completion.values }
    /// The number of values in all, when the server knows.
    public var total: Int? { completion.total }
    /// True if there are more.
    public var hasMore: Bool? { completion.hasMore }
}

/// Completes an argument of a prompt or a variable of a resource template, of which `value` is there already.
///
/// ```swift
/// app.prompt("greet", complete: ["name": { value, _ in names.filter { $0.hasPrefix(value) } }]) { … }
/// ```
/// Of more than a hundred values the first hundred are sent.
public typealias Completer =
    @Sendable (_ value: String, _ query: CompletionQuery) async throws -> any CompletionValues

/// A text that is to be completed.
public struct CompletionQuery: Sendable {
    /// The prompt or template.
    public var reference: CompletionReference
    /// The name of the argument, one of the reference's.
    public var argument: String
    /// The part of it that is there already.
    public var value: String
    /// The other arguments, as far as they are known.
    public var arguments: [String: String]
    /// The request.
    public var context: Context
}

/// Names what an argument is completed of.
public enum CompletionReference: Sendable, Hashable {
    /// A prompt, by its name.
    case prompt(String)
    /// A resource template, by its text.
    case resource(String)

    var json: JSONValue {
        switch self {
        case .prompt(let name): ["type": "ref/prompt", "name": .string(name)]
        case .resource(let uri): ["type": "ref/resource", "uri": .string(uri)]
        }
    }

    init(json: JSONValue) {
        if let uri = json["uri"]?.stringValue {
            self = .resource(uri)
        } else {
            self = .prompt(json["name"]?.stringValue ?? "")
        }
    }
}

extension Server {
    /// Completes what has no completion of its own.
    public func onComplete(_ complete: @escaping Completer) {
        setHook("complete", "the completion", Offer.completing(complete))
    }
}

extension Offer {
    /// The completers of what is offered; a list completes what begins like one of it, in whatever case.
    static func completers(_ complete: [String: Completer], _ choices: [String: [String]]) -> [String: Completer] {
        let lists = choices.mapValues { list -> Completer in
            { value, _ in list.filter { $0.lowercased().hasPrefix(value.lowercased()) } }
        }
        return lists.merging(complete) { $1 }
    }

    static func completing(_ complete: @escaping Completer) -> Body {
        { payload, context in
            let params = JSONValue(try JSONText(payload), 0)
            let value = params["argument"]?["value"]?.stringValue ?? ""
            var arguments: [String: String] = [:]
            for (name, value) in params["context"]?["arguments"]?.objectValue ?? [:] {
                arguments[name] = value.stringValue
            }
            let query = CompletionQuery(
                reference: CompletionReference(json: params["ref"] ?? .null),
                argument: params["argument"]?["name"]?.stringValue ?? "", value: value, arguments: arguments,
                context: context)
            return try .of(value: await complete(value, query))
        }
    }
}
