#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A type that says what its JSON Schema is.
///
/// Not needed for structs and classes with synthesized `Decodable`, enums with associated values, enums of strings and integers
/// that are `CaseIterable`, arrays, dictionaries, optionals, and Foundation's `Date`, `URL`, `UUID`, `Data`, `Decimal`: their
/// schema is found by letting them decode from a probe. They may refer to themselves.
public protocol SchemaProviding {
    /// The schema, as JSON. Where `init(from:)` takes less than the schema says, such as a text that is a number, `examples`
    /// let types that contain this one be derived.
    static var jsonSchema: JSONValue { get }
}

/// A type that describes its properties to the model, by coding key.
public protocol DescribedProperties {
    /// The meaning of each property, by coding key; those left out are not described.
    static var propertyDescriptions: [String: String] { get }
}

/// JSON Schemas (2020-12) of Swift types.
public enum JSONSchema {
    /// The schema of `type`. Throws `TricornError.misuse` when it cannot be derived, saying what to do.
    ///
    /// Optionals take `null`, as `Codable` does. A type that contains itself is in `$defs`, under its name in ASCII.
    public static func of<Value: Decodable>(_ type: Value.Type) throws -> JSONValue {
        try of(type, nulls: true)
    }

    /// - Parameter nulls: optionals take `null`; false where they can only be left out: what comes as text, and forms.
    static func of(_ type: any Decodable.Type, nulls: Bool) throws -> JSONValue {
        let builder = SchemaBuilder(nulls: nulls)
        return builder.document(try builder.schema(of: type))
    }
}

/// Collects what the types reachable from one type ask of a decoder.
final class SchemaBuilder {
    /// The most types inside of one another.
    static let maxDepth = 64

    private let nulls: Bool
    /// The types being looked at, outermost first, and whether one of them was met again inside itself.
    private var open: [(type: ObjectIdentifier, recursive: Bool)] = []
    private var depth = 0
    /// Schemas of types that were looked at; they hold wherever they stand in the document.
    private var known: [ObjectIdentifier: JSONValue] = [:]
    private var names: [ObjectIdentifier: String] = [:]
    private var taken: Set<String> = []
    private var definitions = JSONObject()
    let samples = SchemaSamples()

    init(nulls: Bool) { self.nulls = nulls }

    /// The schema with what it refers to.
    func document(_ schema: JSONValue) -> JSONValue {
        guard !definitions.isEmpty else { return schema }
        var schema = schema
        var all = schema["$defs"]?.objectValue ?? [:]
        for (name, definition) in definitions { all[name] = definition }
        schema["$defs"] = .object(all)
        return schema
    }

