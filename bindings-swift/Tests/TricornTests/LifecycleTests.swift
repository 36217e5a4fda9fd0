import Foundation
import Testing
import TricornCore

@testable import Tricorn

@Suite(.serialized) struct LifecycleTests {
    @Test func aPanicIsAnOrdinaryError() {
        do {
            try core { try corePanic(message: "oh no") }
            Issue.record("returned")
        } catch TricornError.misuse(let message) {
            #expect(message.contains("oh no"))
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test func theLibraryKnowsItsVersion() throws {
        #expect(try !coreVersion().isEmpty)
    }

    @Test func serversAndClientsAreFreed() async throws {
        weak var server: Server?
        weak var client: Client?
        do {
            let app = Server("test")
            app.tool("hello") { "hello" }
            let connected = try await connect(to: app)
            server = app
            client = connected
            #expect(try await connected.callTool("hello").text == "hello")
            await connected.close()
        }
        #expect(server == nil)
        #expect(client == nil)
    }

    /// A proxy: what its handlers hold ends with them.
    @Test func handlersMayBeTheLastToHoldAClient() async throws {
        weak var held: Client?
        let inner = Server("inner")
        inner.tool("hello") { "hello" }
        do {
            let app = Server("outer")
            let client = try await connect(to: inner)
            held = client
            app.tool("ask") { try await client.callTool("hello").text }
            try await withClient(of: app) { outer in
                expect(try await outer.callTool("ask").text, "hello")
            }
        }
        for _ in 0..<500 where held != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(held == nil)
        do {
            let app = Server("outer")
            let client = try await connect(to: inner)
            held = client
            app.tool("ask") { try await client.callTool("hello").text }
            app.removeTool("ask")
        }
        for _ in 0..<500 where held != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(held == nil)
    }

    @Test func closingTwiceAndOutOfOrderIsHarmless() async throws {
        let app = Server("test")
        app.tool("hello") { "hello" }
        let client = try await connect(to: app)
        app.close()
        app.close()
        await client.close()
        await client.close()
        await #expect(throws: TricornError.self) { try await client.callTool("hello") }
    }

    @Test func cancellingAServingTaskEndsIt() async throws {
        let app = Server("test")
        let listening = Event()
        let serving = Task { try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } } }
        let url = try #require(await listening.value())
        serving.cancel()
        await #expect(throws: CancellationError.self) { try await bounded { try await serving.value } }
        var refused = false
        for _ in 0..<500 where !refused {
            do {
                let client = try await connect(url)
                await client.close()
                try await Task.sleep(for: .milliseconds(10))
            } catch {
                refused = true
            }
        }
        #expect(refused)
    }

    @Test func notificationStreamsEndWithTheConnection() async throws {
        let client = try await connect(to: Server("test"))
        let notifications = client.notifications()
        await client.close()
        #expect(try await bounded { await notifications.first { _ in true } } == nil)
        #expect(try await bounded { await client.notifications().first { _ in true } } == nil)
    }

    /// A program that ends while calls run must neither hang nor crash, and answers what it has answered.
    @Test(arguments: zip([SIGTERM, SIGINT, SIGHUP], [Int32(0), 130, 129]))
    func signalsEndAServerInOrder(signal: Int32, status: Int32) async throws {
        let server = try Launched("everything", ["--stdio"])
        try server.send(
            #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
        )
        _ = try server.line()
        try server.send(
            #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":60000}}}"#)
        try server.send(
            #"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#)
        #expect(try server.line().contains("\"id\":2"))
        kill(server.process.processIdentifier, signal)
        #expect(await eventually { !server.process.isRunning })
        #expect(server.process.terminationReason == .exit)
        #expect(server.process.terminationStatus == status)
    }

    @Test func endOfInputEndsAServerAfterItsAnswers() async throws {
        let server = try Launched("everything", ["--stdio"])
        try server.send(
            #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
        )
        for id in 1...200 {
            try server.send(
                #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#
            )
        }
        try server.input.close()
        let answers = String(decoding: try server.output.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n")
        #expect(answers.count == 201)
        server.process.waitUntilExit()
        #expect(server.process.terminationStatus == 0)
    }
}

/// Output that a server on standard streams prints while they belong to the protocol.
@Suite struct PrintingTests {
    @Test func whatIsPrintedIsHeardWhileTheServerRuns() async throws {
        let client = try await connect(
            .command(program("everything"), arguments: ["--stdio"], standardError: .event))
        let lines = client.standardErrorLines()
        #expect(try await client.callTool("print", ["text": "noise"]).text == "printed")
        let line = try await bounded { await lines.first { $0.contains("noise") } }
        #expect(line?.contains("noise") == true)
        await client.close()
    }

    @Test(arguments: [(1, 30), (257, 4), (2_000, 1)])
    func theLastLinesAreNotLost(lines: Int, runs: Int) async throws {
        for _ in 0..<runs {
            let kept = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).txt")
            FileManager.default.createFile(atPath: kept.path, contents: nil)
            defer { try? FileManager.default.removeItem(at: kept) }
            let server = try Launched("everything", ["--stdio"], standardError: FileHandle(forWritingTo: kept))
            try server.send(
                #"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
            )
            let text = (1...lines).map { "line \($0)" }.joined(separator: "\\n")
            try server.send(
                #"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"print","arguments":{"text":"\#(text)"}}}"#
            )
            try server.input.close()
            let answers = String(decoding: try server.output.readToEnd() ?? Data(), as: UTF8.self)
            server.process.waitUntilExit()
            #expect(answers.split(separator: "\n").count == 2 && !answers.contains("line "))
            let printed = try String(contentsOf: kept, encoding: .utf8).split(separator: "\n")
                .filter { $0.hasPrefix("line ") }
            #expect(printed.count == lines && printed.last == "line \(lines)")
        }
    }
}

/// A server on pipes.
private final class Launched: @unchecked Sendable {
    let process = Process()
    let input: FileHandle
    let output: FileHandle

    init(_ name: String, _ arguments: [String], standardError: FileHandle = .nullDevice) throws {
        let (stdin, stdout) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: program(name))
        process.arguments = arguments
        process.standardInput = stdin
        process.standardOutput = stdout
        process.standardError = standardError
        try process.run()
        input = stdin.fileHandleForWriting
        output = stdout.fileHandleForReading
    }

    deinit { if process.isRunning { process.terminate() } }

    func send(_ line: String) throws { try input.write(contentsOf: Data("\(line)\n".utf8)) }

    func line() throws -> String {
        var bytes: [UInt8] = []
        while let byte = try output.read(upToCount: 1)?.first, byte != 0x0A { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
