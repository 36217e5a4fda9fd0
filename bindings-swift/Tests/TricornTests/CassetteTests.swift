import Foundation
import Testing
import Tricorn

/// Cassettes: recorded once, played ever after, with equal results and without secrets.
@Suite struct CassetteTests {
    private static let cassettes = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("tests/cassettes")

    private struct Numbers: Codable, Sendable { var a: Int, b: Int }
    private struct Login: Codable, Sendable { var password: String }

    private func calculator() -> Server {
        let app = Server("calculator")
        app.tool("add") { (numbers: Numbers, _) in numbers.a + numbers.b }
        app.tool("login") { (login: Login, _) in "welcome with \(login.password)" }
        return app
    }

    @Test(arguments: ["2025-11-25", "2026-07-28"])
    func aRecordedServerIsPlayed(revision: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tricorn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("calculator.jsonl").path
        let options = ClientOptions(revision: revision)
        try await withCassette(file, of: .server(calculator()), options) { client in
            let sum = try await client.callTool("add", Numbers(a: 1, b: 2)).text
            #expect(sum == "3")
            _ = try await client.callTool("login", Login(password: "hunter2-hunter2"))
        }
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(!text.contains("hunter2"))
        try await withCassette(file, of: .server(Server("nothing")), mode: .replay, strict: true, options) { client in
            let sum = try await client.callTool("add", Numbers(a: 1, b: 2)).text
            #expect(sum == "3")
            await #expect(throws: TricornError.self) { _ = try await client.callTool("add", Numbers(a: 1, b: 2)) }
        }
    }

    @Test(arguments: ["legacy", "modern"])
    func theFixtureServerIsPlayed(era: String) async throws {
        let client = try await connect("replay:\(Self.cassettes.appendingPathComponent(era).path).jsonl")
        let sum = try await client.callTool("add", Numbers(a: 1, b: 2)).text
        #expect(sum == "3")
        await client.close()
    }
}
