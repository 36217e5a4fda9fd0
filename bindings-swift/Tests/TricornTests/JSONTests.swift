import Foundation
import Testing

@testable import Tricorn

@Suite struct JSONTests {
    private func decoded<Value: Decodable>(_ text: String, as type: Value.Type) throws -> Value {
        try JSONReader.decode(type, JSONText(text.utf8), 0)
    }

    private func encoded(_ value: some Encodable) throws -> String {
        try JSONWriter.encode(value).withBytes { String(decoding: $0, as: UTF8.self) }
    }

    @Test func typesOfTheProtocolPrintAsJSON() {
        #expect("\(PromptMessage.user("x"))" == #"{"role":"user","content":{"type":"text","text":"x"}}"#)
        #expect("\(PromptMessage.user("x").role)" == "user")
        #expect(String(describing: Types.RequestId.int(7)) == "7")
        #expect("\([PromptMessage.user("x").role])" == "[user]")
    }

    @Test func readsAndWritesEveryKindOfValue() throws {
        let text = #"{"a":[1,-2.5,1e3,true,false,null],"b":{"c":"d"},"e":{},"f":[]}"#
        let value = try JSONValue(parsing: text)
        #expect(value.description == #"{"a":[1,-2.5,1000.0,true,false,null],"b":{"c":"d"},"e":{},"f":[]}"#)
        #expect(value["a"]?[1] == -2.5)
        #expect(value["b"]?["c"] == "d")
        #expect(value["missing"] == nil)
        #expect(value.objectValue?.keys == ["a", "b", "e", "f"])
    }

