import Foundation
import Testing

@testable import Tricorn

/// A Redis or Valkey: that of the environment, or one of a test's own.
private final class RunningStore {
    /// The store's URL, where one runs already.
    static let given = ProcessInfo.processInfo.environment["TRICORN_TEST_STORE"]
    static let program: String? = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let named = ["valkey-server", "redis-server"].flatMap { name in folders.map { "\($0)/\(name)" } }
        return named.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()
    static var isThere: Bool { given != nil || program != nil }

    let url: String
    private var process: Process?
    private var folder: URL?

    init() async throws {
        if let given = Self.given {
            url = given
            return
        }
        let files = FileManager.default, process = Process()
        let folder = files.temporaryDirectory.appendingPathComponent("tricorn-\(UUID().uuidString)")
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        let socket = folder.appendingPathComponent("s").path
        process.executableURL = URL(fileURLWithPath: try #require(Self.program))
        process.arguments = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"]
        process.currentDirectoryURL = folder
        process.standardOutput = FileHandle.nullDevice
        url = "unix://\(socket)"
        try process.run()
        (self.process, self.folder) = (process, folder)
        for _ in 0..<1000 where !files.fileExists(atPath: socket) {
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    deinit {
        process?.terminate()
        process?.waitUntilExit()
        if let folder { try? FileManager.default.removeItem(at: folder) }
    }
}

/// A Redis or Valkey that clients share.
@Suite(.serialized) struct SharedStoreTests {
    private static let secret = "a secret for tests, longer than thirty-two bytes"

    @Test(.enabled(if: RunningStore.isThere, "no Redis or Valkey on the path"), arguments: [nil, Self.secret])
    func clientsShareAnswers(secret: String?) async throws {
        let store = try await RunningStore(), reads = Locked(0)
        let app = Server("test", cache: ServerCache(ttl: .seconds(3600)))
        app.resource("test://count", cache: CacheHints(scope: .public)) {
            reads.with { reads in
                reads += 1
                return "\(reads)"
            }
        }
        try await listening(app) { url in
            for hits in [0, 1] {
                var options = ClientOptions(revision: "2026-07-28")
                options.cache = ClientCache(sharedStore: StoreOptions(store.url, secret: secret))
                let client = try await connect(url, options)
                #expect(try await client.readResource("test://count").text == "1")
                expect(client.metrics["cache"]?["hits"], .int(hits))
                await client.close()
            }
        }
    }

    @Test(.enabled(if: RunningStore.isThere, "no Redis or Valkey on the path"))
    func clientsShareLogins() async throws {
        let store = try await RunningStore(), authority = try Authority()
        try await listening(protected(authority)) { url in
            for _ in 0..<2 {
                var options = ClientOptions()
                options.auth = login(.shared(StoreOptions(store.url, secret: Self.secret)))
                let client = try await connect(url, options)
                #expect(try await client.callTool("whoami").text == "ada blue")
                await client.close()
                authority.revokeTokens()
            }
        }
        #expect(authority.opened == 1)
        #expect(authority.grants.filter { $0 == "refresh_token" }.count == 1)
    }

    @Test func aWrongStoreIsNamedAndItsSecretsAreNot() async throws {
        var options = ClientOptions()
        options.auth = login(.shared("redis://ann:hush@127.0.0.1:1"))
        do {
            _ = try await connect("http://127.0.0.1:1/mcp", options)
            Issue.record("it connects")
        } catch let error as TricornError {
            let said = error.message
            #expect(said.contains("\"secret\": missing") && !said.contains("hush"), "\(said)")
        }
    }
}
