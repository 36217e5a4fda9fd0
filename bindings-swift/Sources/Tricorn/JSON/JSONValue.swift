/// Any JSON value; literals work: `["name": "Ada", "tags": [1, true, nil]]`.
///
/// Whole numbers that fit are `int`, all others `double`. Objects keep the order of their members.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case int(Int)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)

    /// Parses a JSON text. Throws `TricornError.misuse` when it is not one.
    public init(parsing text: String) throws {
        do {
            let parsed = try JSONText(text.utf8)
            self.init(parsed, 0)
        } catch let error as JSONSyntaxError {
            throw TricornError.misuse(error.description)
        }
    }

    /// The JSON value that `value` encodes to. Throws `EncodingError`.
    public init(encoding value: some Encodable) throws {
        let writer = try JSONWriter.encode(value)
        let parsed = try writer.withBytes { try JSONText($0) }
        self.init(parsed, 0)
    }

    /// Decodes a `type` from this value. Throws `DecodingError`.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
        let writer = JSONWriter()
        writer.append(self)
        let parsed = try writer.withBytes { try JSONText($0) }
        return try JSONReader.decode(type, parsed, 0)
    }

    init(_ text: JSONText, _ index: Int) {
        switch text.tokens[index].kind {
        case .null: self = .null
        case .true: self = .bool(true)
        case .false: self = .bool(false)
        case .number:
            // `1.0` stays a double: what is written is what was read.
            let whole = !text.raw(index).contains { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }
            if whole, let int = text.integer(index, as: Int.self) {
                self = .int(int)
            } else {
                self = .double(text.double(index) ?? 0)
            }
        case .string, .escapedString: self = .string(text.string(index))
        case .array:
            var elements: [JSONValue] = []
            var at = index + 1
            while at < Int(text.tokens[index].next) {
                elements.append(JSONValue(text, at))
                at = Int(text.tokens[at].next)
            }
            self = .array(elements)
        case .object:
            var object = JSONObject()
            var at = index + 1
            while at < Int(text.tokens[index].next) {
                object[text.string(at)] = JSONValue(text, at + 1)
                at = Int(text.tokens[at + 1].next)
            }
            self = .object(object)
        }
    }
}

extension JSONValue {
    /// The member `key` of an object; nil when this is no object or has no such member.
    public subscript(key: String) -> JSONValue? {
        get { objectValue?[key] }
        set {
            var object = objectValue ?? [:]
            object[key] = newValue
            self = .object(object)
        }
    }

    /// The element at `index` of an array; nil when this is no array or is shorter.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// True for JSON's null.
    public var isNull: Bool { self == .null }

    /// The truth value; nil when this is none.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }

    /// The number as a whole one; `2.0` is 2.
    public var intValue: Int? {
        switch self {
        case .int(let value): value
        case .double(let value): Int(exactly: value)
        default: nil
        }
    }

    /// The number; nil when this is none.
    public var doubleValue: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// The string; nil when this is none.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }

    /// The elements; nil when this is no array.
    public var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// The members; nil when this is no object.
    public var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }
}

extension JSONValue: CustomStringConvertible {
    /// The value as compact JSON text; numbers that JSON does not have are null.
    public var description: String {
        let writer = JSONWriter()
        writer.append(self)
        return writer.withBytes { String(decoding: $0, as: UTF8.self) }
    }
}

extension JSONValue {
    /// The text for the core. Throws `TricornError.misuse`, naming a number that JSON does not have.
    var checkedText: String {
        get throws {
            let writer = JSONWriter()
            writer.append(self)
            return try writer.withData { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// The first number that JSON does not have, and the way to it.
    var flaw: (path: [any CodingKey], number: Double)? {
        switch self {
        case .double(let value) where !value.isFinite: return ([], value)
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                if let (path, number) = element.flaw { return ([JSONKey(intValue: index)] + path, number) }
            }
        case .object(let members):
            for (key, member) in members {
                if let (path, number) = member.flaw { return ([JSONKey(key)] + path, number) }
            }
        default: break
        }
        return nil
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// `nil` is JSON's null.
    public init(nilLiteral: ()) { self = .null }
    /// `true` and `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .int(value) }
    /// A number with a fraction.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// `[1, "two", nil]`.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// `["a": 1]`: an object, its members in this order.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(JSONObject(members.lazy.map { (key: $0.0, value: $0.1) }))
    }
}

extension JSONValue: Codable {
    /// Any JSON value, from any decoder.
    public init(from decoder: any Decoder) throws {
        if let reader = decoder as? JSONReader {
            self.init(reader.text, reader.index)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode(JSONObject.self))
        }
    }

    /// The value as it is, for any encoder.
    public func encode(to encoder: any Encoder) throws {
        if let slot = encoder as? JSONSlot {
            try slot.write(self)
            return
        }
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}
