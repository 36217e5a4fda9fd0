/// A type of the protocol: made from a JSON value and turned into one again without losing anything.
public protocol _WireType: Codable, Hashable, Sendable, CustomDebugStringConvertible {
    /// Throws `DecodingError` when a field that the schema requires is missing or a field has the wrong type.
    init(json: JSONValue) throws

    /// The value as on the wire.
    var json: JSONValue { get }
}

extension _WireType {
    /// Throws `DecodingError` as `init(json:)` does.
    public init(from decoder: any Decoder) throws { try self.init(json: JSONValue(from: decoder)) }

    /// Its JSON, also when it is printed.
    public var debugDescription: String { json.description }

    /// As on the wire.
    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

/// An object of the protocol. It is the JSON object it came from, with typed properties for the fields of the schema:
/// unknown fields, explicit nulls, the order of the fields and the spelling of numbers stay as they were. Two are equal
/// when they are the same JSON value; the order of the fields does not count.
public protocol _WireObject: _WireType {
    /// The schema's requirements of the fields.
    static var rules: [_WireRule] { get }
    /// The fields as they came.
    var fields: _WireFields { get }
    /// Makes a value of fields that obey `rules`.
    init(fields: _WireFields)
}

extension _WireObject {
    /// Throws `DecodingError` when the value breaks a rule of the schema.
    public init(json: JSONValue) throws {
        try Self.check(json)
        self.init(checked: json)
    }

    /// All fields, also those that the schema does not name.
    public var json: JSONValue { .object(fields.object) }

    /// The fields that the schema does not name. Assigning replaces them; names of the schema are ignored.
    public var additional: JSONObject {
        get { JSONObject(fields.object.lazy.filter { field in !Self.rules.contains { $0.key == field.key } }) }
        set {
            var object = fields.object
            for (key, _) in additional { object[key] = nil }
            for (key, value) in newValue where !Self.rules.contains(where: { $0.key == key }) { object[key] = value }
            self = Self(fields: _WireFields(object: object))
        }
    }

    static func check(_ json: JSONValue) throws {
        let type = "\(Self.self)"
        guard case .object(let object) = json else { throw json.mismatch("object").inside(type) }
        for rule in rules { try rule.check(object, of: type) }
    }

    init(checked json: JSONValue) { self.init(fields: _WireFields(object: json.objectValue ?? [:])) }
}

/// One of several types of the protocol. Members that the schema does not name become `.other`.
public protocol _WireUnion: _WireType {
    /// The types that this may be.
    static var members: _WireMembers { get }
    /// Makes the union of a value that is one of `members`.
    init(_ match: _WireMatch)
}

extension _WireUnion {
    /// Throws `DecodingError` when the value breaks a rule of the schema.
    public init(json: JSONValue) throws {
        try Self.check(json)
        self.init(checked: json)
    }

    /// True for the same JSON value.
    public static func == (left: Self, right: Self) -> Bool { left.json == right.json }

    /// By the JSON value.
    public func hash(into hasher: inout Hasher) { json.hash(into: &hasher) }

    static func check(_ json: JSONValue) throws { try members.check(json, of: "\(Self.self)") }

    init(checked json: JSONValue) { self.init(_WireMatch(index: Self.members.index(json), json: json)) }
}

/// A string of which the schema lists the values it knows; any other is kept.
public protocol _WireString: _WireType, RawRepresentable, ExpressibleByStringLiteral where RawValue == String {
    /// Any string, also one that the schema does not list.
    init(rawValue: String)
}

extension _WireString {
    /// The string.
    public init(stringLiteral value: String) { self.init(rawValue: value) }

    /// Throws `DecodingError` when the value breaks a rule of the schema.
    public init(json: JSONValue) throws {
        try Self.check(json)
        self.init(checked: json)
    }

    /// The string, also when it is printed.
    public var debugDescription: String { rawValue }

    /// The string as a value.
    public var json: JSONValue { .string(rawValue) }

    static func check(_ json: JSONValue) throws { try String.check(json) }

    init(checked json: JSONValue) { self.init(rawValue: String(checked: json)) }
}

/// A string or a whole number: the ids of requests and of progress.
public protocol _WireScalar: _WireType, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    /// A string.
    static func string(_ value: String) -> Self
    /// A whole number.
    static func int(_ value: Int) -> Self
}

extension _WireScalar {
    /// The string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// The number.
    public init(integerLiteral value: Int) { self = .int(value) }

    /// Throws `DecodingError` when the value breaks a rule of the schema.
    public init(json: JSONValue) throws {
        try Self.check(json)
        self.init(checked: json)
    }

    static func check(_ json: JSONValue) throws {
        switch json {
        case .string, .int: return
        default: throw json.mismatch("string or integer")
        }
    }

