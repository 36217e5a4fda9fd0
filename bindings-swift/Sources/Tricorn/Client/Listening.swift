internal import TricornCore

/// A change at the server. There may be more kinds in the future, so have a `default` in a `switch`.
public enum ServerChange: Sendable, Hashable {
    /// The list of tools has changed.
    case toolsListChanged
    /// The list of prompts has changed.
    case promptsListChanged
    /// The lists of resources and resource templates have changed.
    case resourcesListChanged
    /// The resource with this URI, or a part of the one that was asked for, has changed.
    case resourceUpdated(uri: String)
    /// A task as it is now; of what is not taken the last of each is there. What else the server says of it, `result`,
    /// `error` or `inputRequests`, is in `additional`.
    case taskChanged(Types.Task)
    /// A notification of an extension that the client declares. After the stream broke off and was opened again, the
    /// server's acknowledgement is one, too (`notifications/subscriptions/acknowledged`): others, and changes of tasks, may
    /// have been missed.
    case extensionNotification(method: String, params: JSONObject)

    /// Nil for one that this version knows nothing of.
    init?(_ json: JSONValue) {
        if json["method"] == "notifications/tasks" {
            guard let task = json["params"].flatMap({ try? Types.Task(json: $0) }) else { return nil }
            self = .taskChanged(task)
            return
        }
        if let method = json["method"]?.stringValue, let params = json["params"]?.objectValue {
            self = .extensionNotification(method: method, params: params)
            return
        }
        switch json["method"]?.stringValue {
        case "notifications/tools/list_changed": self = .toolsListChanged
        case "notifications/prompts/list_changed": self = .promptsListChanged
        case "notifications/resources/list_changed": self = .resourcesListChanged
        case "notifications/resources/updated": self = .resourceUpdated(uri: json["uri"]?.stringValue ?? "")
        default: return nil
        }
    }

    /// The URI of the resource that has changed.
    public var uri: String? { if case .resourceUpdated(let uri) = self { uri } else { nil } }
}

/// The changes that a client listens to, in the order in which they came; see `Client.listen`. Of what is not taken, each
/// is there once; notifications of extensions all are, and when 1,024 wait the listening ends with `TricornError.closed`.
///
/// It is gone through once. It ends when the loop is left, when the task is cancelled (`CancellationError`), by `close`,
/// and when nobody holds it any more: the server is told, and the client has no more of it.
public final class Listening: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = ServerChange

    /// The changes that the server tells of, which may be fewer than were asked for: it leaves out resources that it does not
    /// know.
    public let honoured: Honoured
    private let listener: Listener
    private let loop = Locked(Loops())

    private struct Loops {
        weak var current: Iterator.Loop?
    }

    /// The notifications of an extension that are wanted: `true`, or `["key", …]`.
    public enum Wanted: Sendable, Hashable, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral {
        /// All of them.
        case all
        /// Those about these keys.
        case keys([String])

        /// `true` is all of them, `false` none.
        public init(booleanLiteral all: Bool) { self = all ? .all : .keys([]) }

        /// Those about these keys.
        public init(arrayLiteral keys: String...) { self = .keys(keys) }

        /// As the filter has it; nil for what is none.
        fileprivate init?(_ json: JSONValue) {
            switch json {
            case .bool(true): self = .all
            case .array(let keys): self = .keys(keys.compactMap(\.stringValue))
            default: return nil
            }
        }

        /// As the filter has it; nil when nothing is wanted.
        fileprivate var json: JSONValue? {
            switch self {
            case .all: true
            case .keys(let keys): keys.isEmpty ? nil : .array(keys.map { .string($0) })
            }
        }
    }

    /// The changes that a server tells of, of all that was asked for.
    public struct Honoured: Sendable, Hashable {
        /// Changes of the list of tools.
        public let tools: Bool
        /// Changes of the list of prompts.
        public let prompts: Bool
        /// Changes of the lists of resources and resource templates.
        public let resources: Bool
        /// Changes of these resources.
        public let uris: [String]
        /// Changes of the tasks with these ids.
        public let tasks: [String]
        /// Notifications of extensions, by the members of the filter that ask for them.
        public let extensions: [String: Wanted]

        fileprivate init(_ filter: Types.SubscriptionFilter) {
            tools = filter.toolsListChanged ?? false
            prompts = filter.promptsListChanged ?? false
            resources = filter.resourcesListChanged ?? false
            uris = filter.resourceSubscriptions ?? []
            tasks = (filter.additional["taskIds"]?.arrayValue ?? []).compactMap(\.stringValue)
            extensions = filter.additional.reduce(into: [:]) {
                if $1.key != "taskIds" { $0[$1.key] = Wanted($1.value) }
            }
        }
    }

    fileprivate init(_ listener: Listener, honoured: Honoured) {
        self.listener = listener
        self.honoured = honoured
    }

    deinit { listener.end() }

    /// No longer listens. A loop that waits for a change ends.
    public func close() { listener.end() }

    /// The next change; nil after the last one. `TricornError.timeout` when there is none for so long: nothing is lost with that, nor
    /// when the task that waits is cancelled, and the listening goes on. No limit when nil or `.zero`.
    public func next(timeout: Duration? = nil) async throws -> ServerChange? {
        try await Client.noting { try await listener.next(within: timeout == .zero ? nil : timeout) }
    }

    /// Goes through the changes. When it is let go the listening ends; several at once take the changes in turns.
    public func makeAsyncIterator() -> Iterator {
        Iterator(
            loop: loop.with {
                if let current = $0.current { return current }
                let new = Iterator.Loop(self)
                $0.current = new
                return new
            })
    }

    /// Goes through the changes.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate final class Loop: Sendable {
            let listening: Listening

            init(_ listening: Listening) { self.listening = listening }

            deinit { listening.close() }
        }

        fileprivate let loop: Loop

        /// The next change; nil after the server has ended the listening in order, and after `close`. When it broke off, the
        /// client listens again, and since something may have been missed, everything that is listened to is said to have
        /// changed, once.
        ///
        /// Throws `TricornError.closed` when the connection ends, and why it could not be listened again; after that, none
        /// come.
        public func next() async throws -> ServerChange? {
            do {
                return try await loop.listening.next()
            } catch let error as CancellationError {
                // Closed meanwhile, it has no more to say.
                guard loop.listening.listener.end() else { return nil }
                throw error
            }
        }
    }
}

