/// What one type asked its decoder for.
final class SchemaRecord {
    private var properties = JSONObject()
    private var required: [JSONValue] = []
    /// Set when the type decodes from something else than an object.
    var whole: JSONValue?

    func add(_ name: String, _ schema: JSONValue, optional: Bool) {
        guard properties[name] == nil else { return }
        properties[name] = schema
        if !optional { required.append(.string(name)) }
    }

    func schema(describing type: Any.Type) -> JSONValue {
        if let whole { return whole }
        var described = properties
        if let texts = (type as? any DescribedProperties.Type)?.propertyDescriptions {
            for (name, text) in texts where described[name] != nil { described[name]?["description"] = .string(text) }
        }
        var schema: JSONValue = ["type": "object", "properties": .object(described)]
        if !required.isEmpty { schema["required"] = .array(required) }
        return schema
    }
}

/// A decoder that has no input: it notes what is asked for and answers with sample values.
///
/// With a builder it records; without one it only makes a value, which ends recursive types.
struct SchemaProbe: Decoder {
    let builder: SchemaBuilder?
    let record = SchemaRecord()

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(ProbedMembers(builder: builder, record: record))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { ProbedElements(builder: builder, record: record) }

    func singleValueContainer() -> any SingleValueDecodingContainer { ProbedValue(builder: builder, record: record) }
}

private struct ProbedMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let builder: SchemaBuilder?
    let record: SchemaRecord

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { [] }
    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { false }

    private func note(_ type: any Decodable.Type, _ key: Key, optional: Bool) throws {
        guard let builder else { return }
        record.add(key.stringValue, try builder.schema(of: type), optional: optional)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try note(type, key, optional: false)
        return try SchemaBuilder.sample(type)
    }

    private func optional<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        try note(type, key, optional: true)
        return nil
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try note(type, key, optional: false)
        return false
    }

    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try note(type, key, optional: false)
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
        record.add(key.stringValue, ["type": "object"], optional: false)
        return KeyedDecodingContainer(ProbedMembers<Nested>(builder: nil, record: SchemaRecord()))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        record.add(key.stringValue, ["type": "array"], optional: false)
        return ProbedElements(builder: nil, record: SchemaRecord())
    }

    func superDecoder() throws -> any Decoder { SchemaProbe(builder: nil) }
    func superDecoder(forKey key: Key) throws -> any Decoder { SchemaProbe(builder: nil) }
}

private struct ProbedElements: UnkeyedDecodingContainer {
    let builder: SchemaBuilder?
    let record: SchemaRecord
    private(set) var currentIndex = 0

    init(builder: SchemaBuilder?, record: SchemaRecord) {
        self.builder = builder
        self.record = record
        if builder != nil { record.whole = ["type": "array"] }
    }

    var codingPath: [any CodingKey] { [] }
    var count: Int? { nil }
    var isAtEnd: Bool { currentIndex >= 1 || builder == nil }
    mutating func decodeNil() throws -> Bool { false }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        if let builder, currentIndex == 1 { record.whole = ["type": "array", "items": try builder.schema(of: type)] }
        return try SchemaBuilder.sample(type)
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedDecodingContainer<Nested> {
        currentIndex += 1
        return KeyedDecodingContainer(ProbedMembers<Nested>(builder: nil, record: SchemaRecord()))
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return ProbedElements(builder: nil, record: SchemaRecord())
    }

    mutating func superDecoder() throws -> any Decoder {
        currentIndex += 1
        return SchemaProbe(builder: nil)
    }
}

private struct ProbedValue: SingleValueDecodingContainer {
    let builder: SchemaBuilder?
    let record: SchemaRecord

    var codingPath: [any CodingKey] { [] }
    func decodeNil() -> Bool { false }

    private func answer<Value: Decodable>(_ type: Value.Type, _ sample: @autoclosure () throws -> Value) throws -> Value
    {
        if let builder { record.whole = try builder.schema(of: type) }
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
        try answer(type, try SchemaBuilder.sample(type))
    }
}
