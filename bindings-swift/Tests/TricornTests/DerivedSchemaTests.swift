import Foundation
import Testing

@testable import Tricorn

private struct Node: Codable, Sendable, Equatable {
    var v: String
    var kids: [Node]?
}

private struct Tree<T: Codable & Sendable>: Codable, Sendable {
    var v: T
    var kids: [Tree<T>]?
}

private struct Forest: Codable, Sendable {
    var numbers: Tree<Int>
    var names: [String: Tree<[String?]>]
}

private enum A { struct Item: Codable, Sendable { var a: Int, next: [Item]? } }
private enum B { struct Item: Codable, Sendable { var b: String, next: [Item]? } }
private struct Both: Codable, Sendable { var x: A.Item, y: B.Item }

private struct Folder: Codable, Sendable { var files: [File] }
private struct File: Codable, Sendable { var name: String, inside: Folder? }

private final class Chain: Codable, Sendable {
    let n: Int
    let next: Chain?
    init(_ n: Int, _ next: Chain? = nil) { (self.n, self.next) = (n, next) }
}

private struct Größe: Codable, Sendable { var teile: [Größe]? }
private struct Wrapped: Codable, Sendable { var size: Größe }

/// A schema of its own that refers to itself.
private struct Formula: Codable, Sendable, SchemaProviding {
    var text: String
    var of: [Formula]?

    static let jsonSchema: JSONValue = [
        "type": "object", "required": ["text"],
        "properties": [
            "text": ["$ref": "#/$defs/word"], "of": ["type": "array", "items": ["$ref": "#"]],
            "default": ["const": ["$ref": "#"]],
        ],
        "$defs": ["word": ["type": "string", "minLength": 1]],
    ]
}
private struct Sheet: Codable, Sendable { var first: Formula, others: [Formula] }

private enum Shape: Codable, Sendable, Equatable {
    case circle(r: Double)
    case square(side: Double, name: String?)
    case pair(Int, [String])
    case nothing
}

private indirect enum Term: Codable, Sendable, Equatable {
    case sum(Term, Term)
    case number(Int)
    case list([Term])
}

private enum Renamed: Codable, Sendable, Equatable {
    case one(n: Int)
    case other

    enum CodingKeys: String, CodingKey { case one = "first", other = "das andere" }
    enum OneCodingKeys: String, CodingKey { case n = "number" }
}

private enum Single: Codable, Sendable, Equatable { case only(Shape) }
private enum Bare: Codable, Sendable, Equatable, CaseIterable { case fast, slow }

private enum Byte: UInt8, Codable, Sendable, CaseIterable { case low = 1, high = 255 }
private enum Signed: Int64, Codable, Sendable, CaseIterable { case below = -5, above = 5 }
private enum Huge: UInt64, Codable, Sendable, CaseIterable { case most = 18_446_744_073_709_551_615 }

/// Says itself how it decodes.
private enum Either: Codable, Sendable {
    case text(String), number(Int)

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if let text = try? value.decode(String.self) {
            self = .text(text)
        } else {
            self = .number(try value.decode(Int.self))
        }
    }
}

private final class Endless: Codable, Sendable { let next: Endless }
private struct Deeper<T: Codable & Sendable>: Codable, Sendable { var next: [Deeper<[T]>]? }

private struct Optionals: Codable, Sendable, Equatable {
    var a: String?
    var list: [Int?]
    var table: [String: Bool?]?
    var inner: Inner?
    var twice: String??
    var when: Date?
    var any: JSONValue?

    struct Inner: Codable, Sendable, Equatable { var b: Double?, shape: Shape? }
}

private enum Word: String, Codable, Sendable, CodingKeyRepresentable, CaseIterable { case yes, no }
private struct Keyed: Codable, Sendable, Equatable {
    var numbers: [Int: String]
    var words: [Word: Int]
    var pairs: [Bool: String]
}

private struct Both2: Codable, Sendable {
    var name: String
    var more: Int?

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let inner = try members.nestedContainer(keyedBy: CodingKeys.self, forKey: .name)
        name = try inner.decode(String.self, forKey: .name)
        more = members.contains(.more) ? try members.decode(Int.self, forKey: .more) : nil
    }
}

/// Any JSON, as many programs have it: one type is tried after the other.
private struct Anything: Decodable, Sendable {
    let kind: String

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            kind = "null"
        } else if (try? value.decode(Bool.self)) != nil {
            kind = "boolean"
        } else if (try? value.decode(Int.self)) != nil {
            kind = "integer"
        } else if (try? value.decode(Double.self)) != nil {
            kind = "number"
        } else if (try? value.decode(String.self)) != nil {
            kind = "string"
        } else if let list = try? value.decode([Anything].self) {
            kind = "array of \(list.count)"
        } else {
            kind = "object of \(try value.decode([String: Anything].self).count)"
        }
    }
}
private struct Holding: Decodable, Sendable { var any: Anything }

