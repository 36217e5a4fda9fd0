#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The place of a value, for error messages only; a list, so that decoding does not copy arrays.
final class JSONPath: Sendable {
    let parent: JSONPath?
    let key: any CodingKey

    init(_ parent: JSONPath?, _ key: any CodingKey) {
        self.parent = parent
        self.key = key
    }

    static func keys(_ path: JSONPath?) -> [any CodingKey] {
        var keys: [any CodingKey] = [], step = path
        while let here = step {
            keys.append(here.key)
            step = here.parent
        }
        return keys.reversed()
    }

    /// For people: `a[0].b`.
    static func text(_ path: [any CodingKey]) -> String {
        path.enumerated().map { position, key in
            if let index = key.intValue { return "[\(index)]" }
            return position == 0 ? key.stringValue : ".\(key.stringValue)"
        }.joined()
    }
}

/// Decodes one value of a `JSONText`. Errors read like those of the core's validation: `expected integer, got "x"`.
struct JSONReader: Decoder {
    let text: JSONText
    let index: Int
    let path: JSONPath?

    var codingPath: [any CodingKey] { JSONPath.keys(path) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    static func decode<Value: Decodable>(_ type: Value.Type, _ text: JSONText, _ index: Int) throws -> Value {
        try JSONReader(text: text, index: index, path: nil).decode(type)
    }

    var token: JSONToken { text.tokens[index] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard token.kind == .object else { throw mismatch("object") }
        return KeyedDecodingContainer(JSONMembers(reader: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard token.kind == .array else { throw mismatch("array") }
        return JSONElements(reader: self)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    /// The value cannot be what is asked for.
    func mismatch(_ expected: String) -> DecodingError {
        let shown = text.raw(index)
        let got = shown.count <= 80 ? String(decoding: shown, as: UTF8.self) : "a long \(token.kind.name)"
        let context = DecodingError.Context(
            codingPath: codingPath, debugDescription: "expected \(expected), got \(got)")
        return .typeMismatch(Any.self, context)
    }

    private func whole<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        if let number = text.integer(index, as: type) { return number }
        guard token.kind == .number, text.double(index).map({ $0 == $0.rounded() }) == true else {
            throw mismatch("integer")
        }
        throw mismatch("integer from \(Number.min) to \(Number.max)")
    }

    private func number() throws -> Double {
        guard let number = text.double(index) else { throw mismatch("number") }
        return number
    }
}

extension JSONReader: SingleValueDecodingContainer {
    func decodeNil() -> Bool { token.kind == .null }

    func decode(_ type: Bool.Type) throws -> Bool {
        switch token.kind {
        case .true: true
        case .false: false
        default: throw mismatch("boolean")
        }
    }

    func decode(_ type: String.Type) throws -> String {
        guard token.kind == .string || token.kind == .escapedString else { throw mismatch("string") }
        return text.string(index)
    }

    func decode(_ type: Double.Type) throws -> Double { try number() }
    func decode(_ type: Float.Type) throws -> Float { Float(try number()) }
    func decode(_ type: Int.Type) throws -> Int { try whole(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try whole(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try whole(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try whole(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try whole(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try whole(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try whole(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try whole(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try whole(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try whole(type) }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        // Foundation's types whose own Codable is not what JSON Schema's formats say.
        if type == Date.self { return try date() as! Value }
        if type == URL.self { return try url() as! Value }
        if type == Data.self { return try data() as! Value }
        if type == Decimal.self { return try decimal() as! Value }
        return try Value(from: self)
    }

    private func date() throws -> Date {
        let string = try decode(String.self)
        if let date = try? Date.ISO8601FormatStyle().parse(string) { return date }
        if let date = try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(string) { return date }
        throw mismatch("date-time")
    }

    private func url() throws -> URL {
        guard let url = URL(string: try decode(String.self)) else { throw mismatch("uri") }
        return url
    }

    private func data() throws -> Data {
        guard let data = Data(lenient: try decode(String.self)) else { throw mismatch("base64") }
        return data
    }

    private func decimal() throws -> Decimal {
        guard token.kind == .number, let decimal = Decimal(string: String(decoding: text.raw(index), as: UTF8.self))
        else {
            throw mismatch("number")
        }
        return decimal
    }
}

/// The members of an object, by coding key.
private struct JSONMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let reader: JSONReader

    var codingPath: [any CodingKey] { reader.codingPath }

    var allKeys: [Key] {
        var keys: [Key] = []
        var at = reader.index + 1
        while at < Int(reader.token.next) {
            if let key = Key(stringValue: reader.text.string(at)) { keys.append(key) }
            at = Int(reader.text.tokens[at + 1].next)
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { reader.text.member(key.stringValue, of: reader.index) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try value(key).decodeNil() }

    @inline(__always)
    private func value(_ key: Key) throws -> JSONReader {
        guard let index = reader.text.member(key.stringValue, of: reader.index) else {
            let path = JSONPath.keys(JSONPath(reader.path, key))
            throw DecodingError.keyNotFound(
                key, .init(codingPath: path, debugDescription: "missing (required)"))
        }
        return JSONReader(text: reader.text, index: index, path: JSONPath(reader.path, key))
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key).decode(type) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(key).decode(type) }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try value(key).decode(type) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try value(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try value(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        guard let index = reader.text.member("super", of: reader.index) else { return reader }
        return JSONReader(text: reader.text, index: index, path: JSONPath(reader.path, JSONKey("super")))
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { try value(key) }
}

/// The elements of an array, in turn.
private struct JSONElements: UnkeyedDecodingContainer {
    let reader: JSONReader
    private var at: Int
    private(set) var currentIndex = 0

    init(reader: JSONReader) {
        self.reader = reader
        at = reader.index + 1
    }

    var codingPath: [any CodingKey] { reader.codingPath }
    var isAtEnd: Bool { at >= Int(reader.token.next) }

    var count: Int? {
        var count = 0, at = reader.index + 1
        while at < Int(reader.token.next) {
            count += 1
            at = Int(reader.text.tokens[at].next)
        }
        return count
    }

    private func peek() throws -> JSONReader {
        let path = JSONPath(reader.path, JSONKey(intValue: currentIndex))
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                Any.self, .init(codingPath: JSONPath.keys(path), debugDescription: "missing (required)"))
        }
        return JSONReader(text: reader.text, index: at, path: path)
    }

    private mutating func advance<Result>(_ body: (JSONReader) throws -> Result) throws -> Result {
        let result = try body(peek())
        at = Int(reader.text.tokens[at].next)
        currentIndex += 1
        return result
    }

    mutating func decodeNil() throws -> Bool {
        guard try peek().decodeNil() else { return false }
        return try advance { _ in true }
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try advance { try $0.decode(type) } }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try advance { try $0.container(keyedBy: type) } }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try advance { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try advance { $0 } }
}
