internal import TricornCore

/// The outcome of a tool: for a client the answer to a call, for a handler what it returns to decide every detail.
public struct CallToolResult: Sendable {
    /// The blocks for the model.
    public var content: [ContentBlock]
    /// The value for programs. On a client: as it came, whether or not the tool has declared a schema for it.
    public var structured: JSONValue? {
        get { structuredText.map { JSONValue($0.text, $0.index) } ?? structuredValue }
        set {
            structuredText = nil
            structuredValue = newValue
        }
    }
    /// True when the tool failed; the content says why.
    public var isError: Bool
    /// The result's `_meta`.
    public var meta: JSONValue?

    private var structuredValue: JSONValue?
    private var structuredText: (text: JSONText, index: Int)?
    private var whole: JSONText?

    /// - Parameter structured: the value for programs, of the tool's output schema when it has one.
    public init(content: [ContentBlock], structured: JSONValue? = nil, isError: Bool = false, meta: JSONValue? = nil) {
        self.content = content
        self.structuredValue = structured
        self.isError = isError
        self.meta = meta
    }

    init(_ text: JSONText) {
        var content: [ContentBlock] = []
        if let list = text.member("content", of: 0), text.tokens[list].kind == .array {
            var at = list + 1
            while at < Int(text.tokens[list].next) {
                content.append(ContentBlock(text, at))
                at = Int(text.tokens[at].next)
            }
        }
        self.content = content
        structuredText = text.member("structuredContent", of: 0).map { (text, $0) }
        isError = text.member("isError", of: 0).map { text.tokens[$0].kind == .true } ?? false
        meta = text.member("_meta", of: 0).map { JSONValue(text, $0) }
        whole = text
    }

    /// The text blocks, joined by line breaks.
    public var text: String {
        if content.count == 1, case .text(let text, _) = content[0] { return text }
        return content.compactMap(\.text).joined(separator: "\n")
    }

    /// A client's result with every member as it came; nil for a result made here.
    public var json: JSONValue? { whole.map { JSONValue($0, 0) } }

    /// This result, unless the tool failed: then `ToolError` with its text.
    @discardableResult
    public func orThrow() throws -> CallToolResult {
        if isError { throw ToolError(text) }
        return self
    }

    /// The structured value, or the text read as JSON when there is none, as a `type`.
    ///
    /// Legacy revisions have structured objects only: there a server wraps any other value as `{"result": value}`, and
    /// this unwraps it. Throws `ToolError` when the tool failed and `DecodingError` when the value is something else.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        try orThrow()
        if let structuredText { return try Self.unwrapped(type, structuredText.text, structuredText.index) }
        if let structuredValue { return try structuredValue.decode(as: type) }
        if type == String.self { return text as! Value }
        do {
            return try JSONValue(parsing: text).decode(as: type)
        } catch {
            // A date or a choice is a text without quotes.
            if let value = try? JSONValue.string(text).decode(as: type) { return value }
            throw error
        }
    }

    private static func unwrapped<Value: Decodable>(
        _ type: Value.Type, _ text: JSONText, _ index: Int
    ) throws -> Value {
        do {
            return try JSONReader.decode(type, text, index)
        } catch {
            let object = text.tokens[index]
            // One member only: its value ends where the object does.
            guard object.kind == .object, let inner = text.member("result", of: index),
                inner == index + 2, text.tokens[inner].next == object.next
            else { throw error }
            return try JSONReader.decode(type, text, inner)
        }
    }
}

extension CallToolResult: Encodable {
    /// As on the wire.
    public func encode(to encoder: any Encoder) throws {
        var result = OptionsText()
        result.set("content", list: content.map(\.json))
        result.set("structuredContent", structured)
        if isError { result.set("isError", true) }
        result.set("_meta", meta)
        try result.json.encode(to: encoder)
    }
}
