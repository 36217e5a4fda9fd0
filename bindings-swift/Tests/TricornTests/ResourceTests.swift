import Foundation
import Testing

@testable import Tricorn

private struct Day: Codable, Sendable {
    var year: Int
    var month: Int
}

private struct Trouble: Error {}

let eras = ["2025-11-25", "2026-07-28"]

@Suite struct ResourceTests {
    private func server() -> Server {
        let app = Server("test", pageSize: 2, onError: { _, _ in })
        app.resource(
            "text://hello", "A greeting", name: "hello", title: "Hello", mimeType: "text/plain", size: 5,
            annotations: .init(audience: [.user], priority: 0.5), icons: [.init(src: "https://example.com/i.png")],
            meta: ["com.example/n": 1]
        ) { "hello" }
        app.resource("bytes://three", mimeType: "application/octet-stream") { Data([1, 2, 3]) }
        app.resource("json://config") { ["debug": true] }
        app.resource("text://value", value: "always the same")
        app.resource("text://member") { ["text": "no contents"] }
        app.resource("dir://two") {
            [
                ResourceContents(uri: "dir://two/a", mimeType: "text/plain", text: "a"),
                ResourceContents(uri: "dir://two/b", blob: Data([9])),
            ]
        }
        app.resource("whole://result") {
            ReadResourceResult(contents: [.text(.init(uri: "whole://x", text: "w"))], meta: nil)
        }
        app.resource("method://mine") { (_: NoArguments, context) in context.request?.method ?? "" }
        app.resource("fail://missing") { () -> String in throw TricornError.resourceNotFound("fail://missing") }
        app.resource("fail://told") { () -> String in throw ToolError("out of paper") }
        app.resource("fail://hidden") { () -> String in throw Trouble() }
        app.resource("notes://{year}/{month}", "A month's notes", mimeType: "text/plain") { (day: Day, _) in
            "\(day.year + 1) \(day.month)"
        }
        app.resource("echo://{+path}") { (variables: [String: String]) in variables["path"] ?? "none" }
        return app
    }

