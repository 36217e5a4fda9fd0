#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Runs `body` with a client of `server`, connected through memory, and closes it afterwards.
///
/// ```swift
/// try await withClient(of: app) { client in
///     #expect(try await client.callTool("add", ["a": 1, "b": 2]).decode(as: Int.self) == 3)
/// }
/// ```
public func withClient<Result>(
    of server: Server, _ options: ClientOptions = .init(), _ body: (Client) async throws -> Result
) async throws -> Result {
    try await closing(try await connect(to: server, options), body)
}

/// The use of a cassette in a test.
public enum CassetteMode: String, Sendable, Hashable {
    /// Records where there is no file, and plays it otherwise.
    case auto
    /// Records anew.
    case record
    /// Plays the file, and never records.
    case replay
}

/// Runs `body` with a client that records its server the first time and plays the recording afterwards, and closes it. For
/// Swift Testing and XCTest alike.
///
/// ```swift
/// try await withCassette("weather.jsonl", of: .parse("uvx weather")) { client in
///     #expect(try await client.callTool("forecast", ["city": "Bergen"]).text == "rain")
/// }
/// ```
///
/// If `file` is missing, `target` is connected to and recorded there, without secrets; a body that throws leaves no file.
/// A file that is there is played, and `target` is not touched.
///
/// - Parameter strict: plays each answer once, and only for the request that was recorded; otherwise the best match
///   answers, too.
/// - Throws: `TricornError.misuse` for a file that is no cassette, or that `CassetteMode.replay` does not find.
public func withCassette<Result>(
    _ file: String, of target: ConnectionTarget, mode: CassetteMode = .auto, strict: Bool = false,
    _ options: ClientOptions = .init(), _ body: (Client) async throws -> Result
) async throws -> Result {
    if mode == .replay || (mode == .auto && access(file, F_OK) == 0) {
        let played = ConnectionTarget.parse("replay:\(file)\(strict ? "?strict" : "")")
        let client = try await Client.connect(to: played, options)
        return try await closing(client, body)
    }
    let part = "\(file).part"
    var recording = options
    recording.record = part
    do {
        let client = try await Client.connect(to: target, recording)
        let result = try await closing(client, body)
        guard rename(part, file) == 0 else {
            throw TricornError.misuse("cassette \"\(file)\": cannot be written")
        }
        return result
    } catch {
        unlink(part)
        throw error
    }
}

/// Tries a server's store of the program's own: each rule, also with many writers at once, then what a server does with
/// it. Takes some seconds. The keys begin with `tricorn-check:` and a random part; what is left of them ends after two
/// minutes.
///
/// ```swift
/// try await checkDocumentStore(store)
/// ```
///
/// - Parameter onError: hears what the store throws.
/// - Throws: `TricornError.misuse` that names each rule that the store breaks, a line for each.
public func checkDocumentStore(
    _ store: any DocumentStore, onError: (@Sendable (any Error) -> Void)? = nil
) async throws {
    let server = Server("check", store: StoreOptions(documents: store), onError: { error, _ in onError?(error) })
    defer { server.close() }
    try await server.checkStore()
}

private func closing<Result>(_ client: Client, _ body: (Client) async throws -> Result) async throws -> Result {
    do {
        let result = try await body(client)
        await client.close()
        return result
    } catch {
        await client.close()
        throw error
    }
}
