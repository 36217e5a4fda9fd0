import Foundation
import Testing

@testable import Tricorn

private let legacy = "2025-11-25"

/// Requests whose result is fetched when it is there.
@Suite struct TaskTests {
    private let fast = TaskOptions(taskPollInterval: .milliseconds(20))

    private func server(_ go: Event) -> Server {
        let app = Server("test", tasks: fast, onError: { _, _ in })
        app.tool("add", taskSupport: .optional) { (input: Add, _) in input.a + input.b }
        app.tool("wait", taskSupport: .optional) { (_: NoArguments, context) in
            context.setStatus("half way")
            _ = await go.value()
            return context.request?.taskID ?? "no task"
        }
        app.tool("must", taskSupport: .required) { (_: NoArguments, context) in
            context.request?.taskID == nil ? "plain" : "task"
        }
        app.tool("fail", taskSupport: .optional) { () -> String in throw ToolError("broken") }
        app.tool("never") { "plain" }
        return app
    }

    @Test func aTaskCanBeComeBackTo() async throws {
        let go = Event(), app = server(go)
        try await withClient(of: app, ClientOptions(revision: legacy)) { client in
            let task = try await client.callToolTask("wait", ttl: .seconds(60))
            var status = try await task.status()
            #expect(status.status == .working && status.ttl == 60_000)
            while status.statusMessage == nil { status = try await task.status() }
            #expect(status.statusMessage == "half way")
            #expect(try await client.listTasks().map(\.taskId) == [task.id])
            async let seen = task.changes().reduce(into: []) { $0.append($1.status) }
            await go.set()
            #expect(try await bounded { try await client.task(task.id).result().text } == task.id)
            #expect(try await task.wait().status == .completed)
            let changes = try await seen
            #expect(changes.last == .completed)
            await expectCode(-32602, containing: "already") { try await task.cancel() }
            #expect(app.metrics["tasks"] == 1)
        }
    }

    @Test(arguments: eras) func aResultIsWaitedFor(revision: String) async throws {
        let go = Event(), app = server(go), looks = Locked([JSONValue]())
        var options = ClientOptions(revision: revision)
        options.tasks = fast
        options.middleware = [
            Middleware { request, context, next in
                if request.method.hasPrefix("tasks/") {
                    looks.with { $0.append(request.params["_meta"]?["look"] ?? .null) }
                }
                return try await next(request, context)
            }
        ]
        try await withClient(of: app, options) { client in
            let task = try await client.callToolTask("wait", ttl: .seconds(60))
            // Neither a wait that has a limit nor one that is cancelled is anything to the task.
            for limit in [RequestOptions(timeout: .milliseconds(50)), .init(maxTimeout: .milliseconds(50))] {
                do {
                    _ = try await bounded { try await task.result(limit) }
                    Issue.record("answered")
                } catch let error as TricornError {
                    #expect(error.kind == "timeout", "\(error)")
                }
            }
            let waits: [@Sendable () async throws -> Void] = [
                { _ = try await task.result() }, { _ = try await task.wait() },
                { for try await change in task.changes() where change.status.isFinal { return } },
            ]
            for wait in waits {
                let waiting = Task { try await wait() }
                waiting.cancel()
                await #expect(throws: CancellationError.self) { try await bounded { try await waiting.value } }
            }
            #expect(try await task.status().status == .working)
            let texts = (0..<3).map { _ in Task { try await task.result().text } }
            await go.set()
            for text in texts { expect(try await bounded { try await text.value }, try await task.result().text) }
            #expect(try await bounded { try await task.wait(.init(timeout: .seconds(10))).status } == .completed)

            // The options are for each look.
            looks.with { $0 = [] }
            let statuses = try await bounded {
                try await task.changes(.init(meta: ["look": 7])).reduce(into: []) { $0.append($1.status) }
            }
            #expect(statuses == [.completed])
            let seen = looks.with { $0 }
            #expect(!seen.isEmpty && seen.allSatisfy { $0 == 7 }, "\(seen)")
        }
    }

