/// A record of what one type asked its decoder for.
final class SchemaRecord {
    /// The schema, or the record, of one place.
    private enum Part {
        case schema(JSONValue)
        case nested(SchemaRecord)

        var schema: JSONValue {
            switch self {
            case .schema(let schema): schema
            case .nested(let record): record.schema(describing: nil)
            }
        }
    }

    private var names: [String] = []
    private var members: [String: Part] = [:]
    private var required: Set<String> = []
    private var asked: Set<String> = []
    private var nullable: Set<String> = []
    private var elements: [Part]?
    private var whole: JSONValue?
    /// The type of the value of its own that was asked for.
    private(set) var wholeType: ObjectIdentifier?
    /// It has asked whether its own value is null.
    private(set) var takesNull = false
    /// Types of a value of its own that it is not given.
    private let refused: Set<ObjectIdentifier>
    /// Number of keys to choose from, when an enum has asked which are there.
    var choices: Int?

    init(refusing refused: Set<ObjectIdentifier> = []) { self.refused = refused }

    /// The type has looked whether the member is there before it asked for it.
    func look(for name: String) { asked.insert(name) }

    func isLookedFor(_ name: String) -> Bool { asked.contains(name) }

    /// The type has looked whether the member is null before it asked for it.
    func allowNull(for name: String) { nullable.insert(name) }

    func mayBeNull(_ name: String) -> Bool { nullable.contains(name) }

    func allowNull() { takesNull = true }

    func refuses(_ type: Any.Type) -> Bool { refused.contains(ObjectIdentifier(type)) }

    /// Nothing was asked for.
    var isEmpty: Bool { whole == nil && elements == nil && names.isEmpty }

    func add(_ name: String, _ schema: JSONValue, optional: Bool) { add(name, .schema(schema), optional) }

    func nested(_ name: String, optional: Bool = false) -> SchemaRecord {
        if case .nested(let record) = members[name] { return record }
        let record = SchemaRecord()
        add(name, .nested(record), optional)
        return record
    }

    private func add(_ name: String, _ part: Part, _ optional: Bool) {
        guard members[name] == nil else { return }
        names.append(name)
        members[name] = part
        if !optional { required.insert(name) }
    }

    /// It decodes from an array.
    func beginArray() { elements = elements ?? [] }

    func addElement(_ schema: JSONValue) { elements?.append(.schema(schema)) }

    func nestedElement() -> SchemaRecord {
        let record = SchemaRecord()
        elements?.append(.nested(record))
        return record
    }

    /// It decodes from a value of its own.
    func set(whole schema: JSONValue, of type: Any.Type) {
        guard whole == nil else { return }
        whole = schema
        wholeType = ObjectIdentifier(type)
    }

    func schema(describing type: Any.Type?) -> JSONValue {
        if let whole { return whole }
        if let elements {
            return elements.isEmpty
                ? ["type": "array"] : ["type": "array", "items": .any(of: elements.map(\.schema))]
        }
        var properties = JSONObject()
        let texts = (type as? any DescribedProperties.Type)?.propertyDescriptions ?? [:]
        for name in names {
            properties[name] = members[name]?.schema
            if let text = texts[name] { properties[name]?["description"] = .string(text) }
        }
        var schema: JSONValue = ["type": "object", "properties": .object(properties)]
        let required = names.filter(required.contains)
        if !required.isEmpty { schema["required"] = .array(required.map(JSONValue.string)) }
        return schema
    }
}

/// A decoder that has no input: it notes what is asked for and answers with sample values.
///
/// With a builder it records; without one it only makes a value, which ends recursive types.
struct SchemaProbe: Decoder {
    let builder: SchemaBuilder?
    let samples: SchemaSamples
    /// The number of the case that an enum is to be.
    let choice: Int?
    var record = SchemaRecord()

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(ProbedMembers(probe: self))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { ProbedElements(probe: self) }

    func singleValueContainer() -> any SingleValueDecodingContainer { ProbedValue(probe: self) }

    /// The same for a value inside.
    fileprivate func inside(_ record: SchemaRecord) -> SchemaProbe {
        SchemaProbe(builder: builder, samples: samples, choice: nil, record: record)
    }
}

