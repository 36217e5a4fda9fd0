import Foundation
import Testing

@testable import Tricorn

private let revisions = ["2025-06-18", "2025-11-25", "2026-07-28"]
private let modern = "2026-07-28"

/// A loop through what is listened to.
private struct Loop: Sendable {
    private let changes = Locked([ServerChange]())
    let task: Task<Void, any Error>

    init(_ listening: Listening) {
        task = Task { [changes] in
            for try await change in listening { changes.with { $0.append(change) } }
        }
    }

    /// True if it has heard this, and nothing else, since it was asked the last time.
    func hears(_ wanted: ServerChange...) async -> Bool {
        let all = await eventually { changes.with { $0.count } >= wanted.count }
        return changes.with { changes in
            defer { changes = [] }
            return all && changes == wanted
        }
    }

    /// The kind of error that it ends with; empty for none.
    func end() async throws -> String {
        do {
            try await bounded { try await task.value }
            return ""
        } catch let error as TricornError {
            return error.kind.rawValue
        }
    }
}

/// The fixture server over HTTP, until it is cut off.
private final class Fixture: @unchecked Sendable {
    let url: String
    private let process = Process()
    private let errors = Pipe()

    init(port: Int = 0) throws {
        process.executableURL = URL(fileURLWithPath: program("everything"))
        process.arguments = ["--http", "127.0.0.1:\(port)"]
        process.standardError = errors
        try process.run()
        var line: [UInt8] = []
        while let byte = try errors.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0A { line.append(byte) }
        url = String(try #require(String(decoding: line, as: UTF8.self).split(separator: " ").last))
    }

    var port: Int? { URL(string: url)?.port }

    func cut() {
        guard process.isRunning else { return }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit { cut() }
}

@Suite(.timeLimit(.minutes(1))) struct ListenTests {
    private func server(maxListeners: Int? = nil) -> Server {
        let app = Server("test", maxListeners: maxListeners)
        app.tool("t") { "t" }
        app.resource("a://one", value: "1")
        app.resource("a://many/{n}") { (variables: [String: String]) in variables["n"] ?? "" }
        app.prompt("p") { "p" }
        return app
    }

    private func kind(_ body: () async throws -> Void) async throws -> (kind: String, message: String) {
        do {
            try await body()
            return ("", "")
        } catch let error as TricornError {
            return (error.kind.rawValue, error.message)
        }
    }

    @Test(arguments: revisions, Way.allCases)
    func everyRevisionIsListenedToAlike(revision: String, way: Way) async throws {
        let app = server()
        try await serve(app, way, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(tools: true, uris: ["a://one", "a://many/1"])
            let honoured = listening.honoured
            #expect(honoured.tools && !honoured.prompts && !honoured.resources)
            #expect(honoured.uris == ["a://one", "a://many/1"])
            let changes = Loop(listening)
            let another = try await client.listen(prompts: true, resources: true, uris: ["a://one"])
            let others = Loop(another)
            app.notifyResourceUpdated("a://many/2")
            app.notifyResourceUpdated("a://many/1")
            #expect(await changes.hears(.resourceUpdated(uri: "a://many/1")))
            app.notifyListChanged(.prompt)
            #expect(await others.hears(.promptsListChanged))
            app.notifyListChanged(.resourceTemplate)
            #expect(await others.hears(.resourcesListChanged))
            app.tool("more") { "more" }
            #expect(await changes.hears(.toolsListChanged))
            app.notifyResourceUpdated("a://one")
            #expect(await others.hears(.resourceUpdated(uri: "a://one")))
            #expect(await changes.hears(.resourceUpdated(uri: "a://one")))
            // What one no longer wants, the other still hears.
            another.close()
            #expect(try await others.end() == "")
            #expect(await eventually { app.metrics["listeners"] == (revision == modern ? 1 : 0) })
            try await client.ping()
            app.notifyResourceUpdated("a://one")
            #expect(await changes.hears(.resourceUpdated(uri: "a://one")))
            #expect(await others.hears())
            await client.close()
            #expect(try await changes.end() == "closed")
            #expect(await eventually { app.metrics["listeners"] == 0 && app.metrics["in_flight"] == 0 })
        }
    }

    @Test func aServerThatDiedIsStartedAgainAndListenedToAgain() async throws {
        let script = "echo $$ >&2; exec '\(program("everything"))' --stdio"
        let heard = Event()
        var options = ClientOptions()
        options.onStderr = { line in Task { await heard.set(line) } }
        let client = try await connect(.command("/bin/sh", arguments: ["-c", script]), options)
        let listening = try await client.listen(tools: true)
        let changes = Loop(listening)
        let echo = try await client.callTool("echo", ["text": "before"])
        #expect(echo.text == "before")
        let pid = await heard.value().flatMap { Int32($0) }
        kill(try #require(pid), SIGKILL)
        #expect(await changes.hears(.toolsListChanged))
        let again = try await client.callTool("echo", ["text": "after"])
        #expect(again.text == "after")
        #expect(client.serverInfo?["name"]?.stringValue == "everything")
        #expect(client.transport == "stdio")
        await client.close()
        #expect(try await changes.end() == "closed")
    }

    @Test(arguments: revisions, Way.allCases)
    func leavingTheLoopEndsItAtTheServer(revision: String, way: Way) async throws {
        let app = server(), hooked = Locked([String]())
        app.onSubscribe { uri, subscribed in hooked.with { $0.append("\(uri) \(subscribed)") } }
        try await serve(app, way, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(uris: ["a://one"])
            app.notifyResourceUpdated("a://one")
            for try await change in listening {
                #expect(change.uri == "a://one")
                break
            }
            #expect(await eventually { hooked.with { $0 } == ["a://one true", "a://one false"] })
            #expect(await eventually { app.metrics["listeners"] == 0 && app.metrics["in_flight"] == 0 })
            for try await _ in listening { Issue.record("it has ended") }
            // The connection goes on.
            #expect(try await client.callTool("t").text == "t")
        }
    }

    @Test(arguments: revisions) func cancellingTheTaskEndsIt(revision: String) async throws {
        let app = server()
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(tools: true)
            let changes = Loop(listening)
            app.notifyListChanged(.tool)
            #expect(await changes.hears(.toolsListChanged))
            changes.task.cancel()
            await #expect(throws: CancellationError.self) { try await changes.task.value }
            #expect(await eventually { app.metrics["listeners"] == 0 })
            // Nothing is opened for a task that is cancelled already.
            let late = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await client.listen(tools: true)
            }
            await #expect(throws: CancellationError.self) { try await late.value }
            #expect(await eventually { app.metrics["listeners"] == 0 && client.metrics["awaited"] == 0 })
        }
    }

    @Test(arguments: revisions, Way.allCases)
    func givingUpBeforeTheServerHasAnsweredLeavesNothing(revision: String, way: Way) async throws {
        let app = server(), asked = Event(), answer = Event()
        app.onSubscribe { _, subscribed in
            guard subscribed else { return }
            await asked.set()
            _ = await answer.value()
        }
        try await serve(app, way, ClientOptions(revision: revision)) { client in
            let early = Task { try await client.listen(uris: ["a://one"]) }
            _ = try #require(await asked.value())
            early.cancel()
            await #expect(throws: CancellationError.self) { try await early.value }
            try await client.ping()
            await answer.set()
            #expect(await eventually { app.metrics["listeners"] == 0 && app.metrics["in_flight"] == 0 })
            #expect(await eventually { client.metrics["awaited"] == 0 })
        }
    }

    @Test(arguments: revisions) func whatIsNotTakenIsThereOnce(revision: String) async throws {
        let app = server()
        let one = ServerChange.resourceUpdated(uri: "a://one"), many = ServerChange.resourceUpdated(uri: "a://many/1")
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(uris: ["a://one", "a://many/1"])
            let others = Loop(try await client.listen(uris: ["a://many/1"]))
            for _ in 0..<100 { app.notifyResourceUpdated("a://one") }
            app.notifyResourceUpdated("a://many/1")
            #expect(await others.hears(many))
            // So whoever began to listen before has been told everything.
            let changes = Loop(listening)
            #expect(await changes.hears(one, many))
            app.notifyResourceUpdated("a://one")
            #expect(await changes.hears(one))
        }
    }