    func schema(of type: any Decodable.Type) throws -> JSONValue {
        let identity = ObjectIdentifier(type)
        if let provider = type as? any SchemaProviding.Type { return provided(provider.jsonSchema, identity, type) }
        if let schema = Self.leaf(type) { return schema }
        if let cases = type as? any CaseIterable.Type, let schema = try Self.enumeration(cases) { return schema }
        if let schema = known[identity] { return schema }
        if let at = open.firstIndex(where: { $0.type == identity }) {
            open[at].recursive = true
            return reference(identity, type)
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maxDepth else {
            throw TricornError.misuse(
                "no JSON Schema can be derived: types are nested more than \(Self.maxDepth) levels deep")
        }
        if let schema = try generic(type) { return schema }
        open.append((identity, false))
        let derived = Result { try self.derived(type) }
        // Whatever came of it: the type around may go on without.
        let isRecursive = open.removeLast().recursive
        let schema = try derived.get()
        if isRecursive { definitions[name(identity, type)] = schema }
        // At the top it stands as it is, too: there clients look for properties, and some take references to `$defs` alone.
        let place = isRecursive && depth > 1 ? reference(identity, type) : schema
        known[identity] = place
        return place
    }

    /// The schema of a type that asks a decoder for what it is made of.
    private func derived(_ type: any Decodable.Type) throws -> JSONValue {
        let isEnumeration = EnumCases.isEnum(type) && !(type is any RawRepresentable.Type)
        let first = try probe(type, choice: isEnumeration ? 0 : nil)
        guard isEnumeration else {
            let schema = JSONValue.any(of: [first.schema(describing: type)] + others(type, first))
            return first.takesNull && depth > 1 ? nullable(schema) : schema
        }
        guard let count = first.choices else {
            throw Self.cannot(type, "its init(from:) is not the synthesized one")
        }
        var branches = [first.schema(describing: type)]
        for choice in 1..<max(count, 1) {
            branches.append(try probe(type, choice: choice).schema(describing: type))
        }
        return branches.count == 1 ? branches[0] : ["type": "object", "oneOf": .array(branches)]
    }

    /// Schemas of what a type of one value takes instead of what it has asked for first: it may try one type after the other.
    private func others(_ type: any Decodable.Type, _ first: SchemaRecord) -> [JSONValue] {
        var refused: Set<ObjectIdentifier> = [], schemas: [JSONValue] = [], last = first
        while let asked = last.wholeType, refused.count < Self.maxDepth {
            refused.insert(asked)
            last = SchemaRecord(refusing: refused)
            let made = try? type.init(from: SchemaProbe(builder: self, samples: samples, choice: nil, record: last))
            guard last.wholeType != nil || (made != nil && !last.isEmpty) else { break }
            schemas.append(last.schema(describing: type))
        }
        return schemas
    }

    private func probe(_ type: any Decodable.Type, choice: Int?) throws -> SchemaRecord {
        let probe = SchemaProbe(builder: self, samples: samples, choice: choice)
        do {
            _ = try type.init(from: probe)
        } catch let error as TricornError {
            throw error
        } catch is SchemaSamples.Endless {
            throw Self.cannot(type, "a value of it needs another one")
        } catch {
            throw Self.cannot(type, "its init(from:) refused a sample value (\(error))")
        }
        return probe.record
    }

    private static func cannot(_ type: any Decodable.Type, _ why: String) -> TricornError {
        let remedy = type is any RawRepresentable.Type ? "CaseIterable" : "SchemaProviding"
        return .misuse("no JSON Schema can be derived from \(type): \(why); make it \(remedy) or pass the schema")
    }

    /// Makes the schema of a type that is made of others; nil for other types.
    private func generic(_ type: any Decodable.Type) throws -> JSONValue? {
        if let optional = type as? any OptionalType.Type {
            let schema = try schema(of: optional.wrapped)
            return nulls ? schema.orNull : schema
        }
        if let list = type as? any ListType.Type {
            var schema: JSONValue = ["type": "array", "items": try schema(of: list.element)]
            if list.isUnique { schema["uniqueItems"] = true }
            return schema
        }
        guard let dictionary = type as? any DictionaryType.Type else { return nil }
        let value = try schema(of: dictionary.value)
        if dictionary.hasNamedMembers { return ["type": "object", "additionalProperties": value] }
        // Keys and values in turn.
        return ["type": "array", "items": .any(of: [try schema(of: dictionary.key), value])]
    }

    /// The schema of a property that may be left out.
    func schema(ofOptional type: any Decodable.Type) throws -> JSONValue {
        let schema = try schema(of: type)
        return nulls ? schema.orNull : schema
    }

    func nullable(_ schema: JSONValue) -> JSONValue { nulls ? schema.orNull : schema }

    // MARK: - references

    /// A type's own schema. What it refers to within itself it does not find in a document about something else.
    private func provided(_ schema: JSONValue, _ identity: ObjectIdentifier, _ type: Any.Type) -> JSONValue {
        guard depth > 0, schema.refersToItself else { return schema }
        let place = reference(identity, type)
        let name = name(identity, type)
        if definitions[name] == nil { definitions[name] = schema.rebased(to: "#/$defs/\(name)") }
        return place
    }

    private func reference(_ identity: ObjectIdentifier, _ type: Any.Type) -> JSONValue {
        ["$ref": .string("#/$defs/\(name(identity, type))")]
    }

    /// A name for the type, its own in this document, that is a key and a part of a URI as it stands.
    private func name(_ identity: ObjectIdentifier, _ type: Any.Type) -> String {
        if let name = names[identity] { return name }
        var short = ""
        for scalar in String(describing: type).unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9", "_", "-", ".": short.unicodeScalars.append(scalar)
            default: if short.last != "_" { short += "_" }
            }
        }
        while short.last == "_" { short.removeLast() }
        if short.isEmpty { short = "Type" }
        var name = short, count = 1
        while taken.contains(name) {
            count += 1
            name = "\(short)_\(count)"
        }
        taken.insert(name)
        names[identity] = name
        return name
    }

    // MARK: - what needs no probe

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

    /// The raw values of all cases; nil when they have none.
    private static func enumeration<Cases: CaseIterable>(_ type: Cases.Type) throws -> JSONValue? {
        var values: [JSONValue] = []
        for one in type.allCases {
            switch (one as? any RawRepresentable)?.rawValue {
            case let text as String: values.append(.string(text))
            case let text as Character: values.append(.string(String(text)))
            case let number as any BinaryInteger:
                guard let exact = Int(exactly: number) else {
                    throw TricornError.misuse(
                        "no JSON Schema can be derived from \(type): \(number) is greater than any Int; pass the schema"
                    )
                }
                values.append(.int(exact))
            case let number as Double: values.append(.double(number))
            case let number as Float: values.append(.double(Double("\(number)") ?? Double(number)))
            default: return nil
            }
        }
        guard let first = values.first else { return nil }
        let name: JSONValue =
            switch first {
            case .string: "string"
            case .int: "integer"
            default: "number"
            }
        return ["type": name, "enum": .array(values)]
    }
}

