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
    let client = try await connect(to: server, options)
    do {
        let result = try await body(client)
        await client.close()
        return result
    } catch {
        await client.close()
        throw error
    }
}
