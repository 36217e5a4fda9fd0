import Foundation
import Testing

@testable import Tricorn

/// Documents in a dictionary, as far as it does what it is told.
private actor Kept: DocumentStore {
    private(set) var kept: [String: Document] = [:]
    private(set) var waited = 0
    private(set) var timed = 0
    private var does: Does
    nonisolated let waits: Bool
    nonisolated let tellsTime: Bool

    enum Does: Sendable { case works, fails, refuses, ignoresVersions, givesTooFew }

    struct NoRoute: Error {}

    init(_ does: Does = .works, waits: Bool = false, tellsTime: Bool = false) {
        self.does = does
        self.waits = waits
        self.tellsTime = tellsTime
    }

    func turn(to does: Does) { self.does = does }

    func get(_ keys: [String]) throws -> [Document?] {
        switch does {
        case .fails: throw NoRoute()
        case .refuses: throw TricornError.misuse("the table is not there")
        case .givesTooFew: return []
        case .works, .ignoresVersions: return keys.map { kept[$0] }
        }
    }

    func commit(expected: [String: String?], writes: [DocumentWrite]) -> Bool {
        #expect(writes.allSatisfy { $0.ttl >= .seconds(1) })
        let isExpected = expected.allSatisfy { key, version in kept[key]?.version == version }
        guard isExpected || does == .ignoresVersions else { return false }
        for write in writes { kept[write.key] = write.document }
        return true
    }

    func wait(seen: [String: String?], timeout: Duration) async throws {
        waited += 1
        let end = ContinuousClock.now + timeout
        while ContinuousClock.now < end, seen.allSatisfy({ key, version in kept[key]?.version == version }) {
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    func now() -> Date {
        timed += 1
        return Date()
    }
}

/// A server's store of the program's own, in place of a Redis.
@Suite struct DocumentStoreTests {
    private static let legacy = "2025-06-18"
    private static let initialize =
        #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#
        + #""clientInfo":{"name":"t","version":"1"}}}"#
    private static let initialized = #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    private static let call =
        #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","arguments":{}}}"#

    private struct Answered {
        var status: Int
        var session: String?
        var text = ""
    }

    private func named(
        _ who: String, _ store: StoreOptions, onError: (@Sendable (any Error, String) -> Void)? = nil
    ) -> Server {
        let app = Server("shop", store: store, onError: onError)
        app.tool("who") { who }
        return app
    }

    /// The answer to a message of a client of an older revision.
    private func post(_ endpoint: HTTPEndpoint, _ body: String, _ session: String? = nil) async throws -> Answered {
        var headers: [(name: String, value: String)] = [
            ("host", "127.0.0.1"), ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ]
        if let session { headers += [("mcp-session-id", session), ("mcp-protocol-version", Self.legacy)] }
        let answer = try await endpoint.handle(HTTPRequest(method: "POST", headers: headers, body: Array(body.utf8)))
        var answered = Answered(status: answer.status)
        answered.session = answer.headers.first { $0.name.lowercased() == "mcp-session-id" }?.value
        for try await part in answer.body { answered.text += part }
        return answered
    }

    /// A session of a client of an older revision.
    private func open(_ endpoint: HTTPEndpoint) async throws -> String {
        let opened = try await post(endpoint, Self.initialize)
        #expect(opened.status == 200, "\(opened.text)")
        let session = try #require(opened.session)
        #expect(try await post(endpoint, Self.initialized, session).status == 202)
        return session
    }

    private func refusal(_ store: Kept, onError: (@Sendable (any Error) -> Void)? = nil) async -> String {
        do {
            try await checkDocumentStore(store, onError: onError)
            return ""
        } catch {
            return (error as? TricornError)?.message ?? "\(error)"
        }
    }

    @Test func aStoreThatKeepsTheRulesPasses() async throws {
        try await checkDocumentStore(Kept())
        let store = Kept(waits: true, tellsTime: true)
        try await checkDocumentStore(store)
        #expect(await store.waited > 0)
        #expect(await store.timed > 0)
    }

    @Test func aStoreThatBreaksARuleIsRefused() async throws {
        let blind = await refusal(Kept(.ignoresVersions))
        #expect(blind.contains("commit: a document was there, and expected not to be"), "\(blind)")
        let short = await refusal(Kept(.givesTooFew))
        #expect(short.contains("get: it returned another number of documents than there were keys"), "\(short)")
        let refused = await refusal(Kept(.refuses))
        #expect(refused.contains("get: it failed: the table is not there"), "\(refused)")
        let thrown = Locked([String]())
        let failed = await refusal(Kept(.fails)) { error in thrown.with { $0.append("\(type(of: error))") } }
        #expect(failed.contains("get: it failed: NoRoute"), "\(failed)")
        #expect(Set(thrown.with { $0 }) == ["NoRoute"])
    }

    @Test(arguments: [
        (StoreOptions(documents: Kept(), secret: "hush"), #""secret": expected at least 32 bytes"#),
        (StoreOptions(documents: Kept(), prefix: "a b"), #""prefix": expected 1 to 64 letters"#),
    ])
    func whatIsWrongIsNamed(options: StoreOptions, said: String) async throws {
        let app = named("one", options)
        #expect {
            _ = try app.httpEndpoint()
        } throws: { error in
            "\(error)".contains(#"server option "store": \#(said)"#) && !"\(error)".contains("hush")
        }
    }

    @Test(arguments: [false, true])
    func serversWithOneStoreHaveOneSession(waits: Bool) async throws {
        let store = Kept(waits: waits, tellsTime: waits)
        let (one, another) = (
            named("one", StoreOptions(documents: store)), named("another", StoreOptions(documents: store))
        )
        defer {
            one.close()
            another.close()
        }
        let (first, second) = (try one.httpEndpoint(), try another.httpEndpoint())
        let session = try await open(first)
        for (endpoint, who) in [(second, "another"), (first, "one")] {
            let answered = try await post(endpoint, Self.call, session)
            #expect(answered.status == 200 && answered.text.contains(#""text":"\#(who)""#), "\(answered.text)")
        }
    }

    @Test func optionsBeginTheKeys() async throws {
        let store = Kept()
        let ours = named("one", StoreOptions(documents: store, prefix: "ours"))
        let theirs = named("another", StoreOptions(documents: store))
        defer {
            ours.close()
            theirs.close()
        }
        let (first, second) = (try ours.httpEndpoint(), try theirs.httpEndpoint())
        let session = try await open(first)
        #expect(try await post(first, Self.call, session).status == 200)
        #expect(try await post(second, Self.call, session).status == 404)
        #expect(await store.kept.keys.contains { $0.hasPrefix("ours:") })
    }

    @Test func aStoreThatFailsStopsOnlyWhatNeedsIt() async throws {
        let store = Kept(), heard = Locked([String]())
        let one = named("one", StoreOptions(documents: store))
        let another = named("another", StoreOptions(documents: store)) { error, name in
            heard.with { $0.append("\(name): \(type(of: error))") }
        }
        defer {
            one.close()
            another.close()
        }
        let (first, second) = (try one.httpEndpoint(), try another.httpEndpoint())
        let session = try await open(first)
        await store.turn(to: .fails)
        #expect(try await post(second, Self.call, session).status == 503)
        #expect(try await post(second, Self.initialize).status == 503)
        #expect(Set(heard.with { $0 }) == ["store: NoRoute"])
        try await withClient(of: another, ClientOptions(revision: "2026-07-28")) { client in
            expect(try await client.callTool("who").text, "another")
        }
        await store.turn(to: .works)
        var status = 503
        for _ in 0..<400 where status != 200 {
            status = try await post(second, Self.call, session).status
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(status == 200)
    }

    @Test func theStoreIsLetGoWithItsServer() async throws {
        weak var gone: Kept?
        do {
            let store = Kept()
            gone = store
            let app = named("one", StoreOptions(documents: store))
            _ = try await open(app.httpEndpoint())
            app.close()
        }
        for _ in 0..<1000 where gone != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(gone == nil)
    }
}
