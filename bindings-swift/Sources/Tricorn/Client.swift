#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// Where a server is to be found.
public enum Target: Sendable, Hashable {
    /// A Streamable HTTP endpoint.
    case url(String, headers: [String: String] = [:])
    /// A program, given its standard input and output. `environment` is merged into this process's own; nil removes.
    /// Its standard error is `.inherit` by default, `.event` when `ClientOptions.onStderr` is set.
    case command(
        String, arguments: [String] = [], environment: [String: String?] = [:], directory: String? = nil,
        standardError: StandardErrorOutput? = nil)
    /// A URL, the path of an `mcp.json`, or one command line with POSIX quoting.
    case parse(String)
    /// A host's configuration file, `{"mcpServers": {name: ...}}`: the server of this name, or the only one. Its standard
    /// error goes where a `command`'s goes by default.
    case file(String, server: String? = nil)

    /// Where a launched server's standard error goes.
    public enum StandardErrorOutput: String, Sendable, Hashable {
        /// To this process's own.
        case inherit
        /// To `ClientOptions.onStderr` and `Client.standardErrorLines`.
        case event
        /// Nowhere.
        case discard
    }

    /// - Parameter heard: somebody listens to the program's standard error.
    func json(heard: Bool) -> JSONValue {
        switch self {
        case .parse(let text):
            var target = OptionsText()
            target.set("text", text: text)
            target.set("stderr", text: heard ? "event" : nil)
            return target.json
        case .file(let path, let server):
            var target = OptionsText()
            target.set("file", text: path)
            target.set("server", text: server)
            target.set("stderr", text: heard ? "event" : nil)
            return target.json
        case .url(let url, let headers):
            var target = OptionsText()
            target.set("url", text: url)
            target.set("headers", table: headers)
            return target.json
        case .command(let program, let arguments, let environment, let directory, let standardError):
            var target = OptionsText()
            target.set("command", text: program)
            target.set("args", texts: arguments)
            var variables = JSONObject()
            for (name, value) in environment { variables[name] = value.map { .string($0) } ?? .null }
            target.set("env", .object(variables))
            target.set("cwd", text: directory)
            target.set("stderr", text: (standardError ?? (heard ? .event : .inherit)).rawValue)
            return target.json
        }
    }
}

/// How a client behaves; every option has the core's default.
///
/// Callbacks run one after the other, in a thread of their own; 1024 wait for a slow one, further ones are dropped.
public struct ClientOptions: Sendable {
    /// Who the client says it is (`tricorn`).
    public var name: String?
    /// The version of that (the library's).
    public var version: String?
    /// The name for people.
    public var title: String?
    /// What the client is, in a sentence.
    public var description: String?
    /// Where to read about it.
    public var websiteURL: String?
    /// Its icons, as the protocol has them.
    public var icons: [JSONValue]?
    /// Pins a revision, such as `2025-11-25`; otherwise the newest that both know.
    public var revision: String?
    /// Without an answer or progress for so long, a request fails (60 s); `.zero`: no limit.
    public var requestTimeout: Duration?
    /// For how long a server may be silent when asked whether it is modern (5 s).
    public var probeTimeout: Duration?
    /// Bytes of one message (4 MiB).
    public var maxMessageBytes: Int?
    /// Depth of its JSON (128).
    public var maxNesting: Int?
    /// Requests at once (256); more wait.
    public var maxInFlight: Int?
    /// Sent with every HTTP request.
    public var headers: [String: String]?
    /// How long a launched server may take to end by itself, and then again after SIGTERM (2 s).
    public var shutdownGrace: Duration?
    /// The capabilities to declare, as the protocol has them.
    public var capabilities: JSONValue?
    /// Told why the connection ended, once, when that was not by `Client.close`.
    public var onClose: (@Sendable (_ reason: String) -> Void)?
    /// Hears every notification of the server, from the start of connecting.
    public var onNotification: (@Sendable (PeerNotification) -> Void)?
    /// Hears every line that a launched server writes to its standard error, from the start; without this, they go to
    /// this process's own.
    public var onStderr: (@Sendable (_ line: String) -> Void)?
    /// Hears what is wrong but no reason to fail, such as a tool that is left out for a bad `x-mcp-header`. To standard
    /// error by default.
    public var onWarning: @Sendable (_ message: String) -> Void = { StandardError.write("\($0)\n") }

    /// The core's defaults, `revision` excepted.
    public init(revision: String? = nil) { self.revision = revision }