    @Test func aTaskMayBeWantedForEver() async throws {
        let go = Event(), app = server(go)
        try await withClient(of: app, ClientOptions(revision: legacy)) { client in
            let task = try await client.callToolTask("wait", ttl: .seconds(Int64.max))
            #expect(try await task.status().ttl == 24 * 3600 * 1000)
            await go.set()
            #expect(
                try await client.callTool("add", ["a": 1, "b": 2], .init(task: .init(ttl: .seconds(Int64.max)))).text
                    == "3")
        }
        #expect(TaskRequest(ttl: .milliseconds(1500)).json == ["ttl": 1500])
        #expect(TaskRequest(ttl: .seconds(Int64.min)).json["ttl"]?.intValue == -(1 << 43) * 1000)
    }

    @Test func aToolThatMustNotBeATaskIsNotAskedFor() async throws {
        try await withClient(of: server(Event()), ClientOptions(revision: legacy)) { client in
            // Nobody has listed it: the server knows.
            await expectCode(-32601, containing: "never") { _ = try await client.callToolTask("never") }
            _ = try await client.listTools()
            do {
                _ = try await client.callToolTask("never")
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.kind == "unsupported", "\(error)")
            }
        }
    }

    @Test func aTaskCanBeCancelled() async throws {
        let ended = Event()
        let app = Server("test", tasks: fast, onError: { _, _ in })
        app.tool("sleep", taskSupport: .optional) { (_: NoArguments, _) in
            do { try await Task.sleep(for: .seconds(60)) } catch {
                await ended.set("\(type(of: error))")
                throw error
            }
        }
        try await withClient(of: app, ClientOptions(revision: legacy)) { client in
            let task = try await client.callToolTask("sleep")
            #expect(try await task.cancel().status == .cancelled)
            #expect(await ended.value() == "CancellationError")
            do {
                _ = try await bounded { try await task.result() }
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.kind == "cancelled", "\(error)")
            }
            // A call that waits for its task cancels it.
            let call = Task { try await client.callTool("sleep", [:], .init(task: .init(ttl: .seconds(60)))) }
            #expect(await eventually { app.metrics["tasks"] == 2 })
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            let tasks = try await client.tasks().collect()
            let other = try #require(tasks.first { $0.taskId != task.id })
            #expect(try await bounded { try await client.task(other.taskId).wait().status } == .cancelled)
        }
    }

    @Test func aCallMayWaitForItsTask() async throws {
        try await withClient(of: server(Event()), ClientOptions(revision: legacy)) { client in
            let options = RequestOptions(task: .init(ttl: .seconds(5)))
            let sum = try await client.callTool("add", ["a": 1, "b": 2], options)
            #expect(try sum.decode(as: Int.self) == 3)
            #expect(sum.meta?["io.modelcontextprotocol/related-task"]?["taskId"]?.stringValue != nil)
            let failed = try await client.callTool("fail", [:], options)
            #expect(failed.isError && failed.text == "broken")
            let tools = try await client.listTools()
            #expect(tools.map { $0.json["execution"]?["taskSupport"] ?? .null }.last == .null)
            #expect(try await client.callTool("must").text == "task")
            await #expect(throws: TricornError.self) { try await client.callTool("never", [:], options) }
        }
    }

    @Test func withoutTasksThereAreNone() async throws {
        let app = Server("test")
        app.tool("add") { (input: Add, _) in input.a + input.b }
        for revision in eras {
            try await withClient(of: app, ClientOptions(revision: revision)) { client in
                do {
                    _ = try await client.callToolTask("add", ["a": 1, "b": 2])
                    Issue.record("no error")
                } catch let error as TricornError {
                    let why = revision == legacy ? "tasks.requests.tools.call" : "io.modelcontextprotocol/tasks"
                    #expect(error.kind == "unsupported" && error.message.contains(why), "\(error)")
                }
                await #expect(throws: TricornError.self) { try await client.listTasks() }
            }
        }
        await #expect(throws: TricornError.self) {
            try await connect(to: Server("test", tasks: TaskOptions(maxTasks: 0)))
        }
    }

    @Test func questionsMayBeTasks() async throws {
        let app = Server("test", onError: { _, _ in })
        app.tool("ask") { (_: NoArguments, context) in
            try await context.sample("x", maxTokens: 1, .init(task: .init(ttl: .seconds(60)))).text
        }
        var options = ClientOptions(revision: legacy)
        options.sampling = { _, context in context.request?.taskID == nil ? "plain" : "task" }
        try await withClient(of: app, options) { client in
            let text = try await client.callTool("ask").text
            #expect(text.contains("tasks.requests.sampling.createMessage"), "\(text)")
        }
        options.tasks = fast
        try await withClient(of: app, options) { client in
            expect(try await bounded { try await client.callTool("ask").text }, "task")
        }
    }
}
