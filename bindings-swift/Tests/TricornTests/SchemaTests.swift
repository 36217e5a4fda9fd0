import Foundation
import Testing

@testable import Tricorn

private enum Unit: String, Codable, CaseIterable { case metric, imperial }
private enum Size: Int, Codable, CaseIterable { case small = 1, large = 3 }
private enum Open: String, Codable { case one, two }

private struct Point: Codable { var x: Double, y: Double }

private struct Query: Codable, DescribedProperties {
    var city: String
    var days: Int?
    var unit: Unit
    var size: Size?
    var tags: Set<String>
    var route: [Point]
    var when: Date
    var extra: [String: [Int]]?
    var count: UInt
    var any: JSONValue?

    static let propertyDescriptions = ["city": "Where", "unit": "Which units"]
}

private struct Tree: Codable {
    var name: String
    var children: [Tree]
}

private struct Forest: Codable { var trees: [Tree] }

private struct Cent: Codable, SchemaProviding {
    var value: Int
    static let jsonSchema: JSONValue = ["type": "integer", "multipleOf": 5]
}

@Suite struct SchemaTests {
    @Test func coversOrdinaryStructs() throws {
        let schema = try JSONSchema.of(Query.self)
        #expect(schema["type"] == "object")
        #expect(schema["required"] == ["city", "unit", "tags", "route", "when", "count"])
        let properties = try #require(schema["properties"]?.objectValue)
        #expect(properties.keys == ["city", "days", "unit", "size", "tags", "route", "when", "extra", "count", "any"])
        #expect(properties["city"] == ["type": "string", "description": "Where"])
        #expect(properties["days"] == ["anyOf": [["type": "integer"], ["type": "null"]]])
        #expect(
            properties["unit"] == ["type": "string", "enum": ["metric", "imperial"], "description": "Which units"])
        #expect(properties["size"]?["anyOf"]?[0] == ["type": "integer", "enum": [1, 3]])
        #expect(properties["tags"] == ["type": "array", "items": ["type": "string"], "uniqueItems": true])
        #expect(properties["route"]?["items"]?["required"] == ["x", "y"])
        #expect(properties["when"] == ["type": "string", "format": "date-time"])
        #expect(
            properties["extra"]?["anyOf"] == [
                ["type": "object", "additionalProperties": ["type": "array", "items": ["type": "integer"]]],
                ["type": "null"],
            ])
        #expect(properties["count"] == ["type": "integer", "minimum": 0])
        #expect(properties["any"] == [:])
    }

    @Test func coversRecursion() throws {
        #expect(try JSONSchema.of(Tree.self)["properties"]?["children"]?["items"] == ["$ref": "#/$defs/Tree"])
        let forest = try JSONSchema.of(Forest.self)
        #expect(forest["properties"]?["trees"]?["items"] == ["$ref": "#/$defs/Tree"])
        #expect(forest["$defs"]?["Tree"]?["properties"]?["children"]?["items"] == ["$ref": "#/$defs/Tree"])
    }

    @Test func coversPlainValues() throws {
        #expect(try JSONSchema.of(Int.self) == ["type": "integer"])
        #expect(try JSONSchema.of([String].self) == ["type": "array", "items": ["type": "string"]])
        #expect(try JSONSchema.of(Int?.self) == ["anyOf": [["type": "integer"], ["type": "null"]]])
        #expect(try JSONSchema.of(Cent.self) == ["type": "integer", "multipleOf": 5])
        #expect(try JSONSchema.of([Cent].self)["items"]?["multipleOf"] == 5)
    }

    @Test func saysWhatToDoWhenItCannot() throws {
        do {
            _ = try JSONSchema.of(Open.self)
            Issue.record("derived")
        } catch TricornError.misuse(let message) {
            #expect(message.contains("Open") && message.contains("CaseIterable"))
        }
    }
}
