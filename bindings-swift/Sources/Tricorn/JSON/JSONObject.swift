/// The members of a JSON object, in the order they were written. Equality and hash ignore that order.
public struct JSONObject: Sendable {
    private var members: [Element] = []
    /// Positions by name, kept only when looking through all members would take longer.
    private var positions: [String: Int]?
    private static let few = 12

    /// A member.
    public typealias Element = (key: String, value: JSONValue)

    /// An object without members.
    public init() {}

    /// Makes an object of members; among those with the same name the last one counts.
    public init(_ members: some Sequence<Element>) {
        for (key, value) in members { self[key] = value }
    }

    private func position(_ key: String) -> Int? {
        if let positions { return positions[key] }
        return members.firstIndex { $0.key == key }
    }

    /// The member's value. Assigning nil removes the member; JSON's null is `.null`.
    public subscript(key: String) -> JSONValue? {
        get { position(key).map { members[$0].value } }
        set {
            switch (position(key), newValue) {
            case (let at?, let value?): members[at].value = value
            case (let at?, nil):
                members.remove(at: at)
                positions = nil
                index()
            case (nil, let value?):
                members.append((key, value))
                if positions != nil { positions?[key] = members.count - 1 } else { index() }
            case (nil, nil): break
            }
        }
    }

    private mutating func index() {
        guard members.count > Self.few else { return }
        positions = Dictionary(uniqueKeysWithValues: members.enumerated().map { ($0.element.key, $0.offset) })
    }

    /// The names, in order.
    public var keys: [String] { members.map(\.key) }
    /// The values, in order.
    public var values: [JSONValue] { members.map(\.value) }
}

extension JSONObject: RandomAccessCollection {
    /// 0.
    public var startIndex: Int { 0 }
    /// The number of members.
    public var endIndex: Int { members.count }
    /// The member at `position`.
    public subscript(position: Int) -> Element { members[position] }
}

extension JSONObject: Hashable {
    /// True for the same members in whatever order.
    public static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.allSatisfy { right[$0.key] == $0.value }
    }

    /// Does not depend on the members' order.
    public func hash(into hasher: inout Hasher) {
        var sum = 0
        for (key, value) in members {
            var member = Hasher()
            member.combine(key)
            member.combine(value)
            sum ^= member.finalize()
        }
        hasher.combine(sum)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Makes an object of members; among those with the same name the last one counts.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self.init(members.lazy.map { (key: $0.0, value: $0.1) })
    }
}

extension JSONObject: Codable {
    /// Any JSON object, from any decoder.
    public init(from decoder: any Decoder) throws {
        if let reader = decoder as? JSONReader {
            guard case .object(let object) = JSONValue(reader.text, reader.index) else {
                throw reader.mismatch("object")
            }
            self = object
            return
        }
        let container = try decoder.container(keyedBy: JSONKey.self)
        for key in container.allKeys { self[key.stringValue] = try container.decode(JSONValue.self, forKey: key) }
    }

    /// The members in their order, where the encoder keeps one.
    public func encode(to encoder: any Encoder) throws {
        if let slot = encoder as? JSONSlot {
            try slot.write(.object(self))
            return
        }
        var container = encoder.container(keyedBy: JSONKey.self)
        for (key, value) in members { try container.encode(value, forKey: JSONKey(key)) }
    }
}

/// A member name, or an index as one.
struct JSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ name: String) {
        stringValue = name
        intValue = nil
    }

    init?(stringValue: String) { self.init(stringValue) }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}
