#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A connection to a server.
///
/// Cancelling the task that awaits a request cancels the request at the server, too. Close a client when it is no
/// longer needed; one that is let go closes by itself.
public final class Client: Sendable {
    let core: CoreClient
    private let source: UInt32
    private let streams: Streams
    /// A server in memory lives as long as its clients.
    private let server: Server?
    private let opening = Locked(JSONValue.null)
    private let handlers: [UInt32]
    private let trace: (@Sendable () -> TraceContext?)?
    let roots: Roots?
    /// Those of a group are its clients', too.
    private let functions: AskedFunctions
    private var auth: AuthFunctions? { functions.auth }
    private let isMember: Bool

    private init(
        server: Server?, _ options: ClientOptions, member ofGroup: AskedFunctions? = nil,
        _ make: (CoreBridge, UInt32, String) throws -> CoreClient
    ) throws {
        let options = try options.withPolicy
        self.server = server
        isMember = ofGroup != nil
        let functions = ofGroup ?? AskedFunctions(options)
        self.functions = functions
        let streams = Streams(options, opening)
        self.streams = streams
        roots = options.kept.roots
        trace = options.traceContext
        source = Host.shared.listen { name, params in streams.event(name, params) }
        let answers = options.answers, middleware = options.middlewareEntries()
        handlers = answers.map(\.handler) + middleware
        do {
            core = try make(Host.shared.bridge, source, options.text(functions).json.checkedText)
            if !isMember { functions.auth?.begin { [core] in AuthStep.all(try? core.authTrace()) } }
            for answer in answers {
                try core.setHandler(
                    method: answer.method, capability: answer.capability.description, handler: answer.handler)
            }
            try options.addMiddleware(to: core, middleware)
            if options.hearsChanges { try core.hearChanges() }
            if case .list(let roots) = options.kept.roots { try core.setRoots(roots: roots.json.checkedText) }
        } catch {
            Host.shared.removeHandlers(handlers)
            Host.shared.replaceListener(source, nil)
            throw TricornError.from(error)
        }
    }

    deinit {
        streams.close()
        if !isMember { auth?.end(authTrace) }
        // Until then: what a launched server says while it ends.
        let ended: @Sendable () -> Void = { [source, streams, handlers, functions] in
            _ = functions
            Host.shared.replaceListener(source, nil)
            Host.shared.removeHandlers(handlers)
            streams.finish()
        }
        let op = Host.shared.operation(Host.Expected(settled: { _ in ended() }))
        do { try core.close(op: op) } catch { ended() }
    }

    static func open(_ target: ConnectionTarget, _ options: ClientOptions) async throws -> Client {
        if case .server(let server) = target { return try await open(server, options) }
        let target = target.json(heard: options.onStderr != nil)
        let client = try Client(server: nil, options) { bridge, source, options in
            try CoreClient(bridge: bridge, source: source, target: target.description, options: options)
        }
        return try await client.opened()
    }

    static func open(_ server: Server, _ options: ClientOptions) async throws -> Client {
        try server.check()
        let client = try Client(server: server, options) { bridge, source, options in
            try CoreClient.inMemory(bridge: bridge, source: source, server: server.core, options: options)
        }
        do { return try await client.opened() } catch { throw server.state.own(error) }
    }

    /// One of a group's, which connects it.
    static func member(
        _ server: Server?, _ options: ClientOptions, _ functions: AskedFunctions,
        _ make: (UInt32) throws -> CoreClient
    ) throws -> Client {
        try Client(server: server, options, member: functions) { _, source, _ in try make(source) }
    }

    /// Takes what the core said of the connection.
    func opened(_ connection: JSONValue) { opening.with { $0 = connection } }

    /// Its group has connected it anew, and tells before anything of this connection is told.
    func reopened() { streams.reopen() }

    /// Its group ends the connection.
    func closes() { streams.close() }

    /// Its group has ended the connection.
    func closed() { streams.finish() }

    private func opened() async throws -> Client {
        let payload = try await Self.noting {
            do {
                return try await Host.shared.perform { op in try core.connect(op: op) }
            } catch {
                auth?.end(authTrace)
                throw error
            }
        }
        let text = try JSONText(payload)
        opened(JSONValue(text, 0))
        return self
    }

    // MARK: - the server

    private func opening(_ name: String) -> JSONValue? { opening.with { $0[name] } }

