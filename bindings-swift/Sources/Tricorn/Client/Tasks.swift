internal import TricornCore

// Tasks: requests whose result is fetched when it is there. In 2025-11-25 (experimental) either side asks the other for
// them, in 2026-07-28 a server answers with them (extension `io.modelcontextprotocol/tasks`).

/// Says that a tool may (`.optional`), must (`.required`) or must not (`.forbidden`) be called as a task.
public typealias TaskSupport = Types.ToolExecution.TaskSupport

extension TaskOptions {
    var json: JSONValue { text.json }
}

/// That a request is to run as a task.
public struct TaskRequest: Sendable, Hashable {
    /// Time that the task and its result are wanted, from now on; the peer may decide otherwise, and does when nil.
    public var ttl: Duration?

    /// A task that lives for so long.
    public init(ttl: Duration? = nil) { self.ttl = ttl }

    /// In seconds; milliseconds of more are not exact everywhere.
    private static let longest: Int64 = 1 << 43

    /// In milliseconds, as the protocol has it.
    var json: JSONValue {
        guard let (seconds, attoseconds) = ttl?.components else { return [:] }
        let within = min(max(seconds, -Self.longest), Self.longest)
        return ["ttl": .int(Int(within) * 1000 + Int(attoseconds / 1_000_000_000_000_000))]
    }
}

extension Types.TaskStatus {
    /// True if nothing will change any more.
    public var isFinal: Bool { [.completed, .failed, .cancelled].contains(self) }
}

extension Context {
    /// Says what the call is doing, for who looks at its task; nothing when it runs as none.
    public func setStatus(_ message: String) { _ = try? Host.shared.bridge.setStatus(key: key, message: message) }

    /// Goes on as a task (revision 2026-07-28, extension `io.modelcontextprotocol/tasks`): the client is answered with the
    /// task at once, may go away, and comes back for the result; what is asked from now on waits in the task until then.
    /// False when the client does not declare the extension, or the server has no `tasks`: nothing has changed then. A tool
    /// that is always to do so says `taskSupport`.
    ///
    /// ```swift
    /// let name = try await context.elicit("Who?", as: Name.self).content
    /// try context.runAsTask()
    /// try await Task.sleep(for: .seconds(3600))
    /// ```
    /// Throws `TricornError.rpc` when too many tasks are being worked on, `misuse` when questions of the request wait for
    /// their answers, and `cancelled` when the call is over.
    @discardableResult
    public func runAsTask() throws -> Bool { try core { try Host.shared.bridge.runAsTask(key: key) } }
}

// MARK: - clients

extension Client {
    /// Calls a tool as a task, which is there when this returns: its result can be had later. In 2026-07-28 the server
    /// decides whether it is one: a call that was answered at once is a task that is over.
    ///
    /// To wait for the result at once, and cancel the task with the call: `callTool` with `RequestOptions.task`. A tool
    /// that was listed as one that must be a task is called so by `callTool` in any case.
    ///
    /// - Parameter ttl: how long the task and its result are wanted; the server may decide otherwise, and in 2026-07-28 does.
    ///
    /// Throws `TricornError.unsupported`, and sends nothing, when the server has no tasks, or listed the tool as one that
    /// must not be a task, and in 2026-07-28 when this client has no option `tasks`.
    public func callToolTask(
        _ name: String, _ arguments: some Encodable, ttl: Duration? = nil, _ options: RequestOptions = .init()
    ) async throws -> TaskHandle {
        try await callToolTask(name, try JSONValue(encoding: arguments), ttl: ttl, options)
    }

    /// Calls a tool as a task, which is there when this returns: its result can be had later.
    public func callToolTask(
        _ name: String, _ arguments: JSONValue = [:], ttl: Duration? = nil, _ options: RequestOptions = .init()
    ) async throws -> TaskHandle {
        let capability = "tasks.requests.tools.call", isModern = era == "modern"
        guard isModern || capabilities["tasks"]?["requests"]?["tools"]?["call"] != nil else {
            throw TricornError.unsupported(
                "\"tools/call\" as a task: the server does not declare the capability \"\(capability)\"")
        }
        var options = options
        let wanted = ttl.map { TaskRequest(ttl: $0) } ?? options.task ?? TaskRequest()
        // Whether both sides declare the extension, the core says.
        options.task = isModern ? wanted : nil
        let params: JSONValue = ["name": .string(name), "arguments": arguments, "task": wanted.json]
        let result = try await request("tools/call", params, options)
        guard let id = result["task"]?["taskId"]?.stringValue else {
            throw TricornError.peerMisbehaved("the server declares tasks, and answered the call without one")
        }
        return TaskHandle(client: self, id: id, created: result)
    }

