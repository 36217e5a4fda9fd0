import Foundation
import Testing

@testable import Tricorn

/// Values that peers and users write in more than one way.
@Suite struct LeniencyTests {
    @Test(arguments: ["AQID", "AQ ID", "AQID\n", "-_8", "-_8=", "+/8"]) func base64IsReadAsPeersWriteIt(text: String) {
        let contents: JSONValue = ["contents": [["uri": "a://b", "blob": .string(text)]]]
        let data = ReadResourceResult(checked: contents).data
        #expect(data == (text.hasPrefix("A") ? Data([1, 2, 3]) : Data([0xFB, 0xFF])))
    }

    @Test func whatIsNoBase64IsNone() throws {
        #expect(Data(lenient: "A") == nil && Data(lenient: "?!?!") == nil)
        let image: JSONValue = ["type": "image", "mimeType": "image/png", "data": "AQI"]
        #expect(try image.decode(as: ContentBlock.self) == .image(Data([1, 2]), mimeType: "image/png"))
    }

    @Test func numbersThatDoNotFitAreNotThere() {
        let resource = Resource(checked: ["uri": "a://b", "name": "b", "size": 1.5, "title": 7])
        #expect(resource.size == nil && resource.title == nil && resource.json["size"] == 1.5)
        #expect(Resource(checked: ["uri": "a://b", "name": "b", "size": 2.0]).size == 2)
        #expect(Completion(checked: ["values": [], "total": 5.5]).total == nil)
    }

    @Test(arguments: eras) func resourcesMayReturnLessAndMore(revision: String) async throws {
        let app = Server("test", onError: { _, _ in })
        app.resource("maybe://text") { () -> String? in "text" }
        app.resource("maybe://data") { () -> Data? in Data([1]) }
        app.resource("maybe://value") { () -> [String: Int]? in ["n": 1] }
        app.resource("maybe://nothing") { () -> String? in nil }
        app.resource("many://texts") { ["a", "b"] }
        app.resource("many://data") { [Data([1]), Data([2])] }
        app.resource("many://none") { [String]() }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.readResource("maybe://text").text, "text")
            expect(try await client.readResource("maybe://data").data, Data([1]))
            expect(try await client.readResource("maybe://value").text, #"{"n":1}"#)
            await expectCode(-32603, containing: "returned nil, expected text") {
                _ = try await client.readResource("maybe://nothing")
            }
            let texts = try await client.readResource("many://texts")
            #expect(texts.text == "a\nb" && texts.contents.map { $0.json["uri"] } == ["many://texts", "many://texts"])
            let data = try await client.readResource("many://data")
            #expect(data.contents.map { $0.json["blob"] } == ["AQ==", "Ag=="])
            expect(try await client.readResource("many://none").contents.count, 0)
        }
    }

    @Test(arguments: eras) func variablesMayBeLists(revision: String) async throws {
        struct Lists: Codable, Sendable { var l: [Int]? }
        let app = Server("test")
        app.resource("list://x{?l*}") { (lists: Lists) in "\(lists.l?.reduce(0, +) ?? -1)" }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.readResource("list://x?l=1&l=2").text, "3")
            expect(try await client.readResource("list://x").text, "-1")
        }
    }

    @Test(arguments: eras) func listsComplete(revision: String) async throws {
        let app = Server("test")
        let sizes = ["small", "medium", "Mini"]
        struct Order: Codable, Sendable { var size: String }
        app.prompt("order", choices: ["size": sizes]) { (order: Order) in order.size }
        app.resource("order://{size}", choices: ["size": sizes]) { (order: Order) in order.size }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            for reference in [CompletionReference.prompt("order"), .resource("order://{size}")] {
                let completion = try await client.complete(reference, argument: "size", value: "m")
                #expect(completion.values == ["medium", "Mini"])
            }
        }
    }

    @Test func promptArgumentsAreTexts() async throws {
        struct Arguments: Codable, Sendable {
            var text: String
            var at: Date
            var count: Int
            var none: Int?
        }
        let app = Server("test"), seen = Locked([String: String]())
        app.prompt("p") { (arguments: [String: String]) in
            seen.with { $0 = arguments }
            return "done"
        }
        try await withClient(of: app) { client in
            let arguments = Arguments(text: "as it is", at: Date(timeIntervalSince1970: 0), count: 3, none: nil)
            _ = try await client.getPrompt("p", arguments)
        }
        #expect(seen.with { $0 } == ["text": "as it is", "at": "1970-01-01T00:00:00Z", "count": "3"])
    }

    @Test(arguments: eras) func everyRequestMayHaveMeta(revision: String) async throws {
        let app = Server("test"), seen = Locked([JSONValue]())
        app.middleware { request, context, next in
            seen.with { $0.append(context.request?.meta?["com.example/n"] ?? .null) }
            return try await next(request, context)
        }
        app.tool("t") { "t" }
        app.resource("a://b") { "b" }
        app.prompt("p") { "p" }
        let options = RequestOptions(meta: ["com.example/n": 1])
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            _ = try await client.callTool("t", [:], options, meta: ["com.example/n": 2, "com.example/m": 3])
            _ = try await client.readResource("a://b", options)
            _ = try await client.getPrompt("p", [:], options)
            _ = try await client.callTool("t", [:], meta: ["com.example/n": 2])
        }
        #expect(seen.with { $0 } == [1, 1, 1, 2])
    }

    @Test func questionsMayHaveMetaAndContext() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            try await context.sample(
                "x", maxTokens: 1, includeContext: .thisServer, .init(meta: ["com.example/n": 1])
            ).text
        }
        var options = ClientOptions(revision: "2025-11-25")
        options.sampling = { request, _ in
            "\(request.includeContext?.rawValue ?? "none") \(request.json["_meta"] ?? .null)"
        }
        try await withClient(of: app, options) { client in
            let text = try await client.callTool("ask").text
            #expect(text.contains("sampling.context"), "\(text)")
        }
        options.samplingContext = true
        try await withClient(of: app, options) { client in
            let text = try await client.callTool("ask").text
            #expect(text.hasPrefix("thisServer") && text.contains(#""com.example/n":1"#), "\(text)")
        }
    }

    @Test func rootsMayBeRelative() async throws {
        let here = FileManager.default.currentDirectoryPath
        #expect(ClientRoot("rel/dir") == ClientRoot(path: "\(here)/rel/dir"))
        #expect(ClientRoot("./a/../b").uri == ClientRoot(path: "\(here)/b").uri)
        #expect(ClientRoot("file:///x").uri == "file:///x" && ClientRoot(path: "/y").uri == "file:///y")
    }
}
