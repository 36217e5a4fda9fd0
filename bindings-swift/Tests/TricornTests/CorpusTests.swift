import Foundation
import Testing

@testable import Tricorn

/// The corpus of tests/corpus: every example becomes its type and comes out again without loss.
@Suite struct CorpusTests {
    struct Case: Decodable, CustomTestStringConvertible, Sendable {
        var file: String
        var type: String
        var official: Bool
        var typed: Bool
        var inexactIn: [String]

        enum CodingKeys: String, CodingKey {
            case file, type, official, typed
            case inexactIn = "inexact_in"
        }

        var testDescription: String { file }
    }

    private struct Index: Decodable { var cases: [Case] }

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func read(_ file: String) throws -> String {
        try String(decoding: Data(contentsOf: root.appendingPathComponent(file)), as: UTF8.self)
    }

    static let cases: [Case] = {
        do {
            return try JSONValue(parsing: read("tests/corpus/index.json")).decode(as: Index.self).cases
        } catch {
            fatalError("tests/corpus/index.json: \(error)")
        }
    }()

    /// The text without white space, strings in one spelling; order of members and numbers as they were written.
    static func canonical(_ text: String) throws -> String {
        var out = "", rest = Substring(text)
        while let first = rest.first {
            guard first == "\"" else {
                if !first.isWhitespace { out.append(first) }
                rest.removeFirst()
                continue
            }
            var end = rest.index(after: rest.startIndex)
            while rest[end] != "\"" { end = rest.index(end, offsetBy: rest[end] == "\\" ? 2 : 1) }
            end = rest.index(after: end)
            out += try JSONValue(parsing: String(rest[..<end])).description
            rest = rest[end...]
        }
        return out
    }

    @Test func theOfficialExamplesAreAllThere() {
        #expect(Self.cases.filter(\.official).count == 129)
    }

    @Test(arguments: cases)
    func roundTrip(of example: Case) throws {
        let type = try #require(corpusTypes[example.type])
        let text = try Self.read(example.file)
        let source = try JSONValue(parsing: text)
        try type.check(source)
        let value = type.init(checked: source)
        #expect(value.json == source)
        // These two are dictionaries, which have no order.
        if !["InputRequests", "InputResponses"].contains(example.type) {
            // Int and Double cannot hold some numbers; everything else comes through.
            let exact = try value.json.description == Self.canonical(text)
            #expect(exact != example.inexactIn.contains("swift"))
        }
        // The same by way of Codable.
        let codable = try #require(type as? any Codable.Type)
        #expect(try Self.recoded(source, as: codable) == source)
    }

    private static func recoded<Value: Codable>(_ json: JSONValue, as type: Value.Type) throws -> JSONValue {
        try JSONValue(encoding: json.decode(as: type))
    }

    @Test func aDroppedFieldIsNoticed() throws {
        let text = try Self.read("tests/corpus/2025-03-26/Tool/annotations.json")
        var tool = try Types.Tool(json: JSONValue(parsing: text))
        #expect(tool.annotations?.additional == ["undoHint": false])
        tool.annotations?.additional = [:]
        #expect(try tool.json.description != Self.canonical(text))
        #expect(try tool.json != JSONValue(parsing: text))
    }

    @Test func propertiesReadAndWriteFields() throws {
        var tool = Types.Tool(name: "add", inputSchema: ["type": "object"])
        #expect(tool.json.description == #"{"name":"add","inputSchema":{"type":"object"}}"#)
        tool.title = "Add"
        tool.annotations = .init(readOnlyHint: true)
        tool.annotations?.idempotentHint = false
        tool.additional["x-cost"] = 0.5
        tool.additional["name"] = "not this way"
        #expect(tool.name == "add")
        #expect(tool.annotations?.readOnlyHint == true)
        #expect(tool.additional["x-cost"] == 0.5)
        tool.title = nil
        #expect(
            tool.json == [
                "inputSchema": ["type": "object"], "name": "add",
                "annotations": ["readOnlyHint": true, "idempotentHint": false], "x-cost": 0.5,
            ])
    }

    @Test func nullIsNotAbsent() throws {
        var result = try Types.CallToolResult(json: ["content": [], "structuredContent": nil])
        #expect(result.structuredContent == .null)
        result.structuredContent = nil
        #expect(result.json == ["content": []])
        // An explicit null where the schema knows none reads as absent and is kept.
        let prompt = try Types.Prompt(json: ["name": "p", "title": nil])
        #expect(prompt.title == nil)
        #expect(prompt.json == ["name": "p", "title": nil])
        var task = try Types.Task(
            json: ["taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": nil])
        #expect(task.ttl == nil)
        task.ttl = 5
        task.ttl = nil
        #expect(task.json["ttl"] == .null)
    }

    @Test func unknownMembersAreKept() throws {
        let block = try Types.ContentBlock(json: ["type": "hologram", "points": [1.0]])
        #expect(block == .other(["type": "hologram", "points": [1.0]]))
        #expect(try Types.Role(json: "narrator") == "narrator")
        guard case .text(let text) = try Types.ContentBlock(json: ["type": "text", "text": "hi"]) else {
            Issue.record("not a text")
            return
        }
        #expect(text.text == "hi")
    }

    @Test(arguments: [
        (#"{"type":"string","enum":["a"]}"#, "untitledSingleSelectEnum"),
        (#"{"type":"string","enum":["a"],"enumNames":["A"]}"#, "legacyTitledEnum"),
        (#"{"type":"string","oneOf":[{"const":"a","title":"A"}]}"#, "titledSingleSelectEnum"),
        (#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#, "titledMultiSelectEnum"),
        (#"{"type":"array","items":{"type":"string","enum":["a"]}}"#, "untitledMultiSelectEnum"),
        (#"{"type":"integer","minimum":1}"#, "number"), (#"{"type":"string","format":"email"}"#, "string"),
        (#"{"type":"colour"}"#, "other"),
    ])
    func untaggedUnionsAreToldApart(text: String, expected: String) throws {
        let value = try Types.PrimitiveSchemaDefinition(json: JSONValue(parsing: text))
        #expect(Mirror(reflecting: value).children.first?.label == expected)
    }

    @Test(arguments: [
        (#"{"name":"t"}"#, "Tool", "Tool.inputSchema: missing (required)"),
        (#"{"name":1,"inputSchema":{}}"#, "Tool", "Tool.name: expected string, got 1"),
        (
            #"{"content":[{"type":"text"}]}"#, "CallToolResult",
            "CallToolResult.content.0.TextContent.text: missing (required)"
        ),
        (#"[]"#, "Tool", "Tool: expected object, got []"),
        (#"{"type":"image","text":""}"#, "TextContent", #"TextContent.type: expected "text", got "image""#),
    ])
    func errorsNameTheField(text: String, type: String, expected: String) throws {
        let type = try #require(corpusTypes[type])
        do {
            try type.check(JSONValue(parsing: text))
            Issue.record("no error")
        } catch let error as DecodingError {
            #expect(Self.described(error) == expected)
        }
    }

    private static func described(_ error: DecodingError) -> String {
        func line(_ path: [any CodingKey], _ text: String) -> String {
            path.map(\.stringValue).joined(separator: ".") + ": " + text
        }
        return switch error {
        case .keyNotFound(let key, let context): line(context.codingPath + [key], context.debugDescription)
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            line(context.codingPath, context.debugDescription)
        @unknown default: "\(error)"
        }
    }
}