extension JSONValue {
    private static let nothing: JSONValue = ["type": "null"]

    /// A schema that takes null, too.
    fileprivate var orNull: JSONValue {
        if objectValue?.isEmpty == true || self["type"] == "null" { return self }
        if let types = self["type"]?.arrayValue, types.contains("null") { return self }
        guard let either = self["anyOf"]?.arrayValue, objectValue?.count == 1 else {
            return .any(of: [self, Self.nothing])
        }
        return either.contains(Self.nothing) ? self : .any(of: either + [Self.nothing])
    }

    /// A schema that takes what one of these takes.
    static func any(of schemas: [JSONValue]) -> JSONValue {
        var different: [JSONValue] = []
        for schema in schemas where !different.contains(schema) { different.append(schema) }
        return different.count == 1 ? different[0] : ["anyOf": .array(different)]
    }

    private static let references: Set<String> = ["$ref", "$dynamicRef", "$recursiveRef"]
    private static let data: Set<String> = ["const", "enum", "default", "examples"]
    private static let maps: Set<String> = [
        "properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
    ]

    /// Something in this schema refers to a place in it.
    fileprivate var refersToItself: Bool { self["$id"] == nil && rebased(to: "#/") != self }

    /// This schema, whose place in its document is `place`.
    fileprivate func rebased(to place: String) -> JSONValue {
        switch self {
        case .array(let schemas): return .array(schemas.map { $0.rebased(to: place) })
        case .object(let members):
            var moved = JSONObject()
            for (key, value) in members {
                if Self.references.contains(key), let to = value.stringValue {
                    moved[key] = to == "#" || to.hasPrefix("#/") ? .string(place + to.dropFirst()) : value
                } else if Self.maps.contains(key), let schemas = value.objectValue {
                    moved[key] = .object(JSONObject(schemas.map { (key: $0.key, value: $0.value.rebased(to: place)) }))
                } else {
                    moved[key] = Self.data.contains(key) ? value : value.rebased(to: place)
                }
            }
            return .object(moved)
        default: return self
        }
    }
}

extension JSONValue {
    private static let texts: [String: String] = [
        "date-time": "1970-01-01T00:00:00Z", "date": "1970-01-01", "time": "00:00:00Z", "duration": "PT0S",
        "email": "a@example.com", "uri": "about:blank", "uuid": "00000000-0000-0000-0000-000000000000",
    ]

    /// A value that this schema is likely to take, `document` being where its references lead.
    fileprivate func sample(in document: JSONValue, depth: Int = 0) -> JSONValue {
        guard depth < SchemaBuilder.maxDepth else { return .null }
        let given: [JSONValue?] = [self["examples"]?[0], self["default"], self["const"], self["enum"]?[0]]
        for case let value? in given { return value }
        if let place = self["$ref"]?.stringValue.flatMap({ document.place($0) }) {
            return place.sample(in: document, depth: depth + 1)
        }
        var parts = self["allOf"]?.arrayValue ?? []
        if let either = self["oneOf"]?[0] ?? self["anyOf"]?[0] { parts.append(either) }
        var sample = plainSample(in: document, depth: depth)
        for part in parts {
            let other = part.sample(in: document, depth: depth + 1)
            if case .object(var members)? = sample, case .object(let more) = other {
                for (name, value) in more where !value.isNull { members[name] = value }
                sample = .object(members)
            } else if !other.isNull {
                sample = other
            }
        }
        return sample ?? JSONValue.null
    }

    /// The same, by the type that the schema names.
    private func plainSample(in document: JSONValue, depth: Int) -> JSONValue? {
        let properties = self["properties"]
        let type = self["type"]?.stringValue ?? self["type"]?[0]?.stringValue
        switch type ?? (properties == nil ? "" : "object") {
        case "string":
            var text = self["format"]?.stringValue.flatMap { Self.texts[$0] } ?? ""
            while text.count < min(self["minLength"]?.intValue ?? 0, 1000) { text += "a" }
            return .string(text)
        case "integer", "number":
            if let least = self["minimum"] { return least }
            if let below = self["exclusiveMinimum"]?.intValue { return .int(below &+ 1) }
            if let most = self["maximum"], (most.doubleValue ?? 0) < 0 { return most }
            return .int(0)
        case "boolean": return .bool(false)
        case "array":
            let element = self["items"]?.sample(in: document, depth: depth + 1) ?? JSONValue.null
            return .array(Array(repeating: element, count: max(0, min(self["minItems"]?.intValue ?? 0, 100))))
        case "object":
            let required = self["required"]?.arrayValue?.compactMap(\.stringValue) ?? []
            var members = JSONObject()
            for (name, property) in properties?.objectValue ?? [:]
            where required.contains(name) || property["const"] != nil {
                members[name] = property.sample(in: document, depth: depth + 1)
            }
            return .object(members)
        default: return nil
        }
    }

