/// Options on their way to the core: only those that are set. One statement for each, not one literal for all, which
/// takes the compiler a minute.
struct OptionsText {
    private(set) var members = JSONObject()

    var json: JSONValue { .object(members) }

    mutating func set(_ name: String, _ value: JSONValue?) { if let value { members[name] = value } }
    mutating func set(_ name: String, text: String?) { if let text { members[name] = .string(text) } }
    mutating func set(_ name: String, flag: Bool?) { if let flag { members[name] = .bool(flag) } }
    mutating func set(_ name: String, number: Int?) { if let number { members[name] = .int(number) } }
    /// A number that JSON does not have goes as text, which the core refuses by the option's name: null is not given.
    mutating func set(_ name: String, decimal: Double?) {
        if let decimal { members[name] = decimal.isFinite ? .double(decimal) : .string("\(decimal)") }
    }
    mutating func set(_ name: String, list: [JSONValue]?) { if let list { members[name] = .array(list) } }

    mutating func set(_ name: String, texts: [String]?) {
        if let texts { members[name] = .array(texts.map { .string($0) }) }
    }

    mutating func set(_ name: String, table: [String: String]?) {
        guard let table else { return }
        members[name] = .object(JSONObject(table.map { (key: $0.key, value: JSONValue.string($0.value)) }))
    }

    mutating func set(_ name: String, objects: [String: JSONObject]) {
        let pairs = objects.sorted { $0.key < $1.key }
        members[name] = .object(JSONObject(pairs.map { (key: $0.key, value: .object($0.value)) }))
    }

    mutating func set(_ name: String, lists: [String: [String]]) {
        let pairs = lists.sorted { $0.key < $1.key }
        let implied = pairs.map { (key: $0.key, value: JSONValue.array($0.value.map { .string($0) })) }
        members[name] = .object(JSONObject(implied))
    }

    /// As seconds.
    mutating func set(_ name: String, duration: Duration?) {
        guard let (seconds, attoseconds) = duration?.components else { return }
        set(name, decimal: Double(seconds) + Double(attoseconds) / 1e18)
    }
}