private struct ProbedMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let probe: SchemaProbe

    private var record: SchemaRecord { probe.record }

    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        guard let choice = probe.choice else { return [] }
        let keys = EnumCases.all(Key.self)
        guard !keys.isEmpty else { return [] }
        record.choices = keys.count
        return choice < keys.count ? [keys[choice]] : []
    }

    func contains(_ key: Key) -> Bool {
        record.look(for: key.stringValue)
        return true
    }

    func decodeNil(forKey key: Key) -> Bool {
        record.allowNull(for: key.stringValue)
        return false
    }

    private func note(_ type: any Decodable.Type, _ key: Key) throws {
        guard let builder = probe.builder else { return }
        let name = key.stringValue
        let schema = try builder.schema(of: type)
        record.add(
            name, record.mayBeNull(name) ? builder.nullable(schema) : schema, optional: record.isLookedFor(name))
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try note(type, key)
        return try probe.samples.value(of: type)
    }

    private func optional<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        guard let builder = probe.builder else { return nil }
        record.add(key.stringValue, builder.nullable(try builder.schema(of: type)), optional: true)
        return nil
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try note(type, key)
        return false
    }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try note(type, key)
        return ""
    }

    // A synthesized initializer asks for an optional property with one of these.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try optional(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try optional(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try optional(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try optional(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try optional(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try optional(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try optional(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try optional(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try optional(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try optional(type, key) }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try optional(type, key)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        probe.inside(record.nested(key.stringValue)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        probe.inside(record.nested(key.stringValue)).unkeyedContainer()
    }

    // What is encoded there need not be: without it, decoding goes on with what is around it.
    func superDecoder() throws -> any Decoder { probe.inside(record.nested("super", optional: true)) }

    func superDecoder(forKey key: Key) throws -> any Decoder { probe.inside(record.nested(key.stringValue)) }
}

private struct ProbedElements: UnkeyedDecodingContainer {
    /// No type asks for more elements than these that may end anywhere.
    private static let most = 10_000

    let probe: SchemaProbe
    private(set) var currentIndex = 0

    init(probe: SchemaProbe) {
        self.probe = probe
        probe.record.beginArray()
    }

    var codingPath: [any CodingKey] { [] }
    var count: Int? { nil }
    var isAtEnd: Bool { currentIndex >= 1 || probe.builder == nil }
    mutating func decodeNil() throws -> Bool { false }

    private mutating func advance() throws {
        currentIndex += 1
        guard currentIndex <= Self.most else { throw SchemaSamples.Endless() }
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try advance()
        if let builder = probe.builder { probe.record.addElement(try builder.schema(of: type)) }
        return try probe.samples.value(of: type)
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try advance()
        return probe.inside(probe.record.nestedElement()).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try advance()
        return probe.inside(probe.record.nestedElement()).unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder {
        try advance()
        return probe.inside(probe.record.nestedElement())
    }
}

private struct ProbedValue: SingleValueDecodingContainer {
    let probe: SchemaProbe

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool {
        probe.record.allowNull()
        return false
    }

    private func answer<Value: Decodable>(_ type: Value.Type, _ sample: @autoclosure () throws -> Value) throws -> Value
    {
        guard !probe.record.refuses(type) else {
            throw DecodingError.typeMismatch(type, .init(codingPath: [], debugDescription: "something else"))
        }
        if let builder = probe.builder { probe.record.set(whole: try builder.schema(of: type), of: type) }
        return try sample()
    }

    func decode(_ type: Bool.Type) throws -> Bool { try answer(type, false) }
    func decode(_ type: String.Type) throws -> String { try answer(type, "") }
    func decode(_ type: Double.Type) throws -> Double { try answer(type, 0) }
    func decode(_ type: Float.Type) throws -> Float { try answer(type, 0) }
    func decode(_ type: Int.Type) throws -> Int { try answer(type, 0) }
    func decode(_ type: Int8.Type) throws -> Int8 { try answer(type, 0) }
    func decode(_ type: Int16.Type) throws -> Int16 { try answer(type, 0) }
    func decode(_ type: Int32.Type) throws -> Int32 { try answer(type, 0) }
    func decode(_ type: Int64.Type) throws -> Int64 { try answer(type, 0) }
    func decode(_ type: UInt.Type) throws -> UInt { try answer(type, 0) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try answer(type, 0) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try answer(type, 0) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try answer(type, 0) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try answer(type, 0) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try answer(type, try probe.samples.value(of: type))
    }
}
