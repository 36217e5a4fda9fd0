import Foundation
import Testing

@testable import Tricorn

/// A store that processes share.
private actor Kept: CacheStore {
    private(set) var kept: [String: String] = [:]
    private(set) var asked = 0
    private(set) var cancelled = 0
    private var does: Does

    enum Does: String, CaseIterable { case works, hangs, fails, refuses, givesTooFew, givesGarbage }

    struct NoRoute: Error {}

    init(_ does: Does = .works) { self.does = does }

    func turn(to does: Does) { self.does = does }

    func get(_ keys: [String]) async throws -> [String?] {
        asked += 1
        switch does {
        case .works: break
        case .hangs:
            do { try await Task.sleep(for: .seconds(60)) } catch {
                cancelled += 1
                throw error
            }
        case .fails: throw NoRoute()
        case .refuses: throw TricornError.auth("sign in")
        case .givesTooFew: return []
        case .givesGarbage: return keys.map { _ in "{" }
        }
        return keys.map { kept[$0] }
    }

    func set(_ key: String, _ text: String, ttl: Duration) {
        #expect(ttl >= .seconds(1))
        kept[key] = text
    }

    func delete(_ key: String) { kept[key] = nil }
}

/// Answers that a client keeps in a store of the program's own (2026-07-28).
@Suite struct CacheStoreTests {
    /// A server whose resources say how often anything was read.
    private func counting() -> Server {
        let reads = Locked(0)
        let app = Server("test", cache: ServerCache(ttl: .seconds(3600)))
        @Sendable func count() -> String {
            reads.with {
                $0 += 1
                return "\($0)"
            }
        }
        app.resource("test://count", cache: CacheHints(scope: .public)) { count() }
        app.resource("test://own") { count() }
        return app
    }

    private func options(_ store: Kept, token: String? = nil, scope: String? = nil) -> ClientOptions {
        var options = ClientOptions(revision: "2026-07-28")
        options.cache = ClientCache(scope: scope, store: store)
        if let token { options.headers = ["Authorization": "Bearer \(token)"] }
        return options
    }

    private func read(_ client: Client, _ uri: String = "test://count") async throws -> String {
        try await client.readResource(uri).text
    }

    @Test func clientsShareWhatAStoreKeeps() async throws {
        let store = Kept()
        try await listening(counting()) { url in
            for (token, own) in [("ada", "1"), ("bob", "3"), ("ada", "1")] {
                let client = try await connect(url, options(store, token: token))
                let texts = [try await read(client, "test://own"), try await read(client)]
                #expect(texts == [own, "2"])
                await client.close()
            }
            for token in ["1", "2"] {
                let client = try await connect(url, options(store, token: token, scope: "carl"))
                #expect(try await read(client, "test://own") == "4")
                #expect(client.metrics["cache"]?["hits"] == (token == "1" ? 0 : 1))
                #expect(client.metrics["cache"]?["entries"] == 0)
                await client.close()
            }
        }
        #expect(await store.kept.keys.allSatisfy { $0.hasPrefix("tricorn:1:") })
    }

    @Test func whatOneHearsOfIsDroppedForAll() async throws {
        let store = Kept(), app = counting()
        try await listening(app) { url in
            let ada = try await connect(url, options(store)), bob = try await connect(url, options(store))
            for client in [ada, bob] {
                #expect(try await read(client) == "1")
                #expect(try await read(client, "test://own") == "2")
            }
            let changes = try await ada.listen(uris: ["test://count"])
            app.notifyResourceUpdated("test://count")
            for try await change in changes {
                #expect(change.uri == "test://count")
                break
            }
            for client in [ada, bob] {
                #expect(try await read(client) == "3")
                #expect(try await read(client, "test://own") == "2")
                await client.close()
            }
        }
    }

    @Test(arguments: [
        ("hangs", 1, "it has not answered within 2 s"), ("fails", 2, "NoRoute"), ("refuses", 2, "sign in"),
        ("givesTooFew", 2, "expected"), ("givesGarbage", 4, "no answer that was kept"),
    ])
    func aStoreThatFailsCostsAQuestionAtTheServer(does: String, failures: Int, said: String) async throws {
        let store = Kept(try #require(Kept.Does(rawValue: does))), warned = Locked([String]())
        try await listening(counting()) { url in
            var options = options(store)
            options.onWarning = { message in warned.with { $0.append(message) } }
            let client = try await connect(url, options)
            #expect(try await read(client) == "1")
            #expect(try await read(client) == "2")
            expect(client.metrics["cache"]?["failures"], .int(failures))
            await client.close()
        }
        let ours = warned.with { $0 }.filter { $0.hasPrefix("the cache's store: get: ") }
        #expect(ours.count == 1 && ours[0].contains(said), "\(warned.with { $0 })")
        // Who has given `onWarning` hears all that it throws, besides.
        let thrown = warned.with { $0 }.filter { $0.hasPrefix("cache: store failed: ") }
        #expect(thrown.count == (["fails", "refuses"].contains(does) ? 2 : 0), "\(thrown)")
        let cancelled = does == "hangs" ? 1 : 0
        for _ in 0..<1000 {
            if await store.cancelled == cancelled { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(await store.cancelled == cancelled)
    }

    @Test func aRequestCanBeGivenUpWhileTheStoreIsAsked() async throws {
        let store = Kept(.hangs)
        try await listening(counting()) { url in
            let client = try await connect(url, options(store))
            let reading = Task { try await read(client) }
            while await store.asked == 0 { try await Task.sleep(for: .milliseconds(1)) }
            reading.cancel()
            await #expect(throws: (any Error).self) { try await bounded { try await reading.value } }
            await store.turn(to: .works)
            #expect(try await read(client) == "1")
            await client.close()
        }
    }

    @Test func serversWithoutAnAddressAreKeptInMemory() async throws {
        let store = Kept()
        try await withClient(of: counting(), options(store)) { client in
            expect(try await read(client), "1")
            expect(try await read(client), "1")
            expect(client.metrics["cache"]?["entries"], 1)
        }
        #expect(await store.asked == 0)
    }

    @Test func theServersOfAGroupAreKeptApart() async throws {
        let store = Kept()
        try await listening(counting()) { one in
            try await listening(counting()) { two in
                for hits in [0, 1] {
                    let options = GroupOptions(client: options(store))
                    let group = try await connectMany(["one": .url(one), "two": .url(two)], options)
                    for name in ["one", "two"] {
                        let client = try #require(group.client(name))
                        #expect(try await read(client) == "1")
                        expect(client.metrics["cache"]?["hits"], .int(hits))
                    }
                    await group.close()
                }
            }
        }
    }

    @Test func theStoreIsLetGoWithItsClient() async throws {
        weak var gone: Kept?
        try await listening(counting()) { url in
            let store = Kept()
            gone = store
            let client = try await connect(url, options(store))
            #expect(try await read(client) == "1")
            await client.close()
        }
        for _ in 0..<1000 where gone != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(gone == nil)
    }

    @Test func whatIsWrongIsNamed() async throws {
        var options = options(Kept())
        options.cache?.shared = true
        await #expect {
            _ = try await connect("http://127.0.0.1:1/mcp", options)
        } throws: { error in
            "\(error)".contains(#""shared": with a store of one's own they are shared already"#)
        }
    }
}