    /// The negotiated revision, such as `2025-11-25`.
    public var protocolVersion: ProtocolRevision { .init(rawValue: opening("protocolVersion")?.stringValue ?? "") }
    /// `legacy` for revisions opened by `initialize`, `modern` for later ones.
    public var era: ProtocolEra { .init(rawValue: opening("era")?.stringValue ?? "") }
    /// The server's name, version and so on, when it has told.
    public var serverInfo: Types.Implementation? { .init(lenient: opening("serverInfo")) }
    /// The server's declared capabilities, as the protocol has them.
    public var capabilities: Types.ServerCapabilities { .init(checked: opening("capabilities") ?? [:]) }
    /// Instructions for using the server, for the model.
    public var instructions: String? { opening("instructions")?.stringValue }
    /// The server's answer when the connection was opened, as it came, `_meta` and unknown members included: the
    /// result of `initialize`, in modern revisions that of `server/discover`.
    public var initializeResult: JSONValue { opening("initializeResult") ?? [:] }
    /// The `Mcp-Session-Id` of a legacy HTTP connection as it is now: it changes when the server loses the session.
    public var sessionID: String? { try? core.sessionId() }
    /// `stdio`, `http` or `memory`.
    public var transport: TransportKind { .init(rawValue: opening("transport")?.stringValue ?? "") }

    // MARK: - tools

    /// All tools, in the server's order; as many requests as the listing has pages.
    public func listTools(_ options: RequestOptions = .init()) async throws -> [Tool] {
        try await tools(options).collect()
    }

    /// The tools, page by page as they are asked for: `for try await tool in client.tools() { … }`.
    public func tools(_ options: RequestOptions = .init()) -> Listing<Tool> {
        Listing(client: self, method: "tools/list", member: "tools", options: options) { Tool(json: $0) }
    }

    /// One page of the listing: the first, or the one that `cursor` of the page before names.
    public func listToolsPage(cursor: String? = nil, _ options: RequestOptions = .init()) async throws -> ToolsPage {
        ToolsPage(try await page("tools/list", cursor, options))
    }

    /// Calls a tool with `arguments` that encode to a JSON object.
    ///
    /// A tool that fails is a result with `isError`; `decode(as:)` and `orThrow()` make an error of it.
    ///
    /// - Parameter meta: the request's `_meta`.
    public func callTool(
        _ name: String, _ arguments: some Encodable, _ options: RequestOptions = .init(), meta: JSONValue? = nil
    ) async throws -> CallToolResult {
        try await call(name, options, meta) { $0.append(try JSONWriter.encode(arguments)) }
    }

    /// Calls a tool: `try await client.callTool("add", ["a": 1, "b": 2])`.
    public func callTool(
        _ name: String, _ arguments: JSONValue = [:], _ options: RequestOptions = .init(), meta: JSONValue? = nil
    ) async throws -> CallToolResult {
        try await call(name, options, meta) { $0.append(arguments) }
    }