    var json: JSONValue {
        var options = OptionsText()
        options.set("name", text: name)
        options.set("version", text: version)
        options.set("title", text: title)
        options.set("description", text: description)
        options.set("website_url", text: websiteURL)
        options.set("icons", list: icons)
        options.set("revision", text: revision)
        options.set("request_timeout", duration: requestTimeout)
        options.set("probe_timeout", duration: probeTimeout)
        options.set("max_message_bytes", number: maxMessageBytes)
        options.set("max_nesting", number: maxNesting)
        options.set("max_in_flight", number: maxInFlight)
        options.set("headers", table: headers)
        options.set("shutdown_grace", duration: shutdownGrace)
        options.set("capabilities", capabilities)
        return options.json
    }
}

/// How one request behaves.
public struct RequestOptions: Sendable {
    /// Without an answer or progress for so long, the request fails; the client's `requestTimeout` when nil, no limit
    /// when `.zero`.
    public var timeout: Duration?
    /// A limit that progress does not move; none when nil or `.zero`.
    public var maxTimeout: Duration?
    /// Called with progress reports, in order, before the request returns; the newest 1024 wait for a slow callback.
    public var onProgress: (@Sendable (Progress) -> Void)?

    /// Every option has its default.
    public init(
        timeout: Duration? = nil, maxTimeout: Duration? = nil, onProgress: (@Sendable (Progress) -> Void)? = nil
    ) {
        self.timeout = timeout
        self.maxTimeout = maxTimeout
        self.onProgress = onProgress
    }

    /// How far the peer is.
    public struct Progress: Sendable, Hashable {
        /// Grows with every report.
        public var progress: Double
        /// What `progress` grows to, when that is known.
        public var total: Double?
        /// What is going on, for people.
        public var message: String?
    }

    /// Empty when every option is the default.
    var json: String {
        if timeout == nil, maxTimeout == nil, onProgress == nil { return "" }
        var options = OptionsText()
        options.set("timeout", duration: timeout)
        // In the core's words, zero is at once and null is never.
        if timeout == .zero { options.set("timeout", JSONValue.null) }
        if maxTimeout != .zero { options.set("max_timeout", duration: maxTimeout) }
        if onProgress != nil { options.set("progress", true) }
        return options.json.description
    }
}

/// Follows the pages of a listing, of which a peer could make no end.
struct Pages {
    static let most = 1000
    private var seen = Set<String>()

    /// Where to go on after a page that names `cursor`; nil after the last.
    mutating func next(_ cursor: String?) throws -> String? {
        guard let cursor else { return nil }
        guard seen.insert(cursor).inserted else {
            throw TricornError.peerMisbehaved("tools/list never ends: the cursor \"\(cursor)\" came twice")
        }
        guard seen.count < Self.most else {
            throw TricornError.peerMisbehaved("tools/list never ends: there are more than \(Self.most) pages")
        }
        return cursor
    }
}

/// A message from the peer that wants no answer.
public struct PeerNotification: Sendable, Hashable {
    /// Such as `notifications/message`.
    public var method: String
    /// Its parameters, nil when it has none.
    public var params: JSONValue?
}

/// A connection to a server.
///
/// Cancelling the task that awaits a request cancels the request at the server, too. Close a client when it is no
/// longer needed; one that is let go closes by itself.
public final class Client: Sendable {
    private let core: CoreClient
    private let source: UInt32
    private let streams: Streams
    /// A server in memory lives as long as its clients.
    private let server: Server?
    private let opening = Locked(JSONValue.null)

    private init(
        server: Server?, _ options: ClientOptions, _ make: (CoreBridge, UInt32) throws -> CoreClient
    ) throws {
        self.server = server
        let streams = Streams(options)
        self.streams = streams
        source = Host.shared.listen { name, params in streams.event(name, params) }
        do {
            core = try make(Host.shared.bridge, source)
        } catch {
            Host.shared.replaceListener(source, nil)
            throw TricornError.from(error)
        }
    }

    deinit {
        streams.close()
        // Until then: what a launched server says while it ends.
        let ended: @Sendable () -> Void = { [source, streams] in
            Host.shared.replaceListener(source, nil)
            streams.finish()
        }
        let op = Host.shared.operation(Host.Expected(settled: { _ in ended() }))
        do { try core.close(op: op) } catch { ended() }
    }

    static func open(_ target: Target, _ options: ClientOptions) async throws -> Client {
        let target = target.json(heard: options.onStderr != nil)
        let client = try Client(server: nil, options) { bridge, source in
            try CoreClient(
                bridge: bridge, source: source, target: target.description, options: options.json.description)
        }
        return try await client.opened()
    }

    static func open(_ server: Server, _ options: ClientOptions) async throws -> Client {
        try server.check()
        let client = try Client(server: server, options) { bridge, source in
            try CoreClient.inMemory(
                bridge: bridge, source: source, server: server.core, options: options.json.description)
        }
        return try await client.opened()
    }

