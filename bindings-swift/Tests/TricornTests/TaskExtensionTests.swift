import Foundation
import Testing

@testable import Tricorn

private let modern = "2026-07-28"
private let fast = TaskOptions(taskPollInterval: .milliseconds(20))

/// A client of 2026-07-28 that writes its requests by hand.
private struct Caller: Sendable {
    private let endpoint: HTTPEndpoint
    /// True if it takes tasks.
    private let declares: Bool

    init(_ app: Server, declares: Bool = true) throws {
        endpoint = try app.httpEndpoint()
        self.declares = declares
    }

    /// The whole answer.
    func send(_ method: String, _ name: String, _ params: JSONValue) async throws -> JSONValue {
        var params = params
        let extensions: JSONValue = declares ? ["io.modelcontextprotocol/tasks": [:]] : [:]
        params["_meta"] = [
            "io.modelcontextprotocol/protocolVersion": .string(modern),
            "io.modelcontextprotocol/clientCapabilities": ["elicitation": [:], "extensions": extensions],
        ]
        let body: JSONValue = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": params]
        let request = HTTPRequest(
            method: "POST",
            headers: [
                ("host", "localhost"), ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"), ("mcp-protocol-version", modern),
                ("mcp-method", method), ("mcp-name", name),
            ], body: Array(body.description.utf8))
        return try await bounded { [endpoint] in
            var text = ""
            for try await part in try await endpoint.handle(request).body { text += part }
            let event = text.split(whereSeparator: \.isNewline).last { $0.hasPrefix("data: {") }
            return try JSONValue(parsing: event.map { String($0.dropFirst(6)) } ?? text)
        }
    }

    /// The result of a call.
    func call(_ tool: String, _ more: JSONObject = [:]) async throws -> JSONValue {
        var params: JSONValue = ["name": .string(tool), "arguments": [:]]
        for (name, value) in more { params[name] = value }
        let answer = try await send("tools/call", tool, params)
        return try #require(answer["result"], "\(answer)")
    }

    /// The id of the task that a call is answered with.
    func start(_ tool: String, _ more: JSONObject = [:]) async throws -> String {
        let result = try await call(tool, more)
        #expect(result["resultType"] == "task", "\(result)")
        return try #require(result["taskId"]?.stringValue, "\(result)")
    }

    /// The result of a request about a task.
    func task(_ method: String, _ id: String, _ more: JSONObject = [:]) async throws -> JSONValue {
        var params: JSONValue = ["taskId": .string(id)]
        for (name, value) in more { params[name] = value }
        let answer = try await send(method, id, params)
        return try #require(answer["result"], "\(answer)")
    }

