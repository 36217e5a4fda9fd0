#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A form that `Context.elicit` has the user fill in, checked when it is made: what no client could show stops the program
/// where the form is written, and not the first user that would see it.
///
/// ```swift
/// let booking = try ElicitationForm(Booking.self)
/// app.tool("book") { _, context in try await context.elicit("A table?", booking).action.rawValue }
/// ```
public struct ElicitationForm<Content: Decodable & Sendable>: Sendable {
    /// The `requestedSchema`.
    public let schema: JSONValue

    /// - Parameter schema: derived from `Content` when nil.
    ///
    /// Throws `TricornError.misuse`, which names the property, when it is no form: those are flat, of texts, numbers, truth
    /// values and choices.
    public init(_ content: Content.Type = Content.self, schema: JSONValue? = nil) throws {
        let schema = try schema ?? FormSchema.of(content)
        let writer = JSONWriter()
        writer.append(schema)
        try core { try writer.withData { try coreCheckForm(schema: $0) } }
        self.schema = schema
    }
}

/// The user's answer to a form.
public struct Elicited<Form: Sendable>: Sendable {
    /// Filled it in, said no, or closed it without a choice.
    public let action: Types.ElicitResult.Action
    /// The form as it was filled in, when it was.
    public let content: Form?
    /// Every member of the answer as it came.
    public let json: JSONValue

    init(_ json: JSONValue, _ content: Form?) {
        let action = json["action"]?.stringValue
        self.action = action == "accept" ? .accept : action == "cancel" ? .cancel : .decline
        self.content = content
        self.json = json
    }

    /// The answer's `_meta`.
    public var meta: JSONValue? { json["_meta"] }
}

extension Elicited: Equatable where Form: Equatable {}

/// A page that the user is to visit.
public struct URLElicitation: Sendable, Hashable {
    /// The URL of the page.
    public var url: String
    /// Names this question.
    public var elicitationID: String
    /// The reason, for the user.
    public var message: String

    /// A page, a name for the question and its reason.
    public init(url: String, elicitationID: String, message: String) {
        self.url = url
        self.elicitationID = elicitationID
        self.message = message
    }

    init?(json: JSONValue) {
        guard let url = json["url"]?.stringValue, let id = json["elicitationId"]?.stringValue else { return nil }
        self.init(url: url, elicitationID: id, message: json["message"]?.stringValue ?? "")
    }

    var json: JSONValue {
        [
            "mode": "url", "elicitationId": .string(elicitationID), "url": .string(url), "message": .string(message),
        ]
    }
}

/// Schemas of forms. The core refuses those that no form can ask for.
enum FormSchema {
    private static let formats = ["email", "uri", "date", "date-time"]

    static func of<Form: Decodable>(_ form: Form.Type) throws -> JSONValue {
        var schema = try JSONSchema.of(form, nulls: false)
        var properties = JSONObject()
        for (name, property) in schema["properties"]?.objectValue ?? [:] {
            var property = property
            // Members that Swift's types have and forms have not.
            property["contentEncoding"] = nil
            property["uniqueItems"] = nil
            if let format = property["format"]?.stringValue, !formats.contains(format) { property["format"] = nil }
            properties[name] = property
        }
        schema["properties"] = .object(properties)
        return schema
    }
}
