import Foundation
import Testing

@testable import Tricorn

/// Callbacks that tell the user something without being asked for it.
@Suite(.serialized) struct CallbackTests {
    /// A server in sh: it says `begin`, answers the first request in revision 2025-11-25 and does `rest` for further ones.
    private func script(begin: String, rest: String = "") -> ConnectionTarget {
        let opening =
            #""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}"#
        return .command(
            "/bin/sh",
            arguments: [
                "-c",
                #"""
                \#(begin)
                while read -r line; do
                    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
                    case "$line" in
                    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',\#(opening)}' ;;
                    *'"id"'*) \#(rest.isEmpty ? ":" : rest) ;;
                    esac
                done
                """#,
            ])
    }

    @Test func aServerThatFailsToStartIsHeard() async throws {
        let heard = Event()
        var options = ClientOptions(revision: "2025-11-25")
        options.onStderr = { line in Task { await heard.set(line) } }
        await #expect(throws: TricornError.self) {
            try await connect(.command("/bin/sh", arguments: ["-c", "echo no such database >&2; exit 3"]), options)
        }
        #expect(await heard.value() == "no such database")
    }

    @Test func aCommandLineIsHeard() async throws {
        let heard = Event()
        var options = ClientOptions(revision: "2025-11-25")
        options.onStderr = { line in Task { await heard.set(line) } }
        await #expect(throws: TricornError.self) { try await connect("/bin/sh -c 'echo in one line >&2'", options) }
        #expect(await heard.value() == "in one line")
    }

    @Test func notificationsAreHeardFromTheStart() async throws {
        let heard = Event()
        var options = ClientOptions(revision: "2025-11-25")
        options.onNotification = { note in
            Task { await heard.set("\(note.method) \(note.params?["data"]?.stringValue ?? "")") }
        }
        let early = #"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"early"}}"#
        let client = try await connect(script(begin: "echo '\(early)'"), options)
        #expect(await heard.value() == "notifications/message early")
        await client.close()
    }

    @Test func warningsAreHeard() async throws {
        let heard = Event()
        var options = ClientOptions(revision: "2026-07-28")
        options.onWarning = { text in Task { await heard.set(text) } }
        // After its first answer the server asks, which this revision does not let it.
        let asks = #"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
        let line = "'\(program("everything"))' --stdio | { read -r line; echo \"$line\"; echo '\(asks)'; cat; }"
        let client = try await connect(.command("/bin/sh", arguments: ["-c", line]), options)
        #expect(try await client.callTool("add", ["a": 1, "b": 2]).text == "3")
        #expect(try #require(await heard.value()).contains("ping"))
        await client.close()
    }

    @Test func aResultWithoutContentIsEmpty() async throws {
        let target = script(begin: "", rest: #"echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"isError":true}}'"#)
        let client = try await connect(target, ClientOptions(revision: "2025-11-25"))
        let result = try await client.callTool("any")
        #expect(result.content == [])
        #expect(result.isError)
        await client.close()
    }

    @Test func handlersErrorsAreHeard() async throws {
        struct Trouble: Error {}
        let heard = Event()
        let app = Server("test", onError: { error, tool in Task { await heard.set("\(tool): \(type(of: error))") } })
        app.tool("fail") { () -> String in throw Trouble() }
        app.tool("refuse") { () -> String in throw ToolError("no") }
        try await withClient(of: app) { client in
            let refused = try await client.callTool("refuse"), failed = try await client.callTool("fail")
            #expect(refused.text == "no")
            #expect(failed.text == "tool \"fail\" failed: Trouble")
        }
        #expect(await heard.value() == "fail: Trouble")
    }

    @Test func aResultThatDoesNotFitIsHeard() async throws {
        let heard = Event()
        let app = Server("test", onError: { error, tool in Task { await heard.set("\(tool): \(error)") } })
        app.tool("wrong", outputSchema: ["type": "object", "required": ["c"]]) { () in Add(a: 1, b: 2) }
        try await withClient(of: app) { client in
            let result = try await client.callTool("wrong")
            #expect(result.isError && result.text.contains("outputSchema"))
        }
        let told = try #require(await heard.value())
        #expect(told.hasPrefix("wrong: misuse: the result does not fit") && told.contains("\"c\""), "\(told)")
    }

    @Test func aCallbackMayWaitForTheServer() async throws {
        let app = Server("test")
        app.tool("hello") { "hello" }
        let answered = Event()
        let serving = Task {
            try await app.serveHTTP(port: 0) { url in
                let done = DispatchSemaphore(value: 0)
                Task {
                    defer { done.signal() }
                    let client = try await connect(url)
                    await answered.set(try await client.callTool("hello").text)
                    await client.close()
                }
                if done.wait(timeout: .now() + 20) == .timedOut { Task { await answered.set("timed out") } }
            }
        }
        #expect(await answered.value(within: .seconds(30)) == "hello")
        app.close()
        try await bounded { try await serving.value }
    }

    @Test func onlyTheNewestProgressWaitsForASlowCallback() async throws {
        let seen = Locked([Double]()), begun = Event(), goOn = DispatchSemaphore(value: 0)
        let reports = Reports { report in
            let count = seen.with {
                $0.append(report.progress)
                return $0.count
            }
            guard count == 1 else { return }
            Task { await begun.set() }
            // The first one waits until all others have arrived.
            _ = goOn.wait(timeout: .now() + 20)
        }
        reports.tell(.init(progress: 1))
        #expect(await begun.value() != nil)
        for step in 2...4000 { reports.tell(.init(progress: Double(step))) }
        goOn.signal()
        await reports.finish()
        let expected: [Double] = [1.0] + (2977...4000).map { Double($0) }
        #expect(seen.with { $0 } == expected)
    }

    @Test func blockedProgressCallbacksStopNobodyElse() async throws {
        let app = Server("test")
        app.tool("count") { (_: NoArguments, context) in
            context.progress(1)
            return "counted"
        }
        // More than tasks have threads.
        let calls = ProcessInfo.processInfo.activeProcessorCount + 1
        let blocked = Locked(0), late = Locked(0), all = Event(), goOn = DispatchSemaphore(value: 0)
        let options = RequestOptions(onProgress: { _ in
            let count = blocked.with {
                $0 += 1
                return $0
            }
            if count == calls { Task { await all.set() } }
            if goOn.wait(timeout: .now() + 20) == .timedOut { late.with { $0 += 1 } }
        })
        try await withClient(of: app) { client in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 1...calls { group.addTask { try await client.callTool("count", [:], options).text } }
                #expect(await all.value(within: .seconds(30)) != nil)
                try await client.ping()
                for _ in 1...calls { goOn.signal() }
                for try await text in group { #expect(text == "counted") }
            }
        }
        #expect(late.with { $0 } == 0)
    }

    @Test func aPeerThatIsGoneEndsNoProcess() {
        _ = Server("test")
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        close(ends[0])
        var byte: UInt8 = 0
        #expect(write(ends[1], &byte, 1) == -1)
        #expect(errno == EPIPE)
        close(ends[1])
    }

    @Test func aSignalIsTakenOnce() async throws {
        let stopped = Event()
        let signals = Signals { _ in Task { await stopped.set() } }
        kill(getpid(), SIGTERM)
        #expect(await stopped.value() != nil)
        var waiting = pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&waiting, 1, 0) == 0)
        #expect(signals.stop() == SIGTERM)
        #expect(signals.stop() == nil)

        // Several at once share it. Here, and not beside this test: a signal that nobody catches ends the process.
        let (first, second) = (Event(), Event())
        let one = Signals { _ in Task { await first.set() } }
        let two = Signals { _ in Task { await second.set() } }
        kill(getpid(), SIGTERM)
        #expect(await first.value() != nil)
        #expect(await second.value() != nil)
        #expect(one.stop() == nil, "the other is still there")
        #expect(two.stop() == SIGTERM)
    }

    @Test func aHandlerSeesTheHeaders() async throws {
        let app = Server("test")
        app.tool("trace") { (_: NoArguments, context) in context.request?.headers["x-trace"] ?? "none" }
        let listening = Event()
        let serving = Task { try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } } }
        let url = try #require(await listening.value())
        let client = try await connect(.url(url, headers: ["X-Trace": "a7"]))
        #expect(try await client.callTool("trace").text == "a7")
        await client.close()
        app.close()
        try await bounded { try await serving.value }
        let request = RequestInfo(json: ["headers": [["X-Twice", "1"], ["x-twice", "2"]]])
        #expect(request.headers == ["x-twice": "1, 2"])
    }
}
