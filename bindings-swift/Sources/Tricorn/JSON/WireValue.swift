/// A value that a field of a wire type can hold, read in two steps: whole messages are checked once, when they are made.
protocol WireValue: Sendable {
    /// Throws `DecodingError` when `json` is something else.
    static func check(_ json: JSONValue) throws

    /// From what `check` has let pass.
    init(checked json: JSONValue)

    var json: JSONValue { get }

    /// True if `init(checked:)` can make something of it: peers are not always checked.
    static func fits(_ json: JSONValue) -> Bool
}

extension WireValue {
    static func fits(_ json: JSONValue) -> Bool { true }
}

extension JSONValue: WireValue {
    static func check(_ json: JSONValue) {}

    init(checked json: JSONValue) { self = json }

    var json: JSONValue { self }

    func mismatch(_ expected: String) -> DecodingError {
        let text = description
        let got = text.utf8.count <= 80 ? text : "\(text.prefix(77))…"
        return .typeMismatch(Self.self, .init(codingPath: [], debugDescription: "expected \(expected), got \(got)"))
    }
}

extension JSONObject: WireValue {
    static func check(_ json: JSONValue) throws {
        guard case .object = json else { throw json.mismatch("object") }
    }

    init(checked json: JSONValue) { self = json.objectValue ?? [:] }

    var json: JSONValue { .object(self) }
}

extension Bool: WireValue {
    static func fits(_ json: JSONValue) -> Bool { json.boolValue != nil }

    static func check(_ json: JSONValue) throws {
        guard case .bool = json else { throw json.mismatch("boolean") }
    }

    init(checked json: JSONValue) { self = json.boolValue ?? false }

    var json: JSONValue { .bool(self) }
}

extension Int: WireValue {
    static func fits(_ json: JSONValue) -> Bool { json.intValue != nil }

    static func check(_ json: JSONValue) throws {
        guard json.intValue != nil else { throw json.mismatch("integer") }
    }

    init(checked json: JSONValue) { self = json.intValue ?? 0 }

    var json: JSONValue { .int(self) }
}

extension Double: WireValue {
    static func fits(_ json: JSONValue) -> Bool { json.doubleValue != nil }

    static func check(_ json: JSONValue) throws {
        guard json.doubleValue != nil else { throw json.mismatch("number") }
    }

    init(checked json: JSONValue) { self = json.doubleValue ?? 0 }

    var json: JSONValue { .double(self) }
}

extension String: WireValue {
    static func fits(_ json: JSONValue) -> Bool { json.stringValue != nil }

    static func check(_ json: JSONValue) throws {
        guard case .string = json else { throw json.mismatch("string") }
    }

    init(checked json: JSONValue) { self = json.stringValue ?? "" }

    var json: JSONValue { .string(self) }
}

extension Array: WireValue where Element: WireValue {
    static func check(_ json: JSONValue) throws {
        guard let elements = json.arrayValue else { throw json.mismatch("array") }
        for (index, element) in elements.enumerated() {
            try DecodingError.at("\(index)") { try Element.check(element) }
        }
    }

    init(checked json: JSONValue) { self = (json.arrayValue ?? []).map { Element(checked: $0) } }

    var json: JSONValue { .array(map(\.json)) }
}

extension Dictionary: WireValue where Key == String, Value: WireValue {
    static func check(_ json: JSONValue) throws {
        guard let members = json.objectValue else { throw json.mismatch("object") }
        for (key, value) in members { try DecodingError.at(key) { try Value.check(value) } }
    }

    init(checked json: JSONValue) {
        self = [:]
        for (key, value) in json.objectValue ?? [:] { self[key] = Value(checked: value) }
    }

    /// In the order of the keys: a dictionary has none of its own.
    var json: JSONValue {
        .object(JSONObject(sorted { $0.key < $1.key }.lazy.map { (key: $0.key, value: $0.value.json) }))
    }
}

extension DecodingError {
    static func missing(_ key: String) -> DecodingError {
        .keyNotFound(JSONKey(key), .init(codingPath: [], debugDescription: "missing (required)"))
    }

    /// Runs `body`; an error gets `step` in front of its path.
    static func at(_ step: String, _ body: () throws -> Void) throws {
        do { try body() } catch let error as DecodingError { throw error.inside(step) }
    }

    func inside(_ step: String) -> DecodingError {
        func longer(_ context: Context) -> Context {
            .init(
                codingPath: [JSONKey(step)] + context.codingPath, debugDescription: context.debugDescription,
                underlyingError: context.underlyingError)
        }
        return switch self {
        case .typeMismatch(let type, let context): .typeMismatch(type, longer(context))
        case .valueNotFound(let type, let context): .valueNotFound(type, longer(context))
        case .keyNotFound(let key, let context): .keyNotFound(key, longer(context))
        case .dataCorrupted(let context): .dataCorrupted(longer(context))
        @unknown default: self
        }
    }
}