/// A text, or an object.
private struct Address: Decodable, Sendable {
    let street: String

    enum CodingKeys: CodingKey { case street }

    init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            street = text
        } else {
            street = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .street)
        }
    }
}

private struct Looked: Decodable, Sendable {
    let a: Int?
    let b: Int?

    enum CodingKeys: CodingKey { case a, b }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        a = members.contains(.a) ? try members.decode(Int.self, forKey: .a) : nil
        b = try members.decodeNil(forKey: .b) ? nil : members.decode(Int.self, forKey: .b)
    }
}

/// Told apart by a member, so that no empty text will do.
private enum Pet: Decodable, Sendable, SchemaProviding {
    case cat(lives: Int)
    case dog

    static let jsonSchema: JSONValue = [
        "type": "object", "required": ["kind"],
        "oneOf": [
            [
                "properties": ["kind": ["const": "cat"], "lives": ["$ref": "#/$defs/lives"]],
                "required": ["lives"],
            ],
            ["properties": ["kind": ["const": "dog"]]],
        ],
        "$defs": ["lives": ["type": "integer", "minimum": 1]],
    ]

    private enum Keys: CodingKey { case kind, lives }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: Keys.self)
        switch try members.decode(String.self, forKey: .kind) {
        case "cat": self = .cat(lives: try members.decode(Int.self, forKey: .lives))
        case "dog": self = .dog
        case let other:
            throw DecodingError.dataCorruptedError(forKey: .kind, in: members, debugDescription: "no pet: \(other)")
        }
    }

    var lives: Int { if case .cat(let lives) = self { lives } else { 1 } }
}

/// A text that is a number.
private struct Amount: Decodable, Sendable, SchemaProviding {
    let value: Int

    static let jsonSchema: JSONValue = ["type": "string", "pattern": "^[0-9]+$", "examples": ["12"]]

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Int(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no number")
        }
        self.value = value
    }
}
private struct Owner: Decodable, Sendable { var pets: [Pet], best: Pet, pays: Amount }

private let revisions = ["2025-06-18", "2026-07-28"]

/// Schemas of types: recursive ones, optionals, enums with associated values.
@Suite struct DerivedSchemaTests {
    private let tree: JSONValue = ["v": "a", "kids": [["v": "b", "kids": [["v": "c"]]], ["v": "d", "kids": []]]]

    // MARK: - recursion