/// Somebody who listens, as the core knows it. The client lives as long as somebody does.
private final class Listener: Sendable {
    private struct State {
        var isOver = false
        /// The operation that asks for the next change, until that was taken.
        var asked: UInt64?
        var come: Result<CorePayload, any Error>?
        /// Waiters that are to look when that has come.
        var waiting: [Awaited<Void>] = []
    }

    let client: Client
    let number = Host.shared.operation()
    private let state = Locked(State())

    init(_ client: Client) { self.client = client }

    /// False when it had ended before.
    @discardableResult
    func end() -> Bool {
        let (ends, asked, waiting) = state.with { state in
            defer { state = State(isOver: true) }
            return (!state.isOver, state.asked, state.waiting)
        }
        if ends { try? client.core.endListening(listener: number) }
        if let asked { Host.shared.settle(asked) }
        for one in waiting { one.resume(.success(())) }
        return ends
    }

    /// The next change; nil after the last. What has not come in time, or for a task that is cancelled, comes to who asks next.
    func next(within limit: Duration? = nil) async throws -> ServerChange? {
        var late: Task<Void, any Error>?
        defer { late?.cancel() }
        let until = limit.map { ContinuousClock.now + $0 }
        while true {
            let awaited = Awaited<Void>()
            let (isOver, come, op) = take(awaited)
            if isOver { return nil }
            if let come {
                guard let change = try read(come) else { continue }
                return change
            }
            if let op { ask(op) }
            late?.cancel()
            late = until.map { until in
                Task {
                    try await Task.sleep(until: until, clock: .continuous)
                    awaited.resume(.failure(TricornError.timeout("nothing has changed in this time")))
                }
            }
            defer { state.with { $0.waiting.removeAll { $0 === awaited } } }
            try await withTaskCancellationHandler {
                try await awaited.value()
            } onCancel: {
                awaited.resume(.failure(CancellationError()))
            }
        }
    }