    /// A task by its id, to come back to it. Nothing is sent.
    public func task(_ id: String) -> TaskHandle { TaskHandle(client: self, id: id, created: nil) }

    /// All tasks that the server keeps of this session; as many requests as the listing has pages.
    public func listTasks(_ options: RequestOptions = .init()) async throws -> [Types.Task] {
        try await tasks(options).collect()
    }

    /// The tasks, page by page as they are asked for.
    public func tasks(_ options: RequestOptions = .init()) -> Listing<Types.Task> {
        Listing(client: self, method: "tasks/list", member: "tasks", options: options) { Types.Task(checked: $0) }
    }
}

/// A task of the server. Letting it go does nothing to the task.
public struct TaskHandle: Sendable {
    let client: Client
    /// `Client.task` comes back to it with this, for as long as the session lives; in 2026-07-28 over HTTP any client of the
    /// same user does, for as long as the task lives.
    public let id: String
    /// The server's answer to the call, as it came: a `CreateTaskResult`, whose `_meta` may have something for the
    /// model meanwhile (`io.modelcontextprotocol/model-immediate-response`). Nil of what `Client.task` gives.
    public let created: JSONValue?

    private func ask(_ method: String, _ options: RequestOptions) async throws -> JSONValue {
        try await client.request(method, ["taskId": .string(id)], options)
    }

    private func task(_ method: String, _ options: RequestOptions) async throws -> Types.Task {
        let result = try await ask(method, options)
        do {
            return try Types.Task(json: result)
        } catch let error as DecodingError {
            throw TricornError.peerMisbehaved("the result of \(method): \(error.text(subject: "member"))")
        }
    }

    /// Its state. Throws `TricornError.rpc` with −32602 when it has expired, here and below.
    public func status(_ options: RequestOptions = .init()) async throws -> Types.Task {
        try await task("tasks/get", options)
    }

    /// Cancels it. `TricornError.rpc` with −32602 when it is finished, too, but not in 2026-07-28, where it stays as it is.
    @discardableResult
    public func cancel(_ options: RequestOptions = .init()) async throws -> Types.Task {
        try await task("tasks/cancel", options)
    }

    /// Its result, when it is there: waits without a limit unless the options have one. A connection that breaks off meanwhile
    /// is nothing to the task. Cancelling the wait does not cancel the task.
    ///
    /// Throws the error that the call would have had, and `TricornError.cancelled` when the task was.
    public func result(_ options: RequestOptions = .init()) async throws -> CallToolResult {
        var options = options
        options.untilOver = true
        let params = JSONWriter()
        params.append(["taskId": .string(id)])
        return CallToolResult(try await client.perform("tasks/result", params, options))
    }

    /// Waits until it is finished. Looks as often as the server says, and at once when the server tells of a change; a
    /// question of the task is answered meanwhile. The options are for each look.
    public func wait(_ options: RequestOptions = .init()) async throws -> Types.Task {
        var options = options
        options.untilOver = true
        return try await task("tasks/get", options)
    }

    /// Its state now, and each change that is noticed until it is finished. Looks as often as the server says, and at
    /// once when the server tells of a change; a question of the task is answered meanwhile. The options are for each
    /// look.
    public func changes(_ options: RequestOptions = .init()) -> TaskChanges {
        TaskChanges(handle: self, options: options)
    }

    /// The next change of those that have this number.
    fileprivate func next(_ number: UInt64, _ options: RequestOptions) async throws -> Types.Task {
        var options = options
        options.follows = number
        return try await task("tasks/get", options)
    }
}

/// The changes of a task.
public struct TaskChanges: AsyncSequence, Sendable {
    /// The task in its new state.
    public typealias Element = Types.Task

    let handle: TaskHandle
    let options: RequestOptions

    /// From how the task is now.
    public func makeAsyncIterator() -> Iterator { Iterator(handle: handle, options: options) }

    /// Goes through the changes.
    public struct Iterator: AsyncIteratorProtocol {
        /// A task that the core follows, for as long as somebody goes through its changes.
        private final class Followed: Sendable {
            let handle: TaskHandle
            let number = Host.shared.operation()

            init(_ handle: TaskHandle) { self.handle = handle }

            deinit { try? handle.client.core.endListening(listener: number) }
        }

        private let followed: Followed
        private let options: RequestOptions
        private var isOver = false

        init(handle: TaskHandle, options: RequestOptions) {
            followed = Followed(handle)
            self.options = options
        }

        /// The next change; nil after the end of the task.
        public mutating func next() async throws -> Types.Task? {
            if isOver { return nil }
            let task = try await followed.handle.next(followed.number, options)
            isOver = task.status.isFinal
            return task
        }
    }
}
