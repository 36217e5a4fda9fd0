import Foundation
import Testing

@testable import Tricorn

/// Lifetime of cached answers (2026-07-28): hints of a server, and their use by a client.
@Suite struct CachingTests {
    private let modern = ClientOptions(revision: "2026-07-28")

    /// Milliseconds and scope, as they come.
    private func hints(_ client: Client, _ method: String, _ uri: String? = nil) async throws -> String {
        let params: JSONValue = uri.map { ["uri": .string($0)] } ?? [:]
        let result = try await client.request(method, params, RequestOptions(cache: .bypass))
        return "\(result["ttlMs"] ?? .null) \(result["cacheScope"]?.stringValue ?? "-")"
    }

    @Test func aServerSaysHowLongWhatKeepsAndForWhom() async throws {
        let app = Server(
            "test",
            cache: ServerCache(
                ttl: .seconds(60), scope: .public, tools: CacheHints(ttl: .milliseconds(500)),
                resourceTemplates: CacheHints(scope: .private)))
        app.resource("test://own", cache: CacheHints(ttl: .seconds(5), scope: .public), value: "text")
        app.resource("test://other", value: "text")
        app.resource("test://made", cache: CacheHints(ttl: .seconds(2))) { "text" }
        app.resource("test://template/{n}", cache: CacheHints(ttl: .milliseconds(1))) {
            (variables: [String: String]) in
            variables["n"] ?? ""
        }
        app.resource("test://result") {
            ReadResourceResult(
                contents: [.text(.init(uri: "test://result", text: "text"))], cacheScope: .public, ttlMs: 7)
        }
        try await withClient(of: app, modern) { client in
            expect(try await hints(client, "tools/list"), "500 public")
            expect(try await hints(client, "server/discover"), "60000 public")
            expect(try await hints(client, "resources/templates/list"), "60000 private")
            expect(try await hints(client, "resources/read", "test://own"), "5000 public")
            expect(try await hints(client, "resources/read", "test://other"), "60000 private")
            expect(try await hints(client, "resources/read", "test://made"), "2000 private")
            expect(try await hints(client, "resources/read", "test://template/1"), "1 private")
            expect(try await hints(client, "resources/read", "test://result"), "7 public")
        }
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            expect(try await hints(client, "resources/read", "test://own"), "null -")
        }
    }

    @Test func nothingIsSaidByDefault() async throws {
        let app = Server("test")
        app.resource("test://one", value: "text")
        try await withClient(of: app, modern) { client in
            expect(try await hints(client, "resources/list"), "0 private")
            expect(try await hints(client, "resources/read", "test://one"), "0 private")
        }
    }

    @Test func filesHaveTheirOwn() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tricorn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("a.txt")
        try Data("a".utf8).write(to: file)
        let app = Server("test")
        try app.addFile(file.path, uri: "one://a", cache: CacheHints(ttl: .seconds(1)))
        try app.addDirectory(folder.path, uri: "all://", cache: CacheHints(ttl: .seconds(2), scope: .public))
        try await withClient(of: app, modern) { client in
            expect(try await hints(client, "resources/read", "one://a"), "1000 private")
            expect(try await hints(client, "resources/read", "all://a.txt"), "2000 public")
        }
    }

    /// A server whose resource says how often it was read.
    private func counting() -> Server {
        let reads = Locked(0)
        let app = Server("test", cache: ServerCache(ttl: .seconds(3600)))
        app.resource("test://count") { () -> String in
            reads.with { $0 += 1 }
            return "\(reads.with { $0 })"
        }
        return app
    }

    private func reads(_ client: Client, _ modes: CacheMode...) async throws -> [String] {
        var texts: [String] = []
        for mode in modes {
            texts.append(try await client.readResource("test://count", RequestOptions(cache: mode)).text)
        }
        return texts
    }

    @Test func aClientKeepsWhatItMay() async throws {
        try await withClient(of: counting(), modern) { client in
            expect(try await reads(client, .default, .default, .default), ["1", "1", "1"])
            expect(try await reads(client, .bypass, .default), ["2", "1"])
            expect(try await reads(client, .refresh, .default), ["3", "3"])
            let cache = client.metrics["cache"]
            expect(cache?["hits"], 4)
            expect(cache?["misses"], 1)
            expect(cache?["stale"], 0)
            expect(cache?["entries"], 1)
        }
        var options = modern
        options.cache = .off
        try await withClient(of: counting(), options) { client in
            expect(try await reads(client, .default, .default), ["1", "2"])
        }
        options.cache = ClientCache(maxEntries: 5, maxBytes: 1 << 20, staleOnError: true, shared: false, scope: "ada")
        try await withClient(of: counting(), options) { client in
            expect(try await reads(client, .default, .default), ["1", "1"])
        }
    }

    @Test func whatHasChangedIsReadAgain() async throws {
        let app = counting()
        try await withClient(of: app, modern) { client in
            expect(try await reads(client, .default, .default), ["1", "1"])
            let listening = try await client.listen(uris: ["test://count"])
            app.notifyResourceUpdated("test://count")
            for try await _ in listening { break }
            expect(try await reads(client, .default), ["2"])
        }
    }

    @Test func anOldAnswerIsBetterThanNone() async throws {
        let app = Server("test", cache: ServerCache(ttl: .milliseconds(1)))
        app.resource("test://one", value: "text")
        var options = modern
        options.cache = ClientCache(staleOnError: true)
        let listening = Event()
        let serving = Task { try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } } }
        let client = try await connect(try #require(await listening.value()), options)
        expect(try await client.readResource("test://one").text, "text")
        app.close()
        try await bounded { try await serving.value }
        try await Task.sleep(for: .milliseconds(2))
        let old = try await client.readResource("test://one")
        #expect(old.text == "text" && old.json["_meta"]?["tricorn/stale"]?["ageMs"] != nil)
        expect(client.metrics["cache"]?["stale"], 1)
        await client.close()
    }

    private func refusal(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return ""
        } catch { return "\(error)" }
    }

    @Test func whatIsWrongIsNamed() async {
        let server = await refusal {
            _ = try await connect(to: Server("test", cache: ServerCache(tools: CacheHints(ttl: .seconds(-1)))))
        }
        #expect(server.contains(#""tools": "ttl": expected seconds of at least 0, got -1"#), "\(server)")
        let resource = await refusal {
            let app = Server("test")
            app.resource("a://b", cache: CacheHints(ttl: .seconds(-1)), value: "")
            _ = try await connect(to: app)
        }
        #expect(resource.contains(#"resource "a://b""#) && resource.contains(#""ttl": expected"#), "\(resource)")
        let scope = await refusal {
            _ = try await connect(to: Server("test", cache: ServerCache(scope: CacheScope(rawValue: "all"))))
        }
        #expect(scope.contains(#""scope": expected "public" or "private", got "all""#), "\(scope)")
        let client = await refusal {
            var options = modern
            options.cache = ClientCache(maxBytes: 0)
            _ = try await connect(to: Server("test"), options)
        }
        #expect(client.contains(#""maxBytes": expected an integer of at least 1"#), "\(client)")
    }
}
