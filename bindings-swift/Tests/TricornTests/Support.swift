import Foundation
import Testing

import Tricorn

/// Something that happens once; waiting for it is bounded.
actor Event {
    private var happened: String?
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func set(_ what: String = "") {
        guard happened == nil else { return }
        happened = what
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    private func happen() async {
        guard happened == nil else { return }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// The value that was set; nil when nothing was in time.
    func value(within time: Duration = .seconds(10)) async -> String? {
        let limit = Task {
            try await Task.sleep(for: time)
            self.giveUp()
        }
        await happen()
        limit.cancel()
        return happened
    }

    private func giveUp() {
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}

/// Runs `body`, or fails the test after twenty seconds.
func bounded<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: .seconds(20))
            return nil
        }
        defer { group.cancelAll() }
        return try #require(try await group.next() ?? nil, "took longer than 20 s")
    }
}

/// Waits until `condition` holds, at most ten seconds.
func eventually(_ condition: @Sendable () -> Bool) async -> Bool {
    for _ in 0..<1000 {
        if condition() { return true }
        try? await Task.sleep(for: .milliseconds(10))
    }
    return condition()
}

/// An example's program, built into the same folder as these tests.
func program(_ name: String) -> String {
    #if os(Linux)
    let me =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
    #else
    let me = Bundle(for: Marker.self).bundlePath
    #endif
    return URL(fileURLWithPath: me).deletingLastPathComponent().appendingPathComponent(name).path
}

#if !os(Linux)
private final class Marker {}
#endif

struct Add: Codable, Sendable {
    var a: Int
    var b: Int
}

struct Wait: Codable, Sendable { var ms: Int }

/// Expects the same. For closures of which nothing else throws: the compiler does not see that `#expect(try …)` does.
func expect<Value: Equatable>(
    _ got: Value, _ wanted: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(got == wanted, sourceLocation: sourceLocation)
}

/// The way from a client to a server of this process.
enum Way: String, CaseIterable, Sendable { case memory, http }

/// Runs `body` with a client of the server, through memory or over HTTP, and closes both afterwards.
func serve(
    _ app: Server, _ way: Way, _ options: ClientOptions, _ body: (Client) async throws -> Void
) async throws {
    defer { app.close() }
    if way == .memory { return try await withClient(of: app, options, body) }
    let listening = Event()
    let serving = Task { try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } } }
    let client = try await connect(try #require(await listening.value()), options)
    try await body(client)
    await client.close()
    app.close()
    try await bounded { try await serving.value }
}