    private func opened() async throws -> Client {
        let payload = try await Host.shared.perform { op in try core.connect(op: op) }
        let text = try JSONText(payload)
        opening.with { $0 = JSONValue(text, 0) }
        return self
    }

    // MARK: - the server

    private func opening(_ name: String) -> JSONValue? { opening.with { $0[name] } }

    /// The negotiated revision, such as `2025-11-25`.
    public var protocolVersion: String { opening("protocolVersion")?.stringValue ?? "" }
    /// `legacy` for revisions opened by `initialize`, `modern` for later ones.
    public var era: String { opening("era")?.stringValue ?? "" }
    /// The server's name, version and so on, when it has told.
    public var serverInfo: JSONValue? { opening("serverInfo") }
    /// What the server has declared, as the protocol has it.
    public var capabilities: JSONValue { opening("capabilities") ?? [:] }
    /// How to use the server, for the model.
    public var instructions: String? { opening("instructions")?.stringValue }
    /// The `Mcp-Session-Id` of a legacy HTTP connection.
    public var sessionID: String? { opening("sessionId")?.stringValue }
    /// `stdio`, `http` or `memory`.
    public var transport: String { opening("transport")?.stringValue ?? "" }

    // MARK: - tools

    /// All tools, in the server's order; as many requests as the listing has pages.
    public func listTools(_ options: RequestOptions = .init()) async throws -> [Tool] {
        var tools: [Tool] = []
        var pages = Pages(), cursor: String?
        repeat {
            let page = try await listToolsPage(cursor: cursor, options)
            tools += page.tools
            cursor = try pages.next(page.nextCursor)
        } while cursor != nil
        return tools
    }

    /// One page of the listing: the first, or the one that `cursor` of the page before names.
    public func listToolsPage(cursor: String? = nil, _ options: RequestOptions = .init()) async throws -> ToolsPage {
        let writer = JSONWriter()
        if let cursor { writer.append(["cursor": .string(cursor)]) }
        return ToolsPage(try await perform("tools/list", writer, options))
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

    // MARK: - anything else

    /// Asks whether the server is there.
    public func ping(_ options: RequestOptions = .init()) async throws {
        _ = try await perform("ping", JSONWriter(), options)
    }

    /// Sends any request of the negotiated revision and returns its result.
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

    private func perform(_ method: String, _ params: JSONWriter, _ options: RequestOptions) async throws -> JSONText {
        func start(_ op: UInt64) throws {
            try params.withData { try core.request(op: op, method: method, json: $0, options: options.json) }
        }
        guard let onProgress = options.onProgress else {
            return try JSONText(try await Host.shared.perform(start))
        }
        // The callback is the caller's code: it runs in the caller's tasks, not on the core's thread.
        let (reports, report) = AsyncStream.makeStream(
            of: RequestOptions.Progress.self, bufferingPolicy: .bufferingNewest(1024))
        async let reported: Void = {
            for await progress in reports { onProgress(progress) }
        }()
        defer { report.finish() }
        let outcome = try await Host.shared.perform(
            progress: { payload in
                guard let text = try? JSONText(payload) else { return }
                let value = JSONValue(text, 0)
                report.yield(
                    RequestOptions.Progress(
                        progress: value["progress"]?.doubleValue ?? 0, total: value["total"]?.doubleValue,
                        message: value["message"]?.stringValue))
            }, start)
        report.finish()
        await reported
        return try JSONText(outcome)
    }

    /// Notifications from now on. Every call returns a stream of its own, which ends with the connection; the newest
    /// 1024 wait for a slow reader.
    public func notifications() -> AsyncStream<PeerNotification> { streams.notifications() }

    /// Lines that a launched server prints to its standard error from now on, with `ClientOptions.onStderr` or
    /// `Target.command(standardError: .event)`.
    public func standardErrorLines() -> AsyncStream<String> { streams.lines() }

    /// Closes the connection: ends the session, or the launched process. Waiting requests fail with `closed`.
    public func close() async {
        streams.close()
        _ = try? await Host.shared.perform { op in try core.close(op: op) }
        streams.finish()
    }

    /// Gauges: requests in flight, what is queued.
    public var metrics: JSONValue {
        guard let payload = try? core.metrics(), let text = try? JSONText(payload) else { return [:] }
        return JSONValue(text, 0)
    }
}

/// Connects to a server: `try await connect("https://example.org/mcp")`, `connect("uvx mcp-server-time")`.
public func connect(_ target: String, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(.parse(target), options)
}

/// Connects to a server at a URL or launches one.
public func connect(_ target: Target, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(target, options)
}

/// Connects to a server of this process, through memory.
public func connect(to server: Server, _ options: ClientOptions = .init()) async throws -> Client {
    try await Client.open(server, options)
}
