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
internal import TricornCore

/// One value of a JSON text: what it is and where it lies. A container's tokens follow it, up to `next`.
struct JSONToken {
    enum Kind: UInt8 {
        case null, `true`, `false`, number, string, escapedString, array, object

        var name: String { self == .escapedString ? "string" : "\(self)" }
    }

    /// The value's bytes; for strings those between the quotes.
    var start: Int32
    var end: Int32
    /// Index of the first token after this value.
    var next: Int32
    var kind: Kind
}

/// A JSON text and the list of its values.
///
/// Why not Foundation's `JSONDecoder`: on Linux it costs 90 µs for each KiB, this a twentieth of it. The text stays
/// where it is (in Rust's memory when it came from the core) and is read in place.
final class JSONText: @unchecked Sendable {
    let base: UnsafePointer<UInt8>
    let count: Int
    private(set) var tokens: [JSONToken] = []
    private let owner: AnyObject

    /// A text that the core sent: known to be valid.
    convenience init(_ payload: CorePayload) throws {
        let address = UInt(try payload.address()), count = Int(try payload.length())
        guard let base = UnsafePointer<UInt8>(bitPattern: address) else {
            throw JSONSyntaxError(offset: 0, reason: "no text")
        }
        try self.init(base: base, count: count, strict: false, owner: payload)
    }

    convenience init(_ bytes: some Collection<UInt8>) throws {
        let copy = Copy(bytes)
        try self.init(base: UnsafePointer(copy.base), count: copy.count, strict: true, owner: copy)
    }

    private init(base: UnsafePointer<UInt8>, count: Int, strict: Bool, owner: AnyObject) throws {
        self.base = base
        self.count = count
        self.owner = owner
        guard count < Int32.max else { throw JSONSyntaxError(offset: 0, reason: "longer than 2 GiB") }
        tokens.reserveCapacity(min(16 + count / 16, 4096))
        var scanner = JSONScanner(base: base, count: count, strict: strict)
        try scanner.scan(into: &tokens)
    }

    private final class Copy {
        let base: UnsafeMutablePointer<UInt8>
        let count: Int

        init(_ bytes: some Collection<UInt8>) {
            count = bytes.count
            base = .allocate(capacity: max(count, 1))
            _ = UnsafeMutableBufferPointer(start: base, count: count).initialize(from: bytes)
        }

        deinit { base.deallocate() }
    }

    /// The bytes of a value as they are written; for a string with its quotes.
    func raw(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        let token = tokens[index]
        let quote = token.kind == .string || token.kind == .escapedString ? 1 : 0
        return UnsafeBufferPointer(
            start: base + Int(token.start) - quote, count: Int(token.end - token.start) + 2 * quote)
    }

    /// The text of the string at `index`.
    func string(_ index: Int) -> String {
        let token = tokens[index]
        let bytes = UnsafeBufferPointer(start: base + Int(token.start), count: Int(token.end - token.start))
        return token.kind == .escapedString ? JSONScanner.unescape(bytes) : String(decoding: bytes, as: UTF8.self)
    }

    /// True if the string at `index` is `other`.
    func string(_ index: Int, equals other: String) -> Bool {
        let token = tokens[index]
        guard token.kind == .string else { return string(index) == other }
        let count = Int(token.end - token.start), start = base + Int(token.start)
        var other = other
        return other.withUTF8 { $0.count == count && (count == 0 || memcmp($0.baseAddress!, start, count) == 0) }
    }

    /// The index of the member `name` of the object at `index`; the last one when the name is repeated.
    func member(_ name: String, of index: Int) -> Int? {
        let token = tokens[index]
        guard token.kind == .object else { return nil }
        var found: Int?
        var at = index + 1
        while at < Int(token.next) {
            if string(at, equals: name) { found = at + 1 }
            at = Int(tokens[at + 1].next)
        }
        return found
    }

    /// The number at `index` as a whole number: `1`, `1.0` and `1e0` are the same.
    func integer<Number: FixedWidthInteger>(_ index: Int, as type: Number.Type) -> Number? {
        let token = tokens[index]
        guard token.kind == .number else { return nil }
        var at = Int(token.start)
        let end = Int(token.end)
        let negative = base[at] == UInt8(ascii: "-")
        if negative { at += 1 }
        var value: UInt64 = 0
        while at < end {
            let digit = base[at] &- UInt8(ascii: "0")
            guard digit < 10 else { return double(index).flatMap(Number.init(exactly:)) }
            let (times, over) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = times.addingReportingOverflow(UInt64(digit))
            if over || carry { return nil }
            value = sum
            at += 1
        }
        if !negative { return Number(exactly: value) }
        if value == 1 << 63 { return Number(exactly: Int64.min) }
        return value < 1 << 63 ? Number(exactly: -Int64(value)) : nil
    }

    /// The number at `index`.
    func double(_ index: Int) -> Double? {
        guard tokens[index].kind == .number else { return nil }
        return Double(String(decoding: raw(index), as: UTF8.self))
    }
}

/// The reason why a text is not JSON.
struct JSONSyntaxError: Error, CustomStringConvertible {
    var offset: Int
    var reason: String
    var description: String { "not JSON: \(reason) at byte \(offset)" }
}
