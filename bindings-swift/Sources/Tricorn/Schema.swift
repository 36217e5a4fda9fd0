#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A type that says what its JSON Schema is.
///
/// Not needed for structs with synthesized `Decodable`, enums of strings that are `CaseIterable`, arrays,
/// dictionaries by string, optionals, and Foundation's `Date`, `URL`, `UUID`, `Data`, `Decimal`: their schema is
/// found by letting them decode from a probe.
public protocol SchemaProviding {
    /// The schema, as JSON.
    static var jsonSchema: JSONValue { get }
}

/// A type that describes its properties to the model, by coding key.
public protocol DescribedProperties {
    /// What each property means, by coding key; those left out are not described.
    static var propertyDescriptions: [String: String] { get }
}

/// JSON Schemas (2020-12) of Swift types.
public enum JSONSchema {
    /// The schema of `type`. Throws `TricornError.misuse` when it cannot be derived, saying what to do.
    public static func of<Value: Decodable>(_ type: Value.Type) throws -> JSONValue {
        let builder = SchemaBuilder()
        var schema = try builder.schema(of: type)
        if let definitions = builder.definitions {
            schema["$defs"] = .object(definitions)
        }
        return schema
    }
}

/// Collects what the types reachable from one type ask of a decoder.
final class SchemaBuilder {
    /// The types being looked at, outermost first, and whether one of them was met again inside itself.
    private var open: [(type: ObjectIdentifier, name: String, recursive: Bool)] = []
    private(set) var definitions: JSONObject?

    func schema(of type: any Decodable.Type) throws -> JSONValue {
        if let provider = type as? any SchemaProviding.Type { return provider.jsonSchema }
        if let schema = Self.leaf(type) { return schema }
        if let wrapped = type as? any OptionalType.Type {
            return ["anyOf": [try schema(of: wrapped.wrapped), ["type": "null"]]]
        }
        if let list = type as? any ListType.Type {
            var schema: JSONValue = ["type": "array", "items": try schema(of: list.element)]
            if list.isUnique { schema["uniqueItems"] = true }
            return schema
        }
        if let dictionary = type as? any DictionaryType.Type {
            return ["type": "object", "additionalProperties": try schema(of: dictionary.value)]
        }
        if let cases = type as? any CaseIterable.Type, let schema = Self.enumeration(cases) { return schema }
        let identity = ObjectIdentifier(type)
        if let at = open.firstIndex(where: { $0.type == identity }) {
            open[at].recursive = true
            return ["$ref": at == 0 ? "#" : .string("#/$defs/\(open[at].name)")]
        }
        open.append((identity, String(describing: type), false))
        let probe = SchemaProbe(builder: self)
        do {
            _ = try type.init(from: probe)
        } catch let error as TricornError {
            throw error
        } catch {
            throw TricornError.misuse(
                "no JSON Schema can be derived from \(type): its init(from:) refused a sample value (\(error)); "
                    + "make it \(type is any RawRepresentable.Type ? "CaseIterable" : "SchemaProviding") or pass the schema"
            )
        }
        let (_, name, recursive) = open.removeLast()
        let schema = probe.record.schema(describing: type)
        guard recursive, !open.isEmpty else { return schema }
        definitions = definitions ?? [:]
        definitions?[name] = schema
        return ["$ref": .string("#/$defs/\(name)")]
    }

    private static func leaf(_ type: Any.Type) -> JSONValue? {
        switch type {
        case is String.Type, is Character.Type: ["type": "string"]
        case is Bool.Type: ["type": "boolean"]
        case is Double.Type, is Float.Type, is Decimal.Type: ["type": "number"]
        case is any UnsignedInteger.Type: ["type": "integer", "minimum": 0]
        case is any FixedWidthInteger.Type: ["type": "integer"]
        case is Date.Type: ["type": "string", "format": "date-time"]
        case is URL.Type: ["type": "string", "format": "uri"]
        case is UUID.Type: ["type": "string", "format": "uuid"]
        case is Data.Type: ["type": "string", "contentEncoding": "base64"]
        case is JSONObject.Type: ["type": "object"]
        case is JSONValue.Type: [:]
        default: nil
        }
    }

    private static func enumeration<Cases: CaseIterable>(_ type: Cases.Type) -> JSONValue? {
        let raw = type.allCases.map { ($0 as? any RawRepresentable)?.rawValue }
        if let strings = raw as? [String], !strings.isEmpty {
            return ["type": "string", "enum": .array(strings.map(JSONValue.string))]
        }
        if let numbers = raw as? [Int], !numbers.isEmpty {
            return ["type": "integer", "enum": .array(numbers.map(JSONValue.int))]
        }
        return nil
    }

    /// A value of `type` that lets a synthesized `init(from:)` go on.
    static func sample<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let cases = type as? any CaseIterable.Type, let first = Self.first(cases) as? Value { return first }
        if let optional = type as? any OptionalType.Type, let none = optional.absent as? Value { return none }
        switch type {
        case is Date.Type: return Date(timeIntervalSince1970: 0) as! Value
        case is URL.Type: return URL(string: "about:blank")! as! Value
        case is UUID.Type: return UUID() as! Value
        case is Data.Type: return Data() as! Value
        case is Decimal.Type: return Decimal(0) as! Value
        case is Character.Type: return Character(" ") as! Value
        case is JSONValue.Type: return JSONValue.null as! Value
        case is JSONObject.Type: return JSONObject() as! Value
        default: return try Value(from: SchemaProbe(builder: nil))
        }
    }

    private static func first<Cases: CaseIterable>(_ type: Cases.Type) -> Any? { type.allCases.first }
}

// Generic types of the standard library, asked for their arguments.
private protocol OptionalType {
    static var wrapped: any Decodable.Type { get }
    static var absent: Any { get }
}
extension Optional: OptionalType where Wrapped: Decodable {
    fileprivate static var wrapped: any Decodable.Type { Wrapped.self }
    fileprivate static var absent: Any { Optional<Wrapped>(nilLiteral: ()) as Any }
}

private protocol ListType {
    static var element: any Decodable.Type { get }
    static var isUnique: Bool { get }
}
extension Array: ListType where Element: Decodable {
    fileprivate static var element: any Decodable.Type { Element.self }
    fileprivate static var isUnique: Bool { false }
}
extension Set: ListType where Element: Decodable {
    fileprivate static var element: any Decodable.Type { Element.self }
    fileprivate static var isUnique: Bool { true }
}

private protocol DictionaryType { static var value: any Decodable.Type { get } }
extension Dictionary: DictionaryType where Key == String, Value: Decodable {
    fileprivate static var value: any Decodable.Type { Value.self }
}