    /// Takes what has come, which is somebody's then, or else a place among those who wait, and what is to be asked for.
    private func take(_ awaited: Awaited<Void>) -> (isOver: Bool, come: Result<CorePayload, any Error>?, op: UInt64?) {
        let (isOver, come, asked, isNew) = state.with { state in
            if state.isOver { return (true, state.come, state.asked, false) }
            if let come = state.come {
                defer { (state.come, state.asked) = (nil, nil) }
                return (false, come, state.asked, false)
            }
            state.waiting.append(awaited)
            let isNew = state.asked == nil
            if isNew {
                state.asked = Host.shared.operation(Host.Expected(settled: { [weak self] in self?.settled($0) }))
            }
            return (false, nil, state.asked, isNew)
        }
        if come != nil, let asked { Host.shared.settle(asked) }
        return (isOver, come, isNew ? asked : nil)
    }

    private func ask(_ op: UInt64) {
        do {
            try client.core.nextChange(op: op, listener: number)
        } catch {
            settled(.failure(TricornError.from(error)))
        }
    }

    private func settled(_ outcome: Result<CorePayload, any Error>) {
        let waiting = state.with { state in
            if !state.isOver { state.come = outcome }
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume(.success(())) }
    }

    /// Nil for what is no change.
    private func read(_ outcome: Result<CorePayload, any Error>) throws -> ServerChange? {
        do {
            let json = JSONValue(try JSONText(outcome.get()), 0)
            if json.isNull { end() }
            return ServerChange(json)
        } catch {
            // Closed meanwhile, it has no more to say.
            guard end() else { return nil }
            throw error
        }
    }
}

extension Client {
    /// Listens to changes at the server, in every revision: by a stream of its own (2026-07-28), in older ones by
    /// subscriptions and what the server tells unasked.
    ///
    /// ```swift
    /// for try await change in try await client.listen(tools: true, uris: ["note://one"]) {
    ///     switch change {
    ///     case .toolsListChanged: tools = try await client.listTools()
    ///     case .resourceUpdated(let uri): print(try await client.readResource(uri).text)
    ///     default: break
    ///     }
    /// }
    /// ```
    /// When it returns the server tells of changes; `Listening.honoured` says of which. A client may listen 1,000 times at
    /// once.
    ///
    /// - Parameters:
    ///   - tools: changes of the list of tools.
    ///   - prompts: changes of the list of prompts.
    ///   - resources: changes of the lists of resources and resource templates.
    ///   - uris: changes of the resources with these URIs, and of what is a part of them.
    ///   - tasks: how the tasks with these ids are: `ClientOptions.tasks`; in 2025-11-25 where the server tells of them.
    ///   - extensions: members of the filter that belong to extensions which the client declares, with what is wanted of
    ///     each: `["com.example/queries": true]`, or `["a", "b"]` for keys. In older revisions nothing can be chosen: all
    ///     notifications of these extensions come.
    ///
    /// Throws `TricornError.unsupported`, naming what the server does not declare to tell of, and `TricornError.misuse` when
    /// nothing is asked for; nothing was sent then. `TricornError.rpc` when the server refuses, such as more streams than
    /// its `maxListeners`.
    public func listen(
        tools: Bool = false, prompts: Bool = false, resources: Bool = false, uris: [String] = [],
        tasks: [String] = [], extensions: [String: Listening.Wanted] = [:]
    ) async throws -> Listening {
        let own = [
            "toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds",
        ]
        if let member = extensions.keys.first(where: own.contains) {
            throw TricornError.misuse(
                "listen: extensions: \"\(member)\" is the protocol's: say tools, prompts, resources, uris or tasks")
        }
        let filter = Types.SubscriptionFilter(
            promptsListChanged: prompts ? true : nil, resourceSubscriptions: uris.isEmpty ? nil : uris,
            resourcesListChanged: resources ? true : nil, toolsListChanged: tools ? true : nil)
        var members = filter.json
        if !tasks.isEmpty { members["taskIds"] = .array(tasks.map { .string($0) }) }
        for (member, wanted) in extensions { if let wanted = wanted.json { members[member] = wanted } }
        let wanted = members.description
        let listener = Listener(self)
        do {
            let payload = try await Self.noting {
                try await Host.shared.perform { op in
                    try core.listen(op: op, listener: listener.number, filter: wanted)
                }
            }
            let honoured = Types.SubscriptionFilter(checked: JSONValue(try JSONText(payload), 0))
            return Listening(listener, honoured: .init(honoured))
        } catch {
            // It may have been there already.
            listener.end()
            throw error
        }
    }
}