    @Test(arguments: [
        (#""plain""#, "plain"), (#""a\"b\\c\/d\b\f\n\r\t""#, "a\"b\\c/d\u{8}\u{c}\n\r\t"), (#""\u00e9\u20ac""#, "é€"),
        (#""\ud83d\ude00""#, "😀"), (#""\ud83d""#, "\u{FFFD}"), (#""\ud83dx""#, "\u{FFFD}x"), (#""日本\n""#, "日本\n"),
    ])
    func readsStrings(text: String, expected: String) throws {
        #expect(try JSONValue(parsing: text) == .string(expected))
        // Long strings take another way through the scanner.
        let filler = String(repeating: "x", count: 100)
        let long = "\"" + filler + text.dropFirst().dropLast() + filler + "\""
        #expect(try JSONValue(parsing: long) == .string(filler + expected + filler))
    }

    @Test func writesStrings() throws {
        let text = "\"\\/\n\r\t\u{8}\u{1f}é😀"
        let written = try encoded(text)
        #expect(written == #""\"\\/\n\r\t\u0008\u001fé😀""#)
        #expect(try decoded(written, as: String.self) == text)
    }

    @Test(arguments: [
        "", " ", "{", "[1,]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "01", "1.", ".5", "1e", "+1", "nul", "truex",
        #""\x""#, #""\u12g4""#, "\"\n\"", "[1] 2", "\"open",
    ])
    func refusesWhatIsNotJSON(text: String) {
        #expect(throws: TricornError.self) { try JSONValue(parsing: text) }
    }

    @Test func refusesAnAbyss() {
        let deep = String(repeating: "[", count: 5000)
        #expect(throws: TricornError.self) { try JSONValue(parsing: deep) }
    }

    @Test func wholeNumbersAreExact() throws {
        #expect(try decoded("9223372036854775807", as: Int.self) == .max)
        #expect(try decoded("-9223372036854775808", as: Int.self) == .min)
        #expect(try decoded("18446744073709551615", as: UInt64.self) == .max)
        #expect(try decoded("2.0", as: Int.self) == 2)
        #expect(try decoded("1e2", as: Int.self) == 100)
        #expect(throws: DecodingError.self) { try decoded("2.5", as: Int.self) }
        #expect(throws: DecodingError.self) { try decoded("300", as: UInt8.self) }
        #expect(throws: DecodingError.self) { try decoded("9223372036854775808", as: Int.self) }
        #expect(try JSONValue(parsing: "18446744073709551616") == .double(18446744073709551616))
    }

    @Test func whatIsNoNumberOfJSONIsNamed() async throws {
        struct Deep: Codable, Sendable { var list: [JSONValue] }
        func message(_ body: () async throws -> Void) async -> String {
            do {
                try await body()
                return "no error"
            } catch {
                return "\(error)"
            }
        }
        let nan = JSONValue.double(.nan), heard = Locked([String]())
        let written = await message { _ = try encoded(Deep(list: [1, ["x": nan]])) }
        for part in ["list", "x", "nan is no JSON number"] { #expect(written.contains(part), "\(written)") }
        #expect(throws: EncodingError.self) { try encoded(Decimal.nan) }
        #expect(JSONValue.array([nan, 1]).description == "[null,1]")

        let app = Server("test", onError: { error, name in heard.with { $0.append("\(name): \(error)") } })
        app.tool("nan") { JSONValue.object(["deep": [nan]]) }
        app.tool("text") { ContentBlock.text("x", .init(annotations: ["priority": nan])) }
        try await withClient(of: app) { client in
            let call = await message { _ = try await client.callTool("nan", ["a": ["b": [.double(-.infinity)]]]) }
            #expect(call == "misuse: a.b[0]: -inf is no JSON number")
            let meta = await message { _ = try await client.callTool("nan", [:], .init(meta: ["m": nan])) }
            #expect(meta == "misuse: m: nan is no JSON number")
            let other = await message { _ = try await client.request("ping", ["x": nan]) }
            #expect(other == "misuse: x: nan is no JSON number")
            #expect(await message { try client.notify("x/y", ["x": nan]) } == "misuse: x: nan is no JSON number")
            for tool in ["nan", "text"] {
                let result = try await client.callTool(tool)
                #expect(result.isError && result.text == "tool \"\(tool)\" failed: EncodingError")
            }
        }
        let lines = heard.with { $0 }
        #expect(lines.count == 2 && lines[0].contains("deep") && lines[1].contains("priority"), "\(lines)")

        let wrong = Server("test")
        wrong.resource("a://x", annotations: .init(priority: .nan), value: "x")
        let definition = await message { _ = try await connect(to: wrong) }
        #expect(definition.contains("a://x") && definition.contains("annotations.priority: nan"), "\(definition)")
        var options = ClientOptions()
        options.capabilities = ["experimental": ["x": nan]]
        let capabilities = await message { _ = try await connect(to: app, options) }
        #expect(capabilities == "misuse: capabilities.experimental.x: nan is no JSON number")
    }

    @Test func objectsKeepTheirOrderAndCompareWithoutIt() throws {
        var object: JSONObject = ["b": 1, "a": 2]
        object["c"] = 3
        object["b"] = nil
        #expect(object.keys == ["a", "c"])
        #expect(JSONValue.object(["a": 2, "c": 3]) == .object(["c": 3, "a": 2]))
        #expect(JSONValue.object(["a": 2, "c": 3]).hashValue == JSONValue.object(["c": 3, "a": 2]).hashValue)
        var many = JSONObject((0..<50).map { (key: "k\($0)", value: .int($0)) })
        many["k7"] = nil
        #expect(many["k49"] == 49)
        #expect(many.count == 49)
        #expect(try JSONValue(parsing: #"{"a":1,"a":2}"#)["a"] == 2)
    }

    private enum Shape: Codable, Equatable {
        case circle(radius: Double)
        case square(Int)
        case nothing
    }

    private struct Everything: Codable, Equatable {
        var text: String
        var maybe: Int?
        var list: [[Int]]
        var table: [String: Bool]
        var small: UInt8
        var single: Float
        var when: Date
        var link: URL
        var bytes: Data
        var money: Decimal
        var id: UUID
        var shapes: [Shape]
        var any: JSONValue
    }

    @Test func codableTypesComeBackAsTheyWere() throws {
        let value = Everything(
            text: "a\"b", maybe: nil, list: [[1], [], [2, 3]], table: ["x": true], small: 255, single: 0.1,
            when: Date(timeIntervalSince1970: 1_700_000_000),
            link: try #require(URL(string: "https://example.com/a?b=c")),
            bytes: Data([0, 1, 255]), money: try #require(Decimal(string: "12.34")), id: UUID(),
            shapes: [.circle(radius: 1.5), .square(3), .nothing], any: ["k": [nil, 1, "x"]])
        let text = try encoded(value)
        #expect(text.contains(#""when":"2023-11-14T22:13:20Z""#))
        #expect(text.contains(#""bytes":"AAH/""#))
        #expect(text.contains(#""single":0.1,"#))
        #expect(try decoded(text, as: Everything.self) == value)
        // And Foundation reads what this writes.
        _ = try JSONSerialization.jsonObject(with: Data(text.utf8))
    }

    /// Fills two nested containers by turns, which only hand-written code does.
    private struct Interleaved: Encodable {
        enum Keys: CodingKey { case a, b }
        func encode(to encoder: any Encoder) throws {
            var root = encoder.container(keyedBy: Keys.self)
            var a = root.nestedUnkeyedContainer(forKey: .a)
            var b = root.nestedContainer(keyedBy: Keys.self, forKey: .b)
            try a.encode(1)
            try b.encode("x", forKey: .a)
            try a.encode([2, 3])
            try b.encode("y", forKey: .b)
        }
    }

    @Test func containersMayBeFilledByTurns() throws {
        #expect(try encoded(["z": Interleaved()]) == #"{"z":{"a":[1,[2,3]],"b":{"a":"x","b":"y"}}}"#)
    }

    @Test func numbersThatJSONHasNotAreRefused() {
        #expect(throws: EncodingError.self) { try encoded([Double.nan]) }
        #expect(throws: EncodingError.self) { try encoded([Double.infinity]) }
    }

    private struct Outer: Decodable {
        struct Inner: Decodable { var n: Int }
        var list: [Inner]
    }

    @Test(arguments: [
        (#"{"list":[{"n":"x"}]}"#, #"argument "list[0].n": expected integer, got "x""#),
        (#"{"list":[{}]}"#, #"argument "list[0].n": missing (required)"#),
        (#"{"list":3}"#, #"argument "list": expected array, got 3"#), ("[]", "arguments: expected object, got []"),
    ])
    func mismatchesReadLikeTheCores(text: String, message: String) throws {
        do {
            _ = try decoded(text, as: Outer.self)
            Issue.record("decoded")
        } catch let error as DecodingError {
            #expect(error.text(subject: "argument") == message)
        }
    }

    @Test func foundationsCodersUnderstandTheValue() throws {
        let value: JSONValue = ["a": [1, 2.5, "x", nil, true], "b": ["c": [:]]]
        let data = try JSONEncoder().encode(value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: data) == value)
        #expect(try JSONValue(encoding: ["n": 1]) == ["n": 1])
        #expect(try value["a"]?[0]?.decode(as: Int.self) == 1)
    }
}