    @Test(arguments: eras) func readsWhatHandlersReturn(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            #expect(try await client.readResource("text://hello").text == "hello")
            let bytes = try await client.readResource("bytes://three")
            #expect(bytes.data == Data([1, 2, 3]))
            #expect(bytes.text == "")
            #expect(bytes.contents.first?.json["mimeType"] == "application/octet-stream")
            let config = try await client.readResource("json://config")
            #expect(config.text == #"{"debug":true}"#)
            #expect(config.contents.first?.json["mimeType"] == "application/json")
            #expect(try await client.readResource("text://value").text == "always the same")
            #expect(try await client.readResource("text://member").text == #"{"text":"no contents"}"#)
            let two = try await client.readResource("dir://two")
            #expect(two.contents.map { $0.json["uri"] } == ["dir://two/a", "dir://two/b"])
            #expect(two.text == "a")
            #expect(two.data == Data([9]))
            #expect(try await client.readResource("whole://result").text == "w")
            #expect(try await client.readResource("method://mine").text == "resources/read")
        }
    }

    @Test(arguments: eras) func templatesHaveTypedVariables(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            expect(try await client.readResource("notes://2025/11").text, "2026 11")
            expect(try await client.readResource("echo://a/b").text, "a/b")
            await expectCode(-32602, containing: #"argument "year": expected integer, got "x""#) {
                _ = try await client.readResource("notes://x/11")
            }
        }
    }

    @Test(arguments: eras) func errorsOfHandlersAreJSONRPCErrors(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            let missing = revision == "2025-11-25" ? -32002 : -32602
            for uri in ["fail://missing", "un://known"] {
                await expectCode(missing, containing: uri) { _ = try await client.readResource(uri) }
                let error = await failure { try await client.readResource(uri) }
                #expect(error?.isResourceNotFound == true)
            }
            let other = await failure { try await client.readResource("fail://told") }
            #expect(other?.isResourceNotFound == false)
            await expectCode(-32603, containing: "out of paper") { _ = try await client.readResource("fail://told") }
            await expectCode(-32603, containing: #"resource "fail://hidden" failed: Trouble"#) {
                _ = try await client.readResource("fail://hidden")
            }
        }
    }

    @Test(arguments: eras) func listsEverythingThatWasSaid(revision: String) async throws {
        try await withClient(of: server(), ClientOptions(revision: revision)) { client in
            let resources = try await client.listResources()
            #expect(resources.count == 11)
            let hello = try #require(resources.first(where: { $0.uri == "text://hello" }))
            #expect(hello.name == "hello" && hello.title == "Hello" && hello.description == "A greeting")
            #expect(hello.mimeType == "text/plain" && hello.size == 5 && hello.annotations?.priority == 0.5)
            #expect(hello.icons?.first?.src == "https://example.com/i.png" && hello.meta?["com.example/n"] == 1)
            // Of several pages, so by name.
            #expect(resources[0].uri == "bytes://three" && resources[0].name == "three")
            let templates = try await client.listResourceTemplates()
            #expect(templates.map(\.uriTemplate) == ["notes://{year}/{month}", "echo://{+path}"])
            #expect(templates.map(\.name) == ["month", "+path"])
        }
    }

    @Test func pagesComeAsTheyAreAskedFor() async throws {
        try await withClient(of: server()) { client in
            var seen: [String] = []
            for try await resource in client.resources() { seen.append(resource.uri) }
            #expect(seen.count == 11)
            let page = try await client.listResourcesPage()
            #expect(page.resources.map(\.uri) == Array(seen.prefix(2)))
            let next = try await client.listResourcesPage(cursor: page.nextCursor)
            #expect(next.resources.map(\.uri) == Array(seen[2..<4]))
            for try await resource in client.resources() where resource.uri == seen[2] { break }
            #expect(try await client.resourceTemplates().collect().count == 2)
            #expect(try await client.listResourceTemplatesPage().nextCursor == nil)
        }
    }

    @Test func variablesThatAreNotThereAreAMistake() async {
        let app = Server("test")
        app.resource("text://plain") { (day: Day) in "\(day.year)" }
        await #expect(throws: TricornError.self) { try await connect(to: app) }
        let other = Server("test")
        other.resource("notes://{year}") { (day: Day) in "\(day.year)" }
        await #expect(throws: TricornError.self) { try await connect(to: other) }
        let twice = Server("test")
        twice.resource("a://b", value: 1)
        twice.resource("a://b", value: 2)
        await #expect(throws: TricornError.self) { try await connect(to: twice) }
        let none = Server("test")
        none.resource("no uri", value: 1)
        await #expect(throws: TricornError.self) { try await connect(to: none) }
    }

    @Test(arguments: eras) func filesAreReadAsTheyAre(revision: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tricorn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("one".utf8).write(to: folder.appendingPathComponent("one.txt"))
        try Data("dot".utf8).write(to: folder.appendingPathComponent(".hidden"))
        let app = Server("test")
        try app.addFile(folder.appendingPathComponent("one.txt").path, uri: "file://one")
        try app.addDirectory(folder.path, uri: "dir://all/")
        #expect(throws: TricornError.self) { try app.addFile(folder.path, uri: "file://folder") }
        #expect(throws: TricornError.self) {
            try app.addDirectory(folder.appendingPathComponent("one.txt").path, uri: "dir://one/")
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            let uris = try await client.listResources().map(\.uri)
            #expect(uris == ["file://one", "dir://all/one.txt"])
            try Data("two".utf8).write(to: folder.appendingPathComponent("one.txt"))
            for uri in uris { #expect(try await client.readResource(uri).text == "two") }
            await #expect(throws: TricornError.self) { try await client.readResource("dir://all/.hidden") }
        }
    }

    @Test func subscribersAreTold() async throws {
        let app = server()
        let heard = Locked([String]()), hooked = Locked([String]())
        app.onSubscribe { uri, subscribed in
            if uri == "fail://told" { throw TricornError.rpc(code: 7, message: "not this one") }
            hooked.with { $0.append("\(uri) \(subscribed)") }
        }
        var options = ClientOptions(revision: "2025-11-25")
        options.onResourceUpdated = { uri in heard.with { $0.append(uri) } }
        try await withClient(of: app, options) { client in
            try await client.subscribe("text://hello")
            app.notifyResourceUpdated("text://hello")
            app.notifyResourceUpdated("text://value")
            #expect(await eventually { heard.with { !$0.isEmpty } })
            try await client.unsubscribe("text://hello")
            app.notifyResourceUpdated("text://hello")
            try await client.ping()
            #expect(heard.with { $0 } == ["text://hello"])
            #expect(hooked.with { $0 } == ["text://hello true", "text://hello false"])
            await expectCode(7, containing: "not this one") { try await client.subscribe("fail://told") }
        }
        // By a stream of its own, which the client keeps.
        options.revision = "2026-07-28"
        try await withClient(of: app, options) { client in
            try await client.subscribe("text://hello")
            app.notifyResourceUpdated("text://hello")
            #expect(await eventually { heard.with { $0 } == ["text://hello", "text://hello"] })
        }
    }
}

/// Expects a JSON-RPC error.
func expectCode(_ code: Int, containing text: String, _ body: () async throws -> Void) async {
    do {
        try await body()
        Issue.record("no error")
    } catch let error as TricornError {
        #expect(error.code == code && error.message.contains(text), "\(error)")
    } catch {
        Issue.record(error)
    }
}
