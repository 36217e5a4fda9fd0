#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Reads a JSON text once, from front to end, without recursion, and notes where its values lie.
struct JSONScanner {
    /// As deep as the core ever lets a text be, with room to spare.
    static let deepest = 1024

    let base: UnsafePointer<UInt8>
    let count: Int
    /// True if long strings are searched for control characters too; the core has done that with its own texts.
    let strict: Bool
    private var at = 0

    init(base: UnsafePointer<UInt8>, count: Int, strict: Bool) {
        self.base = base
        self.count = count
        self.strict = strict
    }

    mutating func scan(into tokens: inout [JSONToken]) throws {
        var open: [Int] = []
        skipSpace()
        while true {
            // A value is due.
            guard at < count else { throw failure("unexpected end") }
            let byte = base[at]
            if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                let isObject = byte == UInt8(ascii: "{")
                guard open.count < Self.deepest else { throw failure("nested too deeply") }
                open.append(tokens.count)
                tokens.append(
                    JSONToken(start: Int32(truncatingIfNeeded: at), end: 0, next: 0, kind: isObject ? .object : .array))
                at += 1
                skipSpace()
                if at < count, base[at] == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    close(&tokens, &open)
                } else if isObject {
                    try key(into: &tokens)
                    continue
                } else {
                    continue
                }
            } else {
                try scalar(byte, into: &tokens)
            }
            // After a value: close what ends here, or go on to the next value.
            var another = false
            while !another {
                skipSpace()
                guard let last = open.last else {
                    guard at == count else { throw failure("trailing characters") }
                    return
                }
                guard at < count else { throw failure("unexpected end") }
                let inObject = tokens[last].kind == .object
                if base[at] == UInt8(ascii: ",") {
                    at += 1
                    skipSpace()
                    if inObject { try key(into: &tokens) }
                    another = true
                } else if base[at] == (inObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    close(&tokens, &open)
                } else {
                    throw failure("expected a comma or the end of the \(inObject ? "object" : "array")")
                }
            }
        }
    }

    private func failure(_ reason: String) -> JSONSyntaxError { JSONSyntaxError(offset: at, reason: reason) }

    @inline(__always)
    private mutating func skipSpace() {
        while at < count {
            let byte = base[at]
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            at += 1
        }
    }

    private mutating func close(_ tokens: inout [JSONToken], _ open: inout [Int]) {
        at += 1
        let index = open.removeLast()
        tokens[index].end = Int32(truncatingIfNeeded: at)
        tokens[index].next = Int32(truncatingIfNeeded: tokens.count)
    }

    private mutating func key(into tokens: inout [JSONToken]) throws {
        guard at < count, base[at] == UInt8(ascii: "\"") else { throw failure("expected a member name") }
        try string(into: &tokens)
        skipSpace()
        guard at < count, base[at] == UInt8(ascii: ":") else { throw failure("expected a colon") }
        at += 1
        skipSpace()
    }

    private mutating func scalar(_ byte: UInt8, into tokens: inout [JSONToken]) throws {
        switch byte {
        case UInt8(ascii: "\""): try string(into: &tokens)
        case UInt8(ascii: "t"): try word("true", .true, into: &tokens)
        case UInt8(ascii: "f"): try word("false", .false, into: &tokens)
        case UInt8(ascii: "n"): try word("null", .null, into: &tokens)
        default: try number(into: &tokens)
        }
    }

    private mutating func word(_ word: StaticString, _ kind: JSONToken.Kind, into tokens: inout [JSONToken]) throws {
        let length = word.utf8CodeUnitCount
        guard count - at >= length, memcmp(base + at, word.utf8Start, length) == 0 else {
            throw failure("unknown word")
        }
        append(kind, from: at, to: at + length, into: &tokens)
        at += length
    }

    private mutating func number(into tokens: inout [JSONToken]) throws {
        let start = at
        if at < count, base[at] == UInt8(ascii: "-") { at += 1 }
        let leadingZero = at < count && base[at] == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !leadingZero || whole == 1 else { throw failure("expected a value") }
        if at < count, base[at] == UInt8(ascii: ".") {
            at += 1
            guard digits() > 0 else { throw failure("expected a digit") }
        }
        if at < count, base[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < count, base[at] == UInt8(ascii: "+") || base[at] == UInt8(ascii: "-") { at += 1 }
            guard digits() > 0 else { throw failure("expected a digit") }
        }
        append(.number, from: start, to: at, into: &tokens)
    }

    private mutating func digits() -> Int {
        let start = at
        while at < count, base[at] &- UInt8(ascii: "0") < 10 { at += 1 }
        return at - start
    }

    private mutating func string(into tokens: inout [JSONToken]) throws {
        at += 1
        let start = at
        var escaped = false
        // Most strings are short; a long one is left to memchr, which is ten times as fast.
        let near = strict ? count : min(count, at + 64)
        while at < near {
            let byte = base[at]
            if byte == UInt8(ascii: "\"") {
                append(escaped ? .escapedString : .string, from: start, to: at, into: &tokens)
                at += 1
                return
            }
            if byte == UInt8(ascii: "\\") {
                escaped = true
                try skipEscape()
            } else {
                guard byte >= 0x20 else { throw failure("control character in a string") }
                at += 1
            }
        }
        var quote = find(UInt8(ascii: "\""), from: at, to: count)
        while let end = quote {
            guard let backslash = find(UInt8(ascii: "\\"), from: at, to: end) else {
                append(escaped ? .escapedString : .string, from: start, to: end, into: &tokens)
                at = end + 1
                return
            }
            escaped = true
            at = backslash
            try skipEscape()
            if at > end { quote = find(UInt8(ascii: "\""), from: at, to: count) }
        }
        throw failure("unterminated string")
    }

    private mutating func skipEscape() throws {
        guard at + 1 < count else { throw failure("unterminated string") }
        switch base[at + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            at += 2
        case UInt8(ascii: "u"):
            guard at + 5 < count, Self.hex(base + at + 2) != nil else { throw failure("invalid escape") }
            at += 6
        default: throw failure("invalid escape")
        }
    }

    private func find(_ byte: UInt8, from: Int, to: Int) -> Int? {
        guard from < to, let hit = memchr(base + from, Int32(byte), to - from) else { return nil }
        return UnsafeRawPointer(hit) - UnsafeRawPointer(base)
    }

    @inline(__always)
    private func append(_ kind: JSONToken.Kind, from: Int, to: Int, into tokens: inout [JSONToken]) {
        tokens.append(
            JSONToken(
                start: Int32(truncatingIfNeeded: from), end: Int32(truncatingIfNeeded: to),
                next: Int32(truncatingIfNeeded: tokens.count + 1), kind: kind))
    }

    private static func hex(_ digits: UnsafePointer<UInt8>) -> UInt32? {
        var value: UInt32 = 0
        for index in 0..<4 {
            let byte = digits[index]
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x41...0x46: digit = byte - 0x37
            case 0x61...0x66: digit = byte - 0x57
            default: return nil
            }
            value = (value << 4) | UInt32(digit)
        }
        return value
    }

    /// The text of a string whose escapes the scanner has seen to be well formed. A surrogate alone becomes U+FFFD.
    static func unescape(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        guard let base = bytes.baseAddress else { return "" }
        let count = bytes.count
        return String(unsafeUninitializedCapacity: count) { out in
            var from = 0, to = 0
            while from < count {
                var run = count - from
                if let backslash = memchr(base + from, 0x5C, run) {
                    run = UnsafeRawPointer(backslash) - UnsafeRawPointer(base + from)
                }
                if run > 0 { memcpy(out.baseAddress! + to, base + from, run) }
                from += run
                to += run
                guard from < count else { break }
                let letter = base[from + 1]
                from += 2
                guard letter == UInt8(ascii: "u") else {
                    out[to] = simple(letter)
                    to += 1
                    continue
                }
                for byte in UTF8.encode(scalar(base, &from, count))! {
                    out[to] = byte
                    to += 1
                }
            }
            return to
        }
    }

    /// The character that the four digits at `from` mean, with the surrogate that belongs to them.
    private static func scalar(_ base: UnsafePointer<UInt8>, _ from: inout Int, _ count: Int) -> Unicode.Scalar {
        let first = hex(base + from) ?? 0xFFFD
        from += 4
        guard first & 0xFC00 == 0xD800, from + 6 <= count, base[from] == UInt8(ascii: "\\"),
            base[from + 1] == UInt8(ascii: "u"), let second = hex(base + from + 2), second & 0xFC00 == 0xDC00
        else { return Unicode.Scalar(first) ?? "\u{FFFD}" }
        from += 6
        let high: UInt32 = (first & 0x3FF) << 10
        let low: UInt32 = second & 0x3FF
        return Unicode.Scalar(0x10000 + high + low) ?? "\u{FFFD}"
    }

    private static func simple(_ letter: UInt8) -> UInt8 {
        switch letter {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: letter
        }
    }
}