    @Test(arguments: revisions) func resultsMayContainRecursiveTypes(revision: String) async throws {
        let node = Node(v: "a", kids: [Node(v: "b", kids: [Node(v: "c")]), Node(v: "d", kids: [])])
        let app = Server("test")
        app.tool("one") { node }
        app.tool("list") { [node, node] }
        app.tool("table") { ["x": node] }
        app.tool("lists") { [[node]] }
        app.tool("maybe") { () -> Node? in node }
        app.tool("none") { () -> Node? in nil }
        app.tool("chain") { Chain(1, Chain(2, Chain(3))) }
        app.tool("chains") { [Chain(1, Chain(2))] }
        app.tool("term") { [Term.sum(.number(1), .list([.sum(.number(2), .number(3))]))] }
        app.tool("tree") { [Tree(v: 1, kids: [Tree(v: 2), Tree(v: 3, kids: [Tree(v: 4)])])] }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            for tool in try await client.listTools() {
                #expect(tool.outputSchema != nil, "\(tool.name)")
                let result = try await client.callTool(tool.name)
                #expect(!result.isError, "\(tool.name): \(result.text)")
            }
            expect(try await client.callTool("list").decode(as: [Node].self), [node, node])
            expect(try await client.callTool("table").decode(as: [String: Node].self), ["x": node])
            expect(try await client.callTool("maybe").decode(as: Node?.self), node)
        }
    }

    @Test(arguments: revisions) func argumentsMayBeRecursive(revision: String) async throws {
        let app = Server("test")
        app.tool("forest") { (input: Forest) in "\(input.numbers.kids?.count ?? 0) \(input.names.count)" }
        app.tool("both") { (input: Both) in "\(input.x.next?.count ?? 0) \(input.y.next?.count ?? 0)" }
        app.tool("folder") { (input: Folder) in input.files.count }
        app.tool("sizes") { (input: Wrapped) in input.size.teile?.count ?? 0 }
        app.tool("sheet") { (input: Sheet) in input.first.of?.count ?? 0 }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            func call(_ name: String, _ arguments: JSONValue) async throws -> String {
                try await client.callTool(name, arguments).text
            }
            expect(
                try await call(
                    "forest", ["numbers": ["v": 1, "kids": [["v": 2]]], "names": ["x": ["v": ["a", nil]]]]), "1 1")
            expect(try await call("both", ["x": ["a": 1, "next": [["a": 2]]], "y": ["b": "1"]]), "1 0")
            expect(
                try await call("both", ["x": ["a": 1, "next": [["a": "2"]]], "y": ["b": "1"]]),
                #"argument "x.next[0].a": expected integer, got "2""#)
            expect(try await call("folder", ["files": [["name": "a", "inside": ["files": []]]]]), "1")
            #expect(try await client.callTool("folder", ["files": [["name": "a", "inside": ["files": 1]]]]).isError)
            expect(try await call("sizes", ["size": ["teile": [[:], ["teile": [[:]]]]]]), "2")
            expect(
                try await call("sheet", ["first": ["text": "x", "of": [["text": "y"]]], "others": [["text": "z"]]]), "1"
            )
            #expect(
                try await client.callTool("sheet", ["first": ["text": ""], "others": []]).isError,
                "the schema's own definition counts")
        }
    }

    @Test func referencesStandForPlaces() throws {
        #expect(try JSONSchema.of([Node].self)["items"] == ["$ref": "#/$defs/Node"])
        let forest = try JSONSchema.of(Forest.self)
        for name in forest["$defs"]?.objectValue?.keys ?? [] {
            #expect(name.utf8.allSatisfy { $0 < 128 && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: " ") }, "\(name)")
        }
        let both = try JSONSchema.of(Both.self)
        #expect(both["$defs"]?.objectValue?.count == 2)
        let term = try JSONSchema.of(Term.self)
        #expect(term["oneOf"]?[0]?["properties"]?["sum"]?["properties"]?["_0"] == ["$ref": "#/$defs/Term"])
    }

    // MARK: - optionals

    @Test(arguments: revisions) func optionalsTakeNull(revision: String) async throws {
        let app = Server("test")
        app.tool("echo") { (input: Optionals) in input }
        app.tool("none") { (input: Optionals) in input.a == nil && input.inner?.b == nil ? "none" : "some" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let nothing: JSONValue = [
                "a": nil, "list": [1, nil], "table": ["x": nil, "y": true], "inner": ["b": nil, "shape": nil],
                "twice": nil, "when": nil, "any": nil,
            ]
            expect(try await client.callTool("none", nothing).text, "none")
            let echo = try await client.callTool("echo", nothing)
            #expect(!echo.isError, "\(echo.text)")
            expect(try echo.decode(as: Optionals.self).list, [1, nil])
            expect(try await client.callTool("none", ["list": [], "table": nil, "inner": nil]).text, "none")
            let wrong = try await client.callTool("none", ["list": nil])
            #expect(wrong.isError && wrong.text.contains(#"argument "list""#))
            #expect(try await client.callTool("none", ["list": [], "a": 1]).isError)
        }
    }

    @Test func nullIsNamedOnce() throws {
        let properties = try #require(try JSONSchema.of(Optionals.self)["properties"])
        #expect(properties["a"] == ["anyOf": [["type": "string"], ["type": "null"]]])
        #expect(properties["twice"] == properties["a"])
        #expect(properties["any"] == [:])
    }

    /// Text is never null, and forms have none.
    @Test func textsAndFormsHaveNoNull() async throws {
        struct Asked: Codable, Sendable { var name: String?, word: Word? }
        expect(try ElicitationForm(Asked.self).schema["properties"]?["name"], ["type": "string"])
        let app = Server("test")
        app.prompt("ask") { (input: Asked) in input.word?.rawValue ?? "none" }
        try await withClient(of: app) { client in
            expect(try await client.getPrompt("ask", ["word": "yes"]).messages[0].text, "yes")
        }
    }

    // MARK: - enums

    @Test(arguments: revisions) func enumsAreKeyedByTheirCases(revision: String) async throws {
        struct Drawing: Codable, Sendable, Equatable { var shapes: [Shape], term: Term, renamed: Renamed?, mode: Bare }
        let app = Server("test")
        app.tool("draw") { (input: Drawing) in input }
        app.tool("shape") { (shape: Shape) in [shape] }
        app.tool("single") { (single: Single) in single }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let drawing = Drawing(
                shapes: [.circle(r: 1.5), .square(side: 2, name: nil), .pair(3, ["a"]), .nothing],
                term: .sum(.number(1), .list([.sum(.number(2), .number(3))])), renamed: .one(n: 1), mode: .slow)
            let result = try await client.callTool("draw", drawing)
            #expect(!result.isError, "\(result.text)")
            expect(try result.decode(as: Drawing.self), drawing)
            expect(
                try await client.callTool("shape", ["pair": ["_0": 1, "_1": []]]).decode(as: [Shape].self),
                [.pair(1, [])])
            expect(
                try await client.callTool("single", ["only": ["_0": ["nothing": [:]]]]).decode(as: Single.self),
                .only(.nothing))
            for wrong: JSONValue in [
                [:], ["circle": ["r": "1"]], ["circle": [:]], ["triangle": [:]], ["circle": ["r": 1], "nothing": [:]],
            ] {
                #expect(try await client.callTool("shape", wrong).isError, "\(wrong)")
            }
        }
        let renamed = try JSONSchema.of(Renamed.self)["oneOf"]
        #expect(renamed?[0]?["properties"]?["first"]?["required"] == ["number"])
        #expect(renamed?[1]?["required"] == ["das andere"])
    }

    @Test func rawValuesMayBeOfAnyIntegerType() throws {
        #expect(try JSONSchema.of(Byte.self) == ["type": "integer", "enum": [1, 255]])
        #expect(try JSONSchema.of(Signed?.self)["anyOf"]?[0] == ["type": "integer", "enum": [-5, 5]])
        #expect(throws: TricornError.self) { try JSONSchema.of(Huge.self) }
    }

    @Test func dictionariesAreAsCodableWritesThem() async throws {
        let app = Server("test")
        app.tool("echo") { (input: Keyed) in input }
        let keyed = Keyed(numbers: [1: "a"], words: [.yes: 2], pairs: [true: "t"])
        try await withClient(of: app) { client in
            let result = try await client.callTool("echo", keyed)
            #expect(!result.isError, "\(result.text)")
            expect(try result.decode(as: Keyed.self), keyed)
        }
    }

    @Test func nestedContainersAreLookedInto() throws {
        let schema = try JSONSchema.of(Both2.self)
        #expect(schema["properties"]?["name"]?["properties"]?["name"] == ["type": "string"])
        #expect(schema["required"] == ["name"])
    }

    @Test(arguments: revisions) func oneTypeMayBeTriedAfterTheOther(revision: String) async throws {
        let app = Server("test")
        app.tool("kind") { (input: Holding) in input.any.kind }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let values: [(JSONValue, String)] = [
                (nil, "null"), (true, "boolean"), (1, "integer"), (1.5, "number"), ("a", "string"),
                ([1, "b"], "array of 2"), (["a": [nil]], "object of 1"),
            ]
            for (value, kind) in values {
                expect(try await client.callTool("kind", ["any": value]).text, kind)
            }
        }
        #expect(
            try JSONSchema.of(Address.self)["anyOf"] == [
                ["type": "string"],
                ["type": "object", "properties": ["street": ["type": "string"]], "required": ["street"]],
            ])
    }

    @Test func whatIsLookedForIsOptionalOrNull() throws {
        let schema = try JSONSchema.of(Looked.self)
        #expect(schema["properties"]?["a"] == ["type": "integer"])
        #expect(schema["properties"]?["b"] == ["anyOf": [["type": "integer"], ["type": "null"]]])
        #expect(schema["required"] == ["b"])
    }

    /// A sample of them is made by their schema.
    @Test(arguments: revisions) func typesWithASchemaMayRefuseOtherValues(revision: String) async throws {
        let app = Server("test")
        app.tool("own") { (owner: Owner) in owner.best.lives + owner.pets.count + owner.pays.value }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let owner: JSONValue = ["pets": [["kind": "dog"]], "best": ["kind": "cat", "lives": 9], "pays": "7"]
            expect(try await client.callTool("own", owner).text, "17")
            for wrong: JSONValue in [["kind": "cow"], ["kind": "cat", "lives": 0]] {
                #expect(
                    try await client.callTool("own", ["pets": [], "best": wrong, "pays": "7"]).isError, "\(wrong)")
            }
        }
    }

    // MARK: - what cannot be derived

    @Test func oneBadToolIsNamed() async throws {
        func refusal(_ declare: (Server) -> Void) async -> String {
            let app = Server("test")
            app.tool("good") { "good" }
            declare(app)
            do { try await withClient(of: app) { _ in } } catch { return "\(error)" }
            return ""
        }
        struct Holder<T: Codable & Sendable>: Codable, Sendable { var value: T }
        let wrong = await [
            refusal { $0.tool("bad") { (_: Holder<Either>) in "" } },
            refusal { $0.tool("bad") { (_: Holder<[Endless]>) in "" } },
            refusal { $0.tool("bad") { (_: Holder<Deeper<Int>>) in "" } },
            refusal { $0.tool("bad") { (_: Holder<Huge?>) in "" } },
        ]
        for error in wrong {
            #expect(error.contains(#"tool "bad""#) && error.contains("no JSON Schema can be derived"), "\(error)")
        }
        // At once, and without harm to the rest.
        let app = Server("test")
        app.tool("good") { "good" }
        try await withClient(of: app) { client in
            #expect(throws: TricornError.self) { try app.add { $0.tool("bad") { (_: Holder<Either>) in "" } } }
            expect(try await client.callTool("good").text, "good")
        }
    }
}
