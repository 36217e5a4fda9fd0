#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Room for one value in a `JSONWriter`: the `Encoder` that a value is given.
///
/// What a value encodes is written at once, behind what is there already. Only containers that can be filled after
/// others were begun (`nestedContainer`, `superEncoder`) get a writer of their own.
final class JSONSlot: Encoder {
    fileprivate enum Shape { case empty, value, array, object }

    fileprivate let writer: JSONWriter
    fileprivate let path: JSONPath?
    fileprivate var shape = Shape.empty
    fileprivate var members = 0

    init(_ writer: JSONWriter, path: JSONPath?) {
        self.writer = writer
        self.path = path
    }

    var codingPath: [any CodingKey] { JSONPath.keys(path) }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        open(.object)
        return KeyedEncodingContainer(JSONMembersWriter(slot: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        open(.array)
        return JSONElementsWriter(slot: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { JSONValueWriter(slot: self) }

    fileprivate func open(_ shape: Shape) {
        guard self.shape == .empty else { return }
        self.shape = shape
        writer.append(shape == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    }

    /// Ends the value. One that encoded nothing is an empty object.
    @discardableResult
    func finish() throws -> JSONWriter {
        switch shape {
        case .empty: writer.append(literal: "{}")
        case .object: writer.append(UInt8(ascii: "}"))
        case .array: writer.append(UInt8(ascii: "]"))
        case .value: break
        }
        shape = .value
        return writer
    }

    func write(_ value: JSONValue) throws {
        if let (path, number) = value.flaw { throw Self.noNumber(number, codingPath + path) }
        shape = .value
        writer.append(value)
    }

    fileprivate func nothing() {
        shape = .value
        writer.append(literal: "null")
    }

    fileprivate func number(_ value: Double) throws {
        guard value.isFinite else { throw Self.noNumber(value, codingPath) }
        shape = .value
        writer.append(value)
    }

    private static func noNumber(_ value: some Sendable, _ path: [any CodingKey]) -> EncodingError {
        .invalidValue(value, .init(codingPath: path, debugDescription: "\(value) is no JSON number"))
    }

    /// Writes the value; `finish` is still to be called.
    func encode<Value: Encodable>(_ value: Value) throws {
        // Comparing types first: a failed `as?` costs more than all of these.
        let type = Value.self
        if type == String.self { return text(value as! String) }
        if type == Int.self { return integer(value as! Int) }
        if type == Double.self { return try number(value as! Double) }
        if type == Bool.self {
            shape = .value
            return writer.append(value as! Bool)
        }
        if type == JSONValue.self { return try write(value as! JSONValue) }
        if type == Date.self { return date(value as! Date) }
        if type == URL.self { return text((value as! URL).absoluteString) }
        if type == Data.self { return text((value as! Data).base64EncodedString()) }
        if type == Decimal.self {
            guard let number = value as? Decimal, number.isFinite else { throw Self.noNumber("NaN", codingPath) }
            shape = .value
            var digits = number.description
            return digits.withUTF8 { writer.append($0) }
        }
        try value.encode(to: self)
    }

    private func date(_ value: Date) {
        let fraction = value.timeIntervalSince1970.truncatingRemainder(dividingBy: 1) != 0
        text(value.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: fraction)))
    }

    fileprivate func text(_ value: String) {
        shape = .value
        writer.append(value)
    }

    fileprivate func integer(_ value: some BinaryInteger) {
        shape = .value
        writer.append(value)
    }

    /// Room for the next member of this object, or the next element of this array.
    fileprivate func next(_ key: (any CodingKey)?, deferred: Bool = false) -> JSONSlot {
        if members > 0 { writer.append(UInt8(ascii: ",")) }
        let path = JSONPath(path, key ?? JSONKey(intValue: members))
        members += 1
        if let key {
            writer.append(key.stringValue)
            writer.append(UInt8(ascii: ":"))
        }
        guard deferred else { return JSONSlot(writer, path: path) }
        let slot = JSONSlot(JSONWriter(), path: path)
        writer.insert(slot)
        return slot
    }
}

private struct JSONMembersWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let slot: JSONSlot

    var codingPath: [any CodingKey] { slot.codingPath }

    private func put(_ key: Key, _ body: (JSONSlot) throws -> Void) rethrows {
        let next = slot.next(key)
        try body(next)
    }

    mutating func encodeNil(forKey key: Key) throws { put(key) { $0.nothing() } }
    mutating func encode(_ value: String, forKey key: Key) throws { put(key) { $0.text(value) } }
    mutating func encode(_ value: Int, forKey key: Key) throws { put(key) { $0.integer(value) } }
    mutating func encode(_ value: Double, forKey key: Key) throws { try put(key) { try $0.number(value) } }

    mutating func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try put(key) {
            try $0.encode(value)
            try $0.finish()
        }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> { slot.next(key, deferred: true).container(keyedBy: type) }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        slot.next(key, deferred: true).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { slot.next(JSONKey("super"), deferred: true) }
    mutating func superEncoder(forKey key: Key) -> any Encoder { slot.next(key, deferred: true) }
}

private struct JSONElementsWriter: UnkeyedEncodingContainer {
    let slot: JSONSlot

    var codingPath: [any CodingKey] { slot.codingPath }
    var count: Int { slot.members }

    mutating func encodeNil() throws { slot.next(nil).nothing() }
    mutating func encode(_ value: String) throws { slot.next(nil).text(value) }
    mutating func encode(_ value: Int) throws { slot.next(nil).integer(value) }
    mutating func encode(_ value: Double) throws { try slot.next(nil).number(value) }

    mutating func encode<Value: Encodable>(_ value: Value) throws {
        let next = slot.next(nil)
        try next.encode(value)
        try next.finish()
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        slot.next(nil, deferred: true).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        slot.next(nil, deferred: true).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { slot.next(nil, deferred: true) }
}

private struct JSONValueWriter: SingleValueEncodingContainer {
    let slot: JSONSlot

    var codingPath: [any CodingKey] { slot.codingPath }

    mutating func encodeNil() throws { slot.nothing() }
    mutating func encode(_ value: Bool) throws { try slot.encode(value) }
    mutating func encode(_ value: String) throws { slot.text(value) }
    mutating func encode(_ value: Double) throws { try slot.number(value) }
    mutating func encode(_ value: Float) throws { try slot.number(Double("\(value)") ?? Double(value)) }
    mutating func encode(_ value: Int) throws { slot.integer(value) }
    mutating func encode(_ value: Int8) throws { slot.integer(value) }
    mutating func encode(_ value: Int16) throws { slot.integer(value) }
    mutating func encode(_ value: Int32) throws { slot.integer(value) }
    mutating func encode(_ value: Int64) throws { slot.integer(value) }
    mutating func encode(_ value: UInt) throws { slot.integer(value) }
    mutating func encode(_ value: UInt8) throws { slot.integer(value) }
    mutating func encode(_ value: UInt16) throws { slot.integer(value) }
    mutating func encode(_ value: UInt32) throws { slot.integer(value) }
    mutating func encode(_ value: UInt64) throws { slot.integer(value) }
    mutating func encode<Value: Encodable>(_ value: Value) throws { try slot.encode(value) }
}
