#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Compact JSON text in the making. Sent on from task to task, never used by two at once.
final class JSONWriter: @unchecked Sendable {
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity = 256
    private(set) var count = 0
    /// Containers that `Encodable` code fills at its leisure: where they belong, and what they hold.
    private var inserts: [(at: Int, slot: JSONSlot)] = []
    /// The first number that JSON does not have, and where it is: `annotations.priority: nan`. It is written as null.
    private var flaw: String?

    init() { base = .allocate(capacity: 256) }

    deinit { base.deallocate() }

    /// Encodes `value`, as Swift's synthesized conformances would have it, with dates as ISO 8601 and data as base64.
    static func encode(_ value: some Encodable) throws -> JSONWriter {
        let slot = JSONSlot(JSONWriter(), path: nil)
        try slot.encode(value)
        return try slot.finish().joined()
    }

    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(UnsafeBufferPointer(start: base, count: count)) }
    }

    /// The text as `Data` that borrows this writer's memory. Throws `TricornError.misuse` when there is a number in it that JSON
    /// does not have.
    func withData<Result>(_ body: (Data) throws -> Result) throws -> Result {
        if let flaw { throw TricornError.misuse("\(flaw) is no JSON number") }
        return try withExtendedLifetime(self) {
            try body(Data(bytesNoCopy: base, count: count, deallocator: .none))
        }
    }

    func insert(_ slot: JSONSlot) { inserts.append((count, slot)) }

    /// The text with everything inserted.
    func joined() throws -> JSONWriter {
        guard !inserts.isEmpty else { return self }
        let whole = JSONWriter()
        whole.flaw = flaw
        var from = 0
        for (at, slot) in inserts {
            whole.append(UnsafeBufferPointer(start: base + from, count: at - from))
            from = at
            whole.append(try slot.finish().joined())
        }
        whole.append(UnsafeBufferPointer(start: base + from, count: count - from))
        return whole
    }

    @inline(__always)
    private func reserve(_ more: Int) {
        if count + more > capacity { grow(more) }
    }

    private func grow(_ more: Int) {
        capacity = max(capacity * 2, count + more)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        memcpy(larger, base, count)
        base.deallocate()
        base = larger
    }

    @inline(__always)
    func append(_ byte: UInt8) {
        reserve(1)
        base[count] = byte
        count += 1
    }

    func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count)
        memcpy(base + count, start, bytes.count)
        count += bytes.count
    }

    func append(_ other: JSONWriter) {
        other.withBytes { append($0) }
        flaw = flaw ?? other.flaw
    }

    func append(literal: StaticString) {
        append(UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    func append(_ value: Bool) { append(literal: value ? "true" : "false") }

    func append(_ value: some BinaryInteger) {
        var digits = value.description
        digits.withUTF8 { append($0) }
    }

    /// Throws nothing: the caller has made sure that `value` is finite.
    func append(_ value: Double) {
        var digits = value.description
        digits.withUTF8 { append($0) }
    }

    func append(_ value: String) {
        var value = value
        value.withUTF8 { append(text: $0) }
    }

    /// UTF-8 as a JSON string.
    func append(text: UnsafeBufferPointer<UInt8>) {
        append(UInt8(ascii: "\""))
        guard let start = text.baseAddress else { return append(UInt8(ascii: "\"")) }
        reserve(text.count + 1)
        var from = 0, at = 0
        while at < text.count {
            let byte = start[at]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                at += 1
                continue
            }
            append(UnsafeBufferPointer(start: start + from, count: at - from))
            escape(byte)
            at += 1
            from = at
        }
        append(UnsafeBufferPointer(start: start + from, count: at - from))
        append(UInt8(ascii: "\""))
    }

    private func escape(_ byte: UInt8) {
        append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(byte)
        case 0x0A: append(UInt8(ascii: "n"))
        case 0x0D: append(UInt8(ascii: "r"))
        case 0x09: append(UInt8(ascii: "t"))
        default:
            append(literal: "u00")
            append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
            let low = byte & 0xF
            append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }

    /// This text, an object or nothing, with these members in its `_meta`.
    func merging(meta: JSONObject) throws -> JSONWriter {
        let merged = JSONWriter()
        merged.flaw = flaw
        guard count > 2 else {
            merged.append(["_meta": .object(meta)])
            return merged
        }
        let text = try withBytes { try JSONText($0) }
        if let given = text.member("_meta", of: 0) {
            var all = JSONValue(text, 0), own = JSONValue(text, given).objectValue ?? [:]
            for (name, value) in meta { own[name] = value }
            all["_meta"] = .object(own)
            merged.append(all)
            return merged
        }
        // As it is written otherwise.
        withBytes { merged.append(UnsafeBufferPointer(rebasing: $0.dropLast())) }
        merged.append(literal: #","_meta":"#)
        merged.append(.object(meta))
        merged.append(UInt8(ascii: "}"))
        return merged
    }

    func append(_ value: JSONValue) {
        if !write(value), flaw == nil, let (path, number) = value.flaw {
            flaw = path.isEmpty ? "\(number)" : "\(JSONPath.text(path)): \(number)"
        }
    }

    /// Writes a value. False if it has a number that JSON does not have.
    private func write(_ value: JSONValue) -> Bool {
        var isWhole = true
        switch value {
        case .null: append(literal: "null")
        case .bool(let value): append(value)
        case .int(let value): append(value)
        case .double(let value):
            isWhole = value.isFinite
            if isWhole { append(value) } else { append(literal: "null") }
        case .string(let value): append(value)
        case .array(let elements):
            append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { append(UInt8(ascii: ",")) }
                isWhole = write(element) && isWhole
            }
            append(UInt8(ascii: "]"))
        case .object(let members):
            append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { append(UInt8(ascii: ",")) }
                append(member.key)
                append(UInt8(ascii: ":"))
                isWhole = write(member.value) && isWhole
            }
            append(UInt8(ascii: "}"))
        }
        return isWhole
    }
}
