#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The types of the protocol that programs name most. The others are in `Types`.

/// A resource as a server lists it.
public typealias Resource = Types.Resource
/// A resource template as a server lists it.
public typealias ResourceTemplate = Types.ResourceTemplate
/// The result of `Client.readResource`.
public typealias ReadResourceResult = Types.ReadResourceResult
/// The content of a resource, with its URI: a resource's handler may return it instead of plain text, bytes or a value.
public typealias ResourceContents = ContentBlock.EmbeddedResource
/// A prompt as a server lists it.
public typealias Prompt = Types.Prompt
/// One message of a prompt: `.user("…")`, `.assistant("…")`.
public typealias PromptMessage = Types.PromptMessage
/// The result of `Client.getPrompt`; a prompt's handler may return it to decide every detail.
public typealias GetPromptResult = Types.GetPromptResult
/// The values that an argument may be completed to: at most a hundred values, and how many there are.
public typealias Completion = Types.CompleteResult.Completion
/// For whom an answer keeps: `.public` is everybody, also under other authorization, `.private` who has asked.
public typealias CacheScope = Types.CacheScope
/// A folder or file that a server may look at.
public typealias ClientRoot = Types.Root
/// One message for a model: `.user("…")`, `.assistant("…")`.
public typealias SamplingMessage = Types.SamplingMessage
/// A server's request for a message of the client's model.
public typealias CreateMessageRequestParams = Types.CreateMessageRequestParams
/// The message that a client's model wrote.
public typealias CreateMessageResult = Types.CreateMessageResult
/// A server's preferences for the model.
public typealias ModelPreferences = Types.ModelPreferences

extension Types.Role {
    fileprivate func message(_ text: String) -> JSONValue { message(["type": "text", "text": .string(text)]) }

    fileprivate func message(_ content: JSONValue) -> JSONValue { ["role": .string(rawValue), "content": content] }
}

extension PromptMessage {
    /// Words of the user.
    public static func user(_ text: String) -> PromptMessage { .init(checked: Types.Role.user.message(text)) }
    /// A picture, a resource and so on of the user.
    public static func user(_ content: ContentBlock) -> PromptMessage {
        .init(checked: Types.Role.user.message(content.json))
    }
    /// Words of the model.
    public static func assistant(_ text: String) -> PromptMessage { .init(checked: Types.Role.assistant.message(text)) }
    /// A picture, a resource and so on of the model.
    public static func assistant(_ content: ContentBlock) -> PromptMessage {
        .init(checked: Types.Role.assistant.message(content.json))
    }

    /// The text, when the message is one.
    public var text: String? { if case .text(let content) = content { content.text } else { nil } }
}

extension SamplingMessage {
    /// Words of the user.
    public static func user(_ text: String) -> SamplingMessage { .init(checked: Types.Role.user.message(text)) }
    /// A picture or a recording of the user.
    public static func user(_ content: ContentBlock) -> SamplingMessage {
        .init(checked: Types.Role.user.message(content.json))
    }
    /// Words of the model.
    public static func assistant(_ text: String) -> SamplingMessage {
        .init(checked: Types.Role.assistant.message(text))
    }
    /// A picture or a recording of the model.
    public static func assistant(_ content: ContentBlock) -> SamplingMessage {
        .init(checked: Types.Role.assistant.message(content.json))
    }

    /// The text blocks, joined by line breaks.
    public var text: String { content.json.texts }
}

extension CreateMessageResult {
    /// A model's text.
    public init(text: String, model: String, stopReason: String? = "endTurn") {
        self.init(role: .assistant, content: .one(.text(.init(text: text))), model: model, stopReason: stopReason)
    }

    /// The text blocks, joined by line breaks.
    public var text: String { content.json.texts }
}

extension JSONValue {
    /// The texts of a content block or an array of them.
    fileprivate var texts: String {
        let blocks = arrayValue ?? [self]
        return blocks.compactMap { $0["type"] == "text" ? $0["text"]?.stringValue : nil }.joined(separator: "\n")
    }
}

extension ClientRoot {
    /// The folder or file at a path; one that is not absolute begins at the current directory.
    public init(path: String, name: String? = nil) {
        let path = path.hasPrefix("/") ? path : Self.absolute(path)
        let kept = Set("-._~!$&'()*+,;=:@/".utf8)
        var uri = "file://"
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                uri.unicodeScalars.append(Unicode.Scalar(byte))
            case _ where kept.contains(byte): uri.unicodeScalars.append(Unicode.Scalar(byte))
            default: uri += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        self.init(uri: uri, name: name)
    }
}

extension ClientRoot {
    private static func absolute(_ path: String) -> String {
        var parts: [Substring] = []
        for part in "\(FileManager.default.currentDirectoryPath)/\(path)".split(separator: "/") {
            switch part {
            case ".": continue
            case "..": _ = parts.popLast()
            default: parts.append(part)
            }
        }
        return "/" + parts.joined(separator: "/")
    }
}

extension ClientRoot {
    /// A folder or file.
    public init(url: URL, name: String? = nil) { self.init(uri: url.absoluteString, name: name) }
}

extension ClientRoot: ExpressibleByStringLiteral {
    /// A `file://` URI, or a path; one that is not absolute begins at the current directory.
    public init(stringLiteral text: String) {
        self = text.contains("://") ? ClientRoot(uri: text) : ClientRoot(path: text)
    }
}

/// A tool as a server lists it.
public struct Tool: Sendable, Hashable {
    /// Every member as it came, those that this version does not know, too.
    public let json: JSONValue

    /// The name that `callTool` takes.
    public var name: String { json["name"]?.stringValue ?? "" }
    /// A name for people.
    public var title: String? { json["title"]?.stringValue }
    /// A description for the model.
    public var description: String? { json["description"]?.stringValue }
    /// The JSON Schema of the arguments.
    public var inputSchema: JSONValue { json["inputSchema"] ?? [:] }
    /// The JSON Schema of `CallToolResult.structured`.
    public var outputSchema: JSONValue? { json["outputSchema"] }
    /// Hints about what the tool does; not to be trusted from a server one does not trust.
    public var annotations: ToolAnnotations? { json["annotations"].flatMap { try? $0.decode() } }
    /// Icons; those without what the schema requires are left out.
    public var icons: [Types.Icon] {
        (json["icons"]?.arrayValue ?? []).compactMap { try? Types.Icon(json: $0) }
    }
    /// The tool's `_meta`.
    public var meta: JSONValue? { json["_meta"] }
}

/// One page of a listing of tools.
public struct ToolsPage: Sendable, Hashable {
    /// In the server's order.
    public var tools: [Tool]
    /// Names the next page; nil on the last one.
    public var nextCursor: String?
    /// The page's `_meta`.
    public var meta: JSONValue? { json["_meta"] }
    /// Every member of the page as it came.
    public let json: JSONValue

    init(_ page: JSONValue) {
        json = page
        tools = (json["tools"]?.arrayValue ?? []).map(Tool.init)
        nextCursor = json["nextCursor"]?.stringValue
    }
}