    private func call(
        _ name: String, _ options: RequestOptions, _ meta: JSONValue?, _ arguments: (JSONWriter) throws -> Void
    ) async throws -> CallToolResult {
        let writer = JSONWriter()
        writer.append(literal: #"{"name":"#)
        writer.append(name)
        writer.append(literal: #","arguments":"#)
        try arguments(writer)
        if let meta {
            writer.append(literal: #","_meta":"#)
            writer.append(meta)
        }
        writer.append(literal: "}")
        return CallToolResult(try await perform("tools/call", writer, options))
    }

    /// Calls a tool, and gives its progress as it comes and then its result.
    ///
    /// ```swift
    /// for try await event in client.toolEvents("import", ["rows": 3]) {
    ///     switch event {
    ///     case .progress(let report): bar = report.progress
    ///     case .result(let result): print(result.text)
    ///     }
    /// }
    /// ```
    /// The reports come in order, where the loop runs: on the main actor, if that is it. The call begins at once; leaving the loop
    /// cancels it. The newest 1024 reports wait for a slow loop; the result is always the last element.
    public func toolEvents(
        _ name: String, _ arguments: some Encodable & Sendable, _ options: RequestOptions = .init(),
        meta: JSONValue? = nil
    ) -> AsyncThrowingStream<RequestEvent<CallToolResult>, any Error> {
        events(options) { [self] in try await callTool(name, arguments, $0, meta: meta) }
    }

    /// Calls a tool, and gives its progress as it comes and then its result.
    public func toolEvents(
        _ name: String, _ arguments: JSONValue = [:], _ options: RequestOptions = .init(), meta: JSONValue? = nil
    ) -> AsyncThrowingStream<RequestEvent<CallToolResult>, any Error> {
        events(options) { [self] in try await callTool(name, arguments, $0, meta: meta) }
    }

    /// Sends any request, and gives its progress as it comes and then its result; see `toolEvents`.
    public func requestEvents(
        _ method: String, _ params: JSONValue? = nil, _ options: RequestOptions = .init()
    ) -> AsyncThrowingStream<RequestEvent<JSONValue>, any Error> {
        events(options) { [self] in try await request(method, params, $0) }
    }

    private func events<Result: Sendable>(
        _ options: RequestOptions, _ send: @escaping @Sendable (RequestOptions) async throws -> Result
    ) -> AsyncThrowingStream<RequestEvent<Result>, any Error> {
        AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1024)) { continuation in
            var told = options
            told.onProgress = { [heard = options.onProgress] report in
                heard?(report)
                continuation.yield(.progress(report))
            }
            let request = Task { [told] in
                do {
                    continuation.yield(.result(try await send(told)))
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in request.cancel() }
        }
    }

    // MARK: - anything else

    /// Asks whether the server is there.
    public func ping(_ options: RequestOptions = .init()) async throws {
        _ = try await perform("ping", JSONWriter(), options)
    }

    /// Sends any request of the negotiated revision, or of an extension that both sides declare, and returns its result. A
    /// result of an extension's own type (`resultType`) wants `RequestOptions.anyResult`.
    public func request(
        _ method: String, _ params: JSONValue? = nil, _ options: RequestOptions = .init()
    ) async throws -> JSONValue {
        let writer = JSONWriter()
        if let params { writer.append(params) }
        return JSONValue(try await perform(method, writer, options), 0)
    }

    /// Sends a notification.
    public func notify(_ method: String, _ params: JSONValue? = nil) throws {
        let writer = JSONWriter()
        if let params { writer.append(params) }
        try Tricorn.core { try writer.withData { try core.notify(method: method, json: $0) } }
    }

    func perform(_ method: String, _ params: JSONWriter, _ options: RequestOptions) async throws -> JSONText {
        var options = options
        if options.traceContext == nil { options.traceContext = trace?() }
        return try await Self.noting { [options] in
            try await Host.shared.request(params, options) { [core] op, params, options in
                try core.request(op: op, method: method, json: params, options: options)
            }
        }
    }

    /// In a handler, an error of this connection is no business of the handler's own peer.
    static func noting<Result>(_ body: () async throws -> Result) async throws -> Result {
        guard let call = Call.current else { return try await body() }
        return try await call.noting(.elsewhere, body)
    }

    /// Notifications from now on, in every revision with the changes of all lists that the server tells of. Every call
    /// returns a stream of its own, which ends with the connection; the newest 1024 wait for a slow reader. For changes alone
    /// there is `listen`.
    public func notifications() -> AsyncStream<PeerNotification> {
        let notifications = streams.notifications()
        try? core.hearChanges()
        return notifications
    }

    /// Lines that a launched server prints to its standard error from now on, with `ClientOptions.onStderr` or
    /// `ConnectionTarget.command(standardError: .event)`.
    public func standardErrorLines() -> AsyncStream<String> { streams.lines() }

    /// Closes the connection: ends the session, or the launched process. Waiting requests fail with `closed`. Also in a task that
    /// is cancelled.
    public func close() async {
        streams.close()
        await Host.shared.finish { [core] op in try core.close(op: op) }
        streams.finish()
    }

    /// The steps of the last logins: what they asked, were answered and decided, oldest first; 128 at most, without secrets.
    /// `ClientAuth.trace` has those of a client that could not connect.
    public var authTrace: [AuthStep] { AuthStep.all(try? core.authTrace()) }

    /// Gauges: `awaited`, requests that wait for an answer; `cache`, what was kept of the server's answers and what that was
    /// good for: `{"entries", "bytes", "hits", "misses", "stale", "failures"}`, the last of a `CacheStore`;
    /// `timing`, what `Middleware.timing` counted.
    public var metrics: Metrics {
        guard let payload = try? core.metrics(), let text = try? JSONText(payload) else { return Metrics(json: [:]) }
        return Metrics(json: JSONValue(text, 0))
    }
}

extension Client {
    /// Connects to a server: `try await Client.connect(to: "https://example.org/mcp")`, or by a command line or the path of
    /// an `mcp.json`.
    ///
    /// The same as the function `connect`, which a type that has a method of that name does not see.
    public static func connect(to target: String, _ options: ClientOptions = .init()) async throws -> Client {
        try await open(.parse(target), options)
    }

    /// Connects to a server at a URL, launches one, or takes one of this process: `Client.connect(to: .command("server"))`.
    public static func connect(to target: ConnectionTarget, _ options: ClientOptions = .init()) async throws -> Client {
        try await open(target, options)
    }

    /// Connects to a server of this process, through memory.
    public static func connect(to server: Server, _ options: ClientOptions = .init()) async throws -> Client {
        try await open(server, options)
    }

    /// Connects to a server at a URL.
    public static func connect(to url: URL, _ options: ClientOptions = .init()) async throws -> Client {
        try await open(.url(url.absoluteString), options)
    }
}

/// Connects to a server at a URL.
public func connect(_ url: URL, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(.url(url.absoluteString), options)
}

/// Connects to a server: `try await connect("https://example.org/mcp")`, `connect("uvx mcp-server-time")`.
public func connect(_ target: String, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(.parse(target), options)
}

/// Connects to a server at a URL, launches one, or takes one of this process.
public func connect(_ target: ConnectionTarget, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(target, options)
}

/// Connects to a server of this process, through memory.
public func connect(to server: Server, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(server, options)
}