    init(checked json: JSONValue) { self = json.intValue.map { .int($0) } ?? .string(json.stringValue ?? "") }
}

/// The JSON object behind a `_WireObject`, known to follow its rules.
public struct _WireFields: Hashable, Sendable {
    var object: JSONObject

    init(object: JSONObject = [:]) { self.object = object }

    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    func required<Value: WireValue>(_ key: String) -> Value { Value(checked: object[key] ?? .null) }

    /// An explicit null counts as absent, and so does what is no `Value`; both stay and are written again.
    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    func optional<Value: WireValue>(_ key: String) -> Value? {
        guard let json = object[key], !json.isNull || Value.self == JSONValue.self, Value.fits(json) else { return nil }
        return Value(checked: json)
    }

    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    mutating func put(_ key: String, _ value: some WireValue) { object[key] = value.json }

    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    mutating func put(_ key: String, _ value: (some WireValue)?) { object[key] = value?.json }

    @inline(never) @_semantics("optimize.sil.specialize.generic.never")
    mutating func put(nullable key: String, _ value: (some WireValue)?) { object[key] = value?.json ?? .null }
}

/// The schema's rule for one field.
public struct _WireRule: Sendable {
    let key: String
    private let presence: Presence
    private let type: any WireValue.Type

    private enum Presence { case required, optional, nullable, constant(JSONValue), tag([String]) }

    @inline(never)
    static func required(_ key: String, _ type: any WireValue.Type) -> _WireRule {
        _WireRule(key: key, presence: .required, type: type)
    }

    @inline(never)
    static func optional(_ key: String, _ type: any WireValue.Type) -> _WireRule {
        _WireRule(key: key, presence: .optional, type: type)
    }

    /// Required, but may be null.
    @inline(never)
    static func nullable(_ key: String, _ type: any WireValue.Type) -> _WireRule {
        _WireRule(key: key, presence: .nullable, type: type)
    }

    /// Required, with one value only.
    @inline(never)
    static func constant(_ key: String, _ value: JSONValue) -> _WireRule {
        _WireRule(key: key, presence: .constant(value), type: JSONValue.self)
    }

    /// Required, one of these strings: it tells the members of a union apart, so no other is kept.
    @inline(never)
    static func tag(_ key: String, _ values: [String]) -> _WireRule {
        _WireRule(key: key, presence: .tag(values), type: String.self)
    }

    func check(_ object: JSONObject, of parent: String) throws {
        guard let json = object[key] else {
            if case .optional = presence { return }
            throw DecodingError.missing(key).inside(parent)
        }
        switch presence {
        case .optional, .nullable: if json.isNull { return }
        case .constant(let value) where json != value: throw json.mismatch("\(value)").inside(key).inside(parent)
        case .tag(let values) where !values.contains(json.stringValue ?? ""):
            throw json.mismatch(values.joined(separator: " or ")).inside(key).inside(parent)
        default: break
        }
        try DecodingError.at(parent) { try DecodingError.at(key) { try type.check(json) } }
    }
}

/// The types of a union and how to tell them apart.
public struct _WireMembers: Sendable {
    private let tag: String?
    private let members: [Member]

    /// `name` is the tag's value, or a field that only this member has.
    private struct Member { var name: String?, type: any WireValue.Type }

    /// Told apart by the string under `tag`.
    init(tag: String, _ members: KeyValuePairs<String, any WireValue.Type>) {
        self.tag = tag
        self.members = members.map { Member(name: $0.key, type: $0.value) }
    }

    /// Told apart by what they require: the first that fits is meant. `marks` are fields a member must have besides.
    init(_ members: [any WireValue.Type], marks: [Int: String] = [:]) {
        tag = nil
        self.members = members.enumerated().map { Member(name: marks[$0.offset], type: $0.element) }
    }

    func index(_ json: JSONValue) -> Int? {
        if let tag {
            let name = json[tag]?.stringValue
            return members.firstIndex { $0.name == name }
        }
        return members.firstIndex { member in
            guard member.name.map({ json[$0] != nil }) ?? true else { return false }
            do { try member.type.check(json) } catch { return false }
            return true
        }
    }

    func check(_ json: JSONValue, of union: String) throws {
        guard let tag else { return }
        guard let object = json.objectValue else { throw json.mismatch("object").inside(union) }
        guard let name = object[tag] else { throw DecodingError.missing(tag).inside(union) }
        try DecodingError.at(union) { try DecodingError.at(tag) { try String.check(name) } }
        if let index = index(json) { try members[index].type.check(json) }
    }
}

/// A value and which member of a union it is.
public struct _WireMatch {
    let index: Int?
    let json: JSONValue
}