    /// The task, as soon as it is so.
    func task(_ id: String, is status: JSONValue) async throws -> JSONValue {
        try await bounded {
            while true {
                let task = try await self.task("tasks/get", id)
                if task["status"] == status { return task }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    /// Answers what the task asks, or a round: each form with its message as its only member.
    static func answers(to asked: JSONValue) throws -> JSONValue {
        var answers: JSONValue = [:]
        for (key, request) in try #require(asked["inputRequests"]?.objectValue, "\(asked)") {
            let params = try #require(request["params"])
            let name = try #require(params["requestedSchema"]?["required"]?[0]?.stringValue)
            answers[key] = ["action": "accept", "content": [name: params["message"] ?? .null]]
        }
        return answers
    }

    /// Answers what the task asks, and gives it as it is when it is over.
    func answer(_ id: String, _ asked: JSONValue) async throws -> JSONValue {
        let ack = try await task("tasks/update", id, ["inputResponses": try Self.answers(to: asked)])
        #expect(ack["resultType"] == "complete", "\(ack)")
        return try await task(id, is: "completed")
    }

    /// The text of a result, or of a task's.
    static func text(_ result: JSONValue) -> String? {
        (result["result"] ?? result)["content"]?[0]?["text"]?.stringValue
    }
}

/// Tools that a server answers with a task (extension `io.modelcontextprotocol/tasks`).
@Suite struct TaskExtensionTests {
    @Test func aToolAsksInItsTask() async throws {
        let app = Server("test", tasks: fast), runs = Count()
        app.middleware { request, context, next in
            context.values[String.self] = "kept"
            return try await next(request, context)
        }
        app.tool("ask", taskSupport: .optional) { (_: NoArguments, context) in
            runs.more()
            let (a, b) = try await context.askAll(
                .elicit("one", schema: form("a")), .elicit("two", schema: form("b")))
            let isTask = context.request?.taskID != nil, value = context.values[String.self] ?? ""
            return "\(a.content?["a"] ?? .null) \(b.content?["b"] ?? .null) \(isTask) \(value)"
        }
        let client = try Caller(app)
        let id = try await client.start("ask")
        let asked = try await client.task(id, is: "input_required")
        let requests = try #require(asked["inputRequests"]?.objectValue)
        #expect(requests.count == 2 && requests.values.allSatisfy { $0["method"] == "elicitation/create" }, "\(asked)")
        #expect(Caller.text(try await client.answer(id, asked)) == #""one" "two" true kept"#)
        #expect(runs.value == 1)
        // Who takes no tasks is asked in rounds.
        let other = try Caller(app, declares: false)
        let round = try await other.call("ask")
        #expect(round["resultType"] == "input_required", "\(round)")
        let last = try await other.call("ask", try Self.next(round))
        #expect(Caller.text(last) == #""one" "two" false kept"#, "\(last)")
        app.close()
    }

    @Test func whoKeepsItsRoundsAsksInItsTaskToo() async throws {
        let app = Server("test", tasks: fast)
        app.tool("ask", taskSupport: .required) { (_: NoArguments, context) in
            guard let answer = try context.inputResponses["q"] else {
                throw InputRequired(["q": Question.elicit("one", schema: form("a"))], state: 7)
            }
            return "\(answer["content"]?["a"] ?? .null) \(try context.requestState ?? .null)"
        }
        let client = try Caller(app)
        let id = try await client.start("ask")
        let done = try await client.answer(id, try await client.task(id, is: "input_required"))
        #expect(Caller.text(done) == #""one" 7"#, "\(done)")
        app.close()
    }

    @Test func aHandlerGoesOnAsATask() async throws {
        let app = Server("test", tasks: fast), runs = Count(), around = Locked([JSONValue]())
        app.middleware { request, context, next in
            context.values[String.self] = request.method
            let result = try await next(request, context)
            if request.method == "tools/call" { around.with { $0.append(result["resultType"] ?? .null) } }
            return result
        }
        app.tool("ask") { (_: NoArguments, context) in
            runs.more()
            let name = try await context.elicit("name?", schema: form("name")).content?["name"] ?? .null
            let isTask = try context.runAsTask(), still = try context.runAsTask()
            context.setStatus("half way")
            let age = try await context.elicit("age?", schema: form("age")).content?["age"] ?? .null
            return "\(name) \(age) \(isTask) \(still) \(context.values[String.self] ?? "")"
        }
        let client = try Caller(app)
        let round = try await client.call("ask")
        #expect(round["resultType"] == "input_required", "\(round)")
        let id = try await client.start("ask", try Self.next(round))
        let asked = try await client.task(id, is: "input_required")
        #expect(asked["statusMessage"] == "half way", "\(asked)")
        let done = try await client.answer(id, asked)
        #expect(Caller.text(done) == #""name?" "age?" true true tools/call"#, "\(done)")
        // What is around the handler has seen the task, and not its end.
        let seen = around.with { $0 }
        #expect(runs.value == 2 && seen == ["input_required", "task"], "\(seen)")
        app.close()
    }

    @Test func whoTakesNoTaskGetsNone() async throws {
        let pairs: [(TaskOptions?, Bool)] = [(fast, false), (nil, true)]
        for (options, declares) in pairs {
            let app = Server("test", tasks: options)
            app.tool("plain") { (_: NoArguments, context) in "\(try context.runAsTask())" }
            let result = try await Caller(app, declares: declares).call("plain")
            #expect(Caller.text(result) == "false", "\(result)")
            app.close()
        }
        let app = Server("test", tasks: fast)
        app.tool("plain") { (_: NoArguments, context) in "\(try context.runAsTask())" }
        for revision in eras {
            try await withClient(of: app, ClientOptions(revision: revision)) { client in
                expect(try await client.callTool("plain").text, "false")
            }
        }
    }

    @Test(arguments: ["at once", "later", "at a question", "too late"])
    func cancellingATaskCancelsItsHandler(when: String) async throws {
        let failed = Event(), started = Event(), ended = Event()
        let app = Server("test", tasks: fast, onError: { error, _ in Task { await failed.set("\(error)") } })
        app.tool("wait", taskSupport: when == "at once" ? .optional : nil) { (_: NoArguments, context) in
            if when != "at once" { try context.runAsTask() }
            await started.set()
            do {
                if when == "at a question" { _ = try await context.elicit("a?", schema: form("a")) }
                while when == "too late" {
                    try context.runAsTask()
                    await Task.yield()
                }
                try await Task.sleep(for: .seconds(60))
            } catch {
                await ended.set("\(error is CancellationError || (error as? TricornError)?.kind == "cancelled")")
                throw error
            }
            return "slept"
        }
        let client = try Caller(app)
        let id = try await client.start("wait")
        #expect(await started.value() != nil)
        if when == "at a question" { _ = try await client.task(id, is: "input_required") }
        #expect(try await client.task("tasks/cancel", id)["resultType"] == "complete")
        #expect(await ended.value() == "true")
        let cancelled = try await client.task("tasks/get", id)
        #expect(cancelled["status"] == "cancelled", "\(cancelled)")
        #expect(await failed.value(within: .milliseconds(50)) == nil)
        app.close()
    }

    @Test func whatCannotBecomeATaskSaysWhy() async throws {
        let kinds = Locked([String]()), kept = Locked(Context?.none)
        @Sendable func attempt(_ context: Context) {
            do { try context.runAsTask() } catch {
                kinds.with { $0.append((error as? TricornError)?.kind.rawValue ?? "\(error)") }
            }
        }
        let app = Server("test", tasks: TaskOptions(maxTasks: 1), onError: { _, _ in })
        app.tool("asked") { (_: NoArguments, context) in
            kept.with { $0 = context }
            let answer = try? await context.elicit("a?", schema: form("a"))
            if answer == nil { attempt(context) }
            return answer?.action.rawValue ?? "none"
        }
        app.tool("wait") { (_: NoArguments, context) in
            try context.runAsTask()
            try await Task.sleep(for: .seconds(60))
            return "slept"
        }
        let client = try Caller(app)
        // Its question is what the client is told.
        let round = try await client.call("asked")
        #expect(round["resultType"] == "input_required" && kinds.with { $0 } == ["misuse"], "\(round)")
        #expect(Caller.text(try await client.call("asked", try Self.next(round))) == "accept")
        attempt(try #require(kept.with { $0 }))
        #expect(kinds.with { $0 } == ["misuse", "cancelled"])
        _ = try await client.start("wait")
        let refused = try await client.send("tools/call", "wait", ["name": "wait", "arguments": [:]])
        #expect(refused["error"]?["message"]?.stringValue?.contains("max_tasks") == true, "\(refused)")
        app.close()
    }

    @Test(arguments: ["memory", "http"]) func clientsFollowTasks(way: String) async throws {
        let app = Server("test", tasks: fast), go = Event(), listening = Event()
        app.tool("plain") { "at once" }
        app.tool("ask", taskSupport: .required) { (_: NoArguments, context) in
            "\(try await context.elicit("a?", schema: form("a")).content?["a"] ?? .null)"
        }
        app.tool("wait", taskSupport: .optional) { (_: NoArguments, context) in
            context.setStatus("waiting")
            return await go.value() ?? "too long"
        }
        let user = Interviewee()
        var options = user.options(modern)
        options.tasks = fast
        let serving = Task {
            guard way == "http" else { return }
            try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } }
        }
        let client =
            switch way {
            case "http": try await connect(try #require(await listening.value()), options)
            default: try await connect(to: app, options)
            }
        #expect(try await bounded { try await client.callTool("ask").text } == #""<a>""#)
        let task = try await client.callToolTask("wait", ttl: .seconds(60))
        var seen: [String] = []
        for try await change in task.changes() {
            seen.append("\(change.status.rawValue) \(change.statusMessage ?? "")")
            if change.statusMessage == "waiting" { await go.set("done") }
        }
        #expect(seen.last?.hasPrefix("completed") == true && seen.contains("working waiting"), "\(seen)")
        #expect(try await client.task(task.id).result().text == "done")
        #expect(try await task.cancel().status == .completed)
        let other = try await client.callToolTask("ask")
        #expect(try await bounded { try await other.wait().status } == .completed)
        #expect(try await other.result().text == #""<a>""#)
        let third = try await client.callToolTask("ask")
        let statuses = try await bounded {
            try await third.changes().reduce(into: [Types.TaskStatus]()) { $0.append($1.status) }
        }
        #expect(statuses.last == .completed, "\(statuses)")
        #expect(user.asked == ["a?", "a?", "a?"])
        let over = try await client.callToolTask("plain")
        #expect(try await over.status().status == .completed)
        #expect(try await over.result().text == "at once")
        await client.close()
        app.close()
        try await bounded { try await serving.value }
    }

    @Test func tasksAreListenedToByTheirIDs() async throws {
        let app = Server("works", tasks: fast), go = Event()
        app.tool("work", taskSupport: .required) { await go.value() ?? "too long" }
        app.tool("wait", taskSupport: .required) {
            try await Task.sleep(for: .seconds(60))
            return "slept"
        }
        var options = ClientOptions(revision: modern)
        options.tasks = fast
        let client = try await connect(to: app, options)
        let (task, other) = (try await client.callToolTask("work"), try await client.callToolTask("wait"))
        let changes = try await client.listen(tasks: [task.id])
        #expect(changes.honoured.tasks == [task.id] && changes.honoured.extensions.isEmpty)
        await go.set("done")
        var last: Types.Task?
        while last?.status.isFinal != true {
            let change = try await changes.next(timeout: .seconds(20))
            guard case .taskChanged(let task) = change else {
                Issue.record("\(String(describing: change))")
                break
            }
            last = task
        }
        #expect(last?.taskId == task.id && last?.status == .completed)
        #expect("\(last?.additional["result"] ?? .null)".contains("done"))
        changes.close()
        #expect(try await client.listen(tasks: [other.id, "unknown"]).honoured.tasks == [other.id])
        let wrong = await failure { try await client.listen(extensions: ["taskIds": ["x"]]) }
        #expect(wrong?.message.contains("say tools, prompts, resources, uris or tasks") == true)
        await client.close()
        let unable = try await connect(to: app, ClientOptions(revision: modern))
        let error = await failure { try await unable.listen(tasks: ["x"]) }
        #expect(error?.kind == "unsupported", "\(String(describing: error))")
        await unable.close()
        app.close()
    }

    /// Members that the next request of a round adds.
    private static func next(_ round: JSONValue) throws -> JSONObject {
        var more: JSONObject = ["inputResponses": try Caller.answers(to: round)]
        more["requestState"] = round["requestState"]
        return more
    }
}