    @Test(arguments: revisions) func aWaitMayHaveALimit(revision: String) async throws {
        let app = server()
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(tools: true, prompts: true)
            let late = try await kind { _ = try await listening.next(timeout: .milliseconds(20)) }
            #expect(late.kind == "timeout", "\(late)")
            // It goes on, also after a wait that was cancelled.
            let waiting = Task { try await listening.next() }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await bounded { try await waiting.value } }
            app.notifyListChanged(.tool)
            expect(try await bounded { try await listening.next(timeout: .seconds(60)) }, .toolsListChanged)
            // Several wait, and each change is one's.
            async let one = bounded { try await listening.next() }
            async let other = bounded { try await listening.next(timeout: .seconds(60)) }
            app.notifyListChanged(.tool)
            app.notifyListChanged(.prompt)
            #expect(Set(try await [one, other]) == [.toolsListChanged, .promptsListChanged])
            app.notifyListChanged(.tool)
            for try await change in listening {
                #expect(change == .toolsListChanged)
                break
            }
            #expect(try await listening.next(timeout: .zero) == nil)
            #expect(await eventually { app.metrics["listeners"] == 0 })
            // Who waits hears of the end.
            let last = try await client.listen(tools: true)
            let ending = Task { try await last.next(timeout: .seconds(60)) }
            _ = try await kind { _ = try await last.next(timeout: .milliseconds(20)) }
            last.close()
            expect(try await bounded { try await ending.value }, nil)
        }
    }

    @Test(arguments: revisions) func severalTakeTheChangesInTurns(revision: String) async throws {
        let app = server(), taken = Locked([ServerChange]())
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let listening = try await client.listen(tools: true, prompts: true)
            let loops = (0..<4).map { _ in
                Task { for try await change in listening { taken.with { $0.append(change) } } }
            }
            app.notifyListChanged(.tool)
            app.notifyListChanged(.prompt)
            #expect(await eventually { taken.with { $0.count } >= 2 })
            listening.close()
            for loop in loops { try await bounded { try await loop.value } }
            let all = taken.with { $0 }
            #expect(all.count == 2 && Set(all) == [.toolsListChanged, .promptsListChanged])
        }
    }

    @Test func afterACutEverythingIsSaidToHaveChanged() async throws {
        let uri = "test://watched-resource", heard = Locked([String]())
        var options = ClientOptions(revision: modern)
        options.onListChanged = { kind in heard.with { $0.append(kind.rawValue) } }
        let before = try Fixture()
        let client = try await connect(before.url, options)
        let changes = Loop(try await client.listen(tools: true, uris: [uri]))
        before.cut()
        let after = try Fixture(port: try #require(before.port))
        #expect(await changes.hears(.toolsListChanged, .resourceUpdated(uri: uri)))
        #expect(await eventually { heard.with { $0.count } >= 3 })
        #expect(heard.with { $0.sorted() } == ["prompt", "resource", "tool"])
        // And it goes on.
        _ = try await client.callTool("touch", ["uri": .string(uri)])
        #expect(await changes.hears(.resourceUpdated(uri: uri)))
        await client.close()
        #expect(try await changes.end() == "closed")
        after.cut()
    }

    @Test(arguments: Way.allCases) func aServerThatClosesEndsItInOrder(way: Way) async throws {
        let app = server()
        try await serve(app, way, ClientOptions(revision: modern)) { client in
            let changes = Loop(try await client.listen(tools: true))
            app.close()
            #expect(try await changes.end() == "")
            #expect(await eventually { app.metrics["listeners"] == 0 })
        }
    }

    @Test(arguments: ["2025-06-18", "2025-11-25"]) func theEndOfAConnectionEndsIt(revision: String) async throws {
        let app = server()
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let changes = Loop(try await client.listen(tools: true))
            app.close()
            #expect(try await changes.end() == "closed")
        }
    }

    @Test(arguments: revisions) func whatIsNotOfferedIsNamed(revision: String) async throws {
        let app = Server("test")
        app.tool("t") { "t" }
        try await serve(app, .memory, ClientOptions(revision: revision)) { client in
            let prompts = try await kind { _ = try await client.listen(tools: true, prompts: true) }
            #expect(prompts.kind == "unsupported" && prompts.message.contains("promptsListChanged"))
            let uris = try await kind { _ = try await client.listen(uris: ["a://one"]) }
            #expect(uris.kind == "unsupported" && uris.message.contains("resourceSubscriptions"))
            #expect(try await kind { _ = try await client.listen() }.kind == "misuse")
            await client.close()
            #expect(try await kind { _ = try await client.listen(tools: true) }.kind == "closed")
        }
    }

    @Test(arguments: Way.allCases) func whatTheServerDoesNotKnowIsLeftOut(way: Way) async throws {
        let app = server()
        try await serve(app, way, ClientOptions(revision: modern)) { client in
            let listening = try await client.listen(uris: ["a://one", "b://unknown"])
            #expect(listening.honoured.uris == ["a://one"])
            listening.close()
            listening.close()
        }
    }

    @Test func oneConnectionHasSoManyListeners() async throws {
        let app = server(maxListeners: 2)
        try await serve(app, .memory, ClientOptions(revision: modern)) { client in
            let first = try await client.listen(tools: true), second = try await client.listen(tools: true)
            await expectCode(-32600, containing: "max_listeners") { _ = try await client.listen(tools: true) }
            first.close()
            #expect(await eventually { app.metrics["listeners"] == 1 })
            let third = try await client.listen(prompts: true)
            #expect(app.metrics["listeners"] == 2)
            second.close()
            third.close()
            #expect(await eventually { app.metrics["listeners"] == 0 })
        }
    }

    @Test func whatIsLetGoEnds() async throws {
        let app = server()
        // Its client lives as long as it is listened to.
        var listening: Listening? = try await connect(to: app, ClientOptions(revision: modern)).listen(tools: true)
        #expect(app.metrics["listeners"] == 1 && app.metrics["connections"] == 1)
        app.notifyListChanged(.tool)
        if let listening {
            for try await change in listening {
                #expect(change == .toolsListChanged)
                #expect(app.metrics["listeners"] == 1)
                break
            }
        }
        listening = nil
        #expect(await eventually { app.metrics["listeners"] == 0 && app.metrics["connections"] == 0 })
    }

    @Test(arguments: Way.allCases) func manyThatAreAbandonedLeaveNothing(way: Way) async throws {
        let app = server(maxListeners: 200)
        try await serve(app, way, ClientOptions(revision: modern)) { client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for n in 0..<200 {
                    group.addTask {
                        let listening = try await client.listen(tools: true, uris: ["a://many/\(n)"])
                        app.notifyResourceUpdated("a://many/\(n)")
                        for try await change in listening where change.uri != nil {
                            #expect(change.uri == "a://many/\(n)")
                            break
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(await eventually { app.metrics["listeners"] == 0 && app.metrics["in_flight"] == 0 })
            #expect(await eventually { client.metrics["awaited"] == 0 })
        }
    }

    // MARK: - what was there before

    @Test(arguments: revisions, Way.allCases)
    func handlersOfOlderRevisionsNeedNoChange(revision: String, way: Way) async throws {
        let app = server(), heard = Locked([String]())
        var options = ClientOptions(revision: revision)
        options.onListChanged = { kind in heard.with { $0.append(kind.rawValue) } }
        options.onResourceUpdated = { uri in heard.with { $0.append(uri) } }
        try await serve(app, way, options) { client in
            func expectHeard(_ what: String) async {
                #expect(await eventually { heard.with { !$0.isEmpty } })
                expect(heard.with { $0 }, [what])
                heard.with { $0 = [] }
            }
            app.tool("more") { "more" }
            await expectHeard("tool")
            app.setEnabled(.prompt, named: "p", to: false)
            await expectHeard("prompt")
            app.resource("a://two", value: "2")
            await expectHeard("resource")
            try await client.subscribe("a://one")
            try await client.subscribe("a://many/1")
            app.notifyResourceUpdated("a://one")
            await expectHeard("a://one")
            try await client.unsubscribe("a://one")
            app.notifyResourceUpdated("a://one")
            app.notifyResourceUpdated("a://many/1")
            await expectHeard("a://many/1")
            await client.close()
            #expect(await eventually { app.metrics["listeners"] == 0 })
        }
    }

    @Test(arguments: revisions) func everyNotificationIsHeard(revision: String) async throws {
        let app = server(), heard = Locked([PeerNotification]()), streamed = Locked([PeerNotification]())
        var options = ClientOptions(revision: revision)
        options.onNotification = { notification in heard.with { $0.append(notification) } }
        try await serve(app, .memory, options) { _ in
            app.notifyListChanged(.prompt)
            #expect(await eventually { heard.with { $0.first?.method } == "notifications/prompts/list_changed" })
        }
        // Also by who asks for it later.
        let other = server()
        try await serve(other, .memory, ClientOptions(revision: revision)) { client in
            expect(other.metrics["listeners"], 0)
            let notifications = client.notifications()
            let loop = Task { for await notification in notifications { streamed.with { $0.append(notification) } } }
            #expect(
                await eventually {
                    other.notifyListChanged(.tool)
                    return streamed.with { $0.first?.method } == "notifications/tools/list_changed"
                })
            await client.close()
            await loop.value
            #expect(await eventually { other.metrics["listeners"] == 0 })
        }
    }

    @Test func whoHearsNothingListensToNothing() async throws {
        let app = server()
        var options = ClientOptions(revision: modern)
        options.onLog = { _, _, _ in }
        try await serve(app, .memory, options) { client in
            try await client.ping()
            #expect(app.metrics["listeners"] == 0)
        }
    }
}