    /// The place in this document that a reference such as `#/$defs/word` leads to.
    private func place(_ reference: String) -> JSONValue? {
        guard reference.hasPrefix("#") else { return nil }
        var place: JSONValue? = self
        for step in reference.dropFirst().split(separator: "/") { place = place?[String(step)] }
        return place
    }
}

/// Values that let a synthesized `init(from:)` go on, one for each type.
final class SchemaSamples {
    /// A value of the type cannot be made without another one of it.
    struct Endless: Error {}

    private var made: [ObjectIdentifier: Any] = [:]
    private var making: Set<ObjectIdentifier> = []

    func value<Value: Decodable>(of type: Value.Type) throws -> Value {
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
        default: break
        }
        let identity = ObjectIdentifier(type)
        if let value = made[identity] as? Value { return value }
        guard making.count < SchemaBuilder.maxDepth, making.insert(identity).inserted else { throw Endless() }
        defer { making.remove(identity) }
        let value = try provided(type)
        made[identity] = value
        return value
    }

    /// A value as the schema of the type describes it, where the type has one and refuses any other value.
    private func provided<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard let provider = type as? any SchemaProviding.Type else { return try decoded(type) }
        do { return try decoded(type) } catch {
            let schema = provider.jsonSchema
            guard let value = try? schema.sample(in: schema).decode(as: type) else { throw error }
            return value
        }
    }

    /// Decodes a sample of a type: of an enum the first case that can be decoded.
    private func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard EnumCases.isEnum(type) else {
            return try Value(from: SchemaProbe(builder: nil, samples: self, choice: nil))
        }
        var choice = 0
        while true {
            let probe = SchemaProbe(builder: nil, samples: self, choice: choice)
            do {
                return try Value(from: probe)
            } catch {
                choice += 1
                guard let count = probe.record.choices, choice < count else { throw error }
            }
        }
    }

    private static func first<Cases: CaseIterable>(_ type: Cases.Type) -> Any? { type.allCases.first }
}

/// The cases of an enum without associated values, such as the coding keys that the compiler makes: Swift has no other way to
/// list them than its runtime's description of the type, which is the same in all versions.
enum EnumCases {
    private static let enumKind = 0x201

    static func isEnum(_ type: Any.Type) -> Bool {
        unsafeBitCast(type, to: UnsafeRawPointer.self).load(as: Int.self) == enumKind
    }

    /// All values, in the order of their declaration; empty for another type.
    static func all<Key>(_ type: Key.Type) -> [Key] {
        guard isEnum(type) else { return [] }
        let metadata = unsafeBitCast(type as Any.Type, to: UnsafeRawPointer.self)
        let description = metadata.load(fromByteOffset: MemoryLayout<Int>.size, as: UnsafeRawPointer.self)
        // Flags, parent, name, access function and fields come first, each of four bytes.
        let withPayload = description.load(fromByteOffset: 20, as: UInt32.self) & 0xFF_FFFF
        let count = Int(description.load(fromByteOffset: 24, as: UInt32.self))
        guard withPayload == 0, count > 0, count <= 1 << 16 else { return [] }
        let size = count == 1 ? 0 : count <= 1 << 8 ? 1 : 2
        guard MemoryLayout<Key>.size == size else { return [] }
        return (0..<count).map { number in
            withUnsafeTemporaryAllocation(of: Key.self, capacity: 1) { place in
                let bytes = UnsafeMutableRawPointer(place.baseAddress!)
                if size == 1 { bytes.storeBytes(of: UInt8(number), as: UInt8.self) }
                if size == 2 { bytes.storeBytes(of: UInt16(number), as: UInt16.self) }
                return bytes.load(as: Key.self)
            }
        }
    }
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

private protocol DictionaryType {
    static var key: any Decodable.Type { get }
    static var value: any Decodable.Type { get }
    /// It is an object; other keys and their values are elements of an array.
    static var hasNamedMembers: Bool { get }
}
extension Dictionary: DictionaryType where Key: Decodable, Value: Decodable {
    fileprivate static var key: any Decodable.Type { Key.self }
    fileprivate static var value: any Decodable.Type { Value.self }
    fileprivate static var hasNamedMembers: Bool {
        Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type
    }
}
