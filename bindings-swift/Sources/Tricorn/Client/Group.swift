internal import TricornCore

/// Options of a group of clients.
public struct GroupOptions: Sendable {
    /// Options of every client.
    public var client = ClientOptions()
    /// Time that a server has to connect (30 s); `.zero`: no limit.
    public var connectTimeout: Duration?
    /// The names that get the server's name in front.
    public var prefix: Prefix?
    /// Sets what answers and hears the server of a name: callbacks, `sampling`, `elicitation`, `roots` and `middleware`.
    /// Other options are the same for all.
    public var forServer: (@Sendable (_ name: String, _ options: inout ClientOptions) -> Void)?

    /// The public names that get the server's name in front.
    public enum Prefix: String, Sendable, Hashable {
        /// Names that another server has, too (the default).
        case clash
        /// All names.
        case always
    }

    /// The core's defaults, but for these.
    public init(client: ClientOptions = .init(), connectTimeout: Duration? = nil, prefix: Prefix? = nil) {
        self.client = client
        self.connectTimeout = connectTimeout
        self.prefix = prefix
    }

    func json(_ functions: AskedFunctions) -> JSONValue {
        var options = client.text(functions)
        options.set("connect_timeout", duration: connectTimeout)
        options.set("prefix", text: prefix?.rawValue)
        return options.json
    }

    /// Servers of a file, or of its content: somebody listens, or may listen, to what its programs write to their standard error.
    fileprivate func heard(_ servers: JSONValue) -> JSONValue {
        var servers = servers
        if client.onStderr != nil || forServer != nil, servers["stderr"] == nil { servers["stderr"] = "event" }
        return servers
    }

    /// - Parameter inFile: the server is one of a file or what it holds: all of its programs are heard, or none.
    fileprivate func of(_ name: String, inFile: Bool = false) -> ClientOptions {
        var options = client
        guard let forServer else { return options }
        forServer(name, &options)
        if inFile, options.onStderr == nil { options.onStderr = { StandardError.write("\($0)\n") } }
        return options
    }
}

/// The things of a kind that the servers of a group have, each with the public name under which the group finds it again.
public struct GroupListing<Definition: Sendable>: Sendable, RandomAccessCollection {
    /// Something that one of the servers has.
    public struct Entry: Sendable {
        /// The server's name.
        public var server: String
        /// The group's name for it: its own name, with the server's in front where that is not unique.
        public var name: String
        /// As the server has it.
        public var definition: Definition
    }

    /// In the order of the servers.
    public var entries: [Entry]
    /// Errors of the servers that are missing, by their names.
    public var failures: [String: TricornError]

    /// 0.
    public var startIndex: Int { 0 }
    /// The number of entries.
    public var endIndex: Int { entries.count }
    /// The entry at `position`.
    public subscript(position: Int) -> Entry { entries[position] }
}

/// Clients of many servers as one.
///
/// ```swift
/// let group = try await connectMany("mcp.json")
/// for (name, error) in group.failures { print("\(name): \(error)") }
/// for tool in try await group.listTools() { print(tool.name, tool.definition.description ?? "") }
/// let sum = try await group.callTool("add", ["a": 1, "b": 2])
/// await group.close()
/// ```
/// A server that cannot be reached, or ends, is among `failures` and does not disturb the others. What is not here is a
/// matter of one server: `group.client("name")`.
public final class ClientGroup: Sendable {
    private let core: CoreGroup
    private let options: GroupOptions
    private let members = Locked([String: Client]())
    private let functions: AskedFunctions

    fileprivate init(_ servers: JSONValue, _ options: GroupOptions) throws {
        self.options = options
        let functions = AskedFunctions(options.client)
        self.functions = functions
        core = try Tricorn.core {
            try CoreGroup(
                bridge: Host.shared.bridge, servers: servers.checkedText, options: options.json(functions).checkedText)
        }
        functions.auth?.begin { [weak self] in self?.authTrace ?? [] }
        for name in try Tricorn.core({ try core.names() }) {
            try join(name, nil, inFile: true) { [core] source in
                guard let client = try core.client(name: name, source: source) else {
                    throw TricornError.misuse("the group has no server \"\(name)\"")
                }
                return client
            }
        }
    }

    deinit { functions.auth?.end(authTrace) }

    /// All clients' together, which each of them knows.
    private var authTrace: [AuthStep] { members.with { $0.first?.value }?.authTrace ?? [] }

    private func join(
        _ name: String, _ server: Server?, inFile: Bool = false, _ make: (UInt32) throws -> CoreClient
    ) throws {
        let client = try Client.member(server, options.of(name, inFile: inFile), functions, make)
        let before = members.with { $0.updateValue(client, forKey: name) }
        _ = before
    }

    private func perform(
        onSuccess: (@Sendable () -> Void)? = nil, _ start: @escaping @Sendable (_ op: UInt64) throws -> Void
    ) async throws -> JSONValue {
        let payload = try await Client.noting { try await Host.shared.perform(onSuccess: onSuccess, start) }
        return JSONValue(try JSONText(payload), 0)
    }

    private static func failures(_ json: JSONValue?) -> [String: TricornError] {
        var failures: [String: TricornError] = [:]
        for (name, error) in json?.objectValue ?? [:] { failures[name] = TricornError(json: error) }
        return failures
    }

    fileprivate func connected() async throws -> ClientGroup {
        let settled = try await perform { [core] op in try core.connect(op: op) }
        let members = members.with { $0 }
        for (name, connection) in settled["servers"]?.objectValue ?? [:] { members[name]?.opened(connection) }
        return self
    }

    // MARK: - the servers

    /// The servers' names, in their order; those of failures, too.
    public var names: [String] { (try? core.names()) ?? [] }

    /// Errors of the servers that are not connected, by their names.
    public var failures: [String: TricornError] {
        guard let payload = try? core.failures(), let text = try? JSONText(payload) else { return [:] }
        return Self.failures(JSONValue(text, 0))
    }

    /// The client of one server; nil when the group has none of that name. One of `failures` is not connected.
    public func client(_ name: String) -> Client? { members.with { $0[name] } }

    /// Adds a server and connects to it.
    @discardableResult
    public func add(_ name: String, _ target: ConnectionTarget) async throws -> Client {
        try join(name, target)
        return try await reconnect(name)
    }

    /// Adds a server of this process and connects to it, through memory.
    @discardableResult
    public func add(_ name: String, _ server: Server) async throws -> Client { try await add(name, .server(server)) }

    fileprivate func join(_ name: String, _ target: ConnectionTarget) throws {
        if case .server(let server) = target {
            try server.check()
            return try join(name, server) { source in
                try core.addServer(name: name, source: source, server: server.core)
            }
        }
        let target = target.json(heard: options.of(name).onStderr != nil)
        try join(name, nil) { source in try core.add(name: name, source: source, target: target.description) }
    }

    /// Connects to a server of the group anew.
    @discardableResult
    public func reconnect(_ name: String) async throws -> Client {
        guard let client = client(name) else {
            throw TricornError.misuse("the group has no server \"\(name)\"")
        }
        let connection = try await perform(onSuccess: { client.reopened() }) { [core] op in
            try core.reconnect(op: op, name: name)
        }
        client.opened(connection)
        return client
    }

    /// Takes a server out of the group and closes its connection. False when there is none of that name.
    @discardableResult
    public func remove(_ name: String) async throws -> Bool {
        client(name)?.closes()
        let wasThere = try await perform { [core] op in try core.remove(op: op, name: name) }
        let before = members.with { $0.removeValue(forKey: name) }
        _ = before
        return wasThere.boolValue ?? false
    }

    /// Closes all connections, also in a task that is cancelled.
    public func close() async {
        let clients = members.with { Array($0.values) }
        for client in clients { client.closes() }
        await Host.shared.finish { [core] op in try core.close(op: op) }
        for client in clients { client.closed() }
    }

    // MARK: - what they have

    private func list<Definition>(
        _ kind: Server.Kind, _ options: RequestOptions, _ entry: (JSONValue) -> Definition
    ) async throws -> GroupListing<Definition> {
        let text = options.json
        let settled = try await perform { [core] op in
            try core.list(op: op, kind: kind.rawValue, options: text)
        }
        let entries = (settled["entries"]?.arrayValue ?? []).map { json in
            GroupListing<Definition>.Entry(
                server: json["server"]?.stringValue ?? "", name: json["name"]?.stringValue ?? "",
                definition: entry(json["definition"] ?? [:]))
        }
        return GroupListing(entries: entries, failures: Self.failures(settled["failures"]))
    }

    /// The tools of all servers.
    public func listTools(_ options: RequestOptions = .init()) async throws -> GroupListing<Tool> {
        try await list(.tool, options) { Tool(json: $0) }
    }

    /// The resources of all servers.
    public func listResources(_ options: RequestOptions = .init()) async throws -> GroupListing<Resource> {
        try await list(.resource, options) { Resource(checked: $0) }
    }

    /// The resource templates of all servers.
    public func listResourceTemplates(
        _ options: RequestOptions = .init()
    ) async throws -> GroupListing<ResourceTemplate> {
        try await list(.resourceTemplate, options) { ResourceTemplate(checked: $0) }
    }

    /// The prompts of all servers.
    public func listPrompts(_ options: RequestOptions = .init()) async throws -> GroupListing<Prompt> {
        try await list(.prompt, options) { Prompt(checked: $0) }
    }

    /// The client that a public name belongs to, and its name there. Throws an error that names what is near when
    /// there is none, and one that names the servers when several have it.
    private func route(_ kind: Server.Kind, _ name: String) async throws -> (client: Client, name: String) {
        let route = try await perform { [core] op in try core.route(op: op, kind: kind.rawValue, name: name) }
        guard let server = route["server"]?.stringValue, let client = client(server) else {
            throw TricornError.misuse("the group has no server for \"\(name)\"")
        }
        return (client, route["name"]?.stringValue ?? name)
    }

    /// Calls the tool of this public name, with `arguments` that encode to a JSON object.
    public func callTool(
        _ name: String, _ arguments: some Encodable, _ options: RequestOptions = .init()
    ) async throws -> CallToolResult {
        let (client, name) = try await route(.tool, name)
        return try await client.callTool(name, arguments, options)
    }

    /// Calls the tool of this public name: `try await group.callTool("add", ["a": 1, "b": 2])`.
    public func callTool(
        _ name: String, _ arguments: JSONValue = [:], _ options: RequestOptions = .init()
    ) async throws -> CallToolResult {
        let (client, name) = try await route(.tool, name)
        return try await client.callTool(name, arguments, options)
    }

    /// Reads a resource of the server that lists it, or has a template for it.
    public func readResource(_ uri: String, _ options: RequestOptions = .init()) async throws -> ReadResourceResult {
        let (client, uri) = try await route(.resource, uri)
        return try await client.readResource(uri, options)
    }

    /// Asks to be told when a resource changes: by the `onResourceUpdated` of its server's client.
    public func subscribe(_ uri: String, _ options: RequestOptions = .init()) async throws {
        let (client, uri) = try await route(.resource, uri)
        try await client.subscribe(uri, options)
    }

    /// No longer asks for it.
    public func unsubscribe(_ uri: String, _ options: RequestOptions = .init()) async throws {
        let (client, uri) = try await route(.resource, uri)
        try await client.unsubscribe(uri, options)
    }

    /// Gets the prompt of this public name.
    public func getPrompt(
        _ name: String, _ arguments: [String: String] = [:], _ options: RequestOptions = .init()
    ) async throws -> GetPromptResult {
        let (client, name) = try await route(.prompt, name)
        return try await client.getPrompt(name, arguments, options)
    }

    /// Gets the prompt of this public name with arguments that encode to a JSON object; what of it is no text is sent as
    /// its JSON text.
    public func getPrompt(
        _ name: String, _ arguments: some Encodable, _ options: RequestOptions = .init()
    ) async throws -> GetPromptResult {
        let (client, name) = try await route(.prompt, name)
        return try await client.getPrompt(name, arguments, options)
    }

    /// Completes an argument of a prompt of this public name, or a variable of a resource template.
    public func complete(
        _ reference: CompletionReference, argument: String, value: String, arguments: [String: String] = [:],
        _ options: RequestOptions = .init()
    ) async throws -> Types.CompleteResult {
        let client: Client, own: CompletionReference
        switch reference {
        case .prompt(let name):
            let route = try await route(.prompt, name)
            (client, own) = (route.client, .prompt(route.name))
        case .resource(let uriTemplate):
            let route = try await route(.resourceTemplate, uriTemplate)
            (client, own) = (route.client, .resource(route.name))
        }
        return try await client.complete(own, argument: argument, value: value, arguments: arguments, options)
    }

    /// Asks all servers that log, now and later, for messages of at least this level. Says which have refused.
    @discardableResult
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
    )
    public func setLogLevel(_ level: Context.LogLevel) async throws -> [String: TricornError] {
        let settled = try await perform { [core] op in try core.setLogLevel(op: op, level: level.rawValue) }
        return Self.failures(settled["failures"])
    }

    /// The servers may look at these folders and files from now on; see `Client.setRoots`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public func setRoots(_ roots: [ClientRoot]) throws {
        for client in members.with({ Array($0.values) }) { try client.setRoots(roots) }
    }
}

/// Connects to all servers of a host's configuration file, `{"mcpServers": {name: …}}`; entries with `"disabled": true`
/// are left out. That some fail is no error: see `ClientGroup.failures`.
public func connectMany(_ file: String, _ options: GroupOptions = .init()) async throws -> ClientGroup {
    try await ClientGroup(options.heard(["file": .string(file)]), options).connected()
}

/// Connects to all servers of a configuration that is a JSON value.
public func connectMany(configuration: JSONValue, _ options: GroupOptions = .init()) async throws -> ClientGroup {
    try await ClientGroup(options.heard(configuration), options).connected()
}

/// Connects to all of these: `connectMany(["time": .command("uvx", arguments: ["mcp-server-time"]), "mine": .server(app)])`.
public func connectMany(
    _ servers: KeyValuePairs<String, ConnectionTarget>, _ options: GroupOptions = .init()
) async throws -> ClientGroup {
    let group = try ClientGroup([], options)
    for (name, target) in servers { try group.join(name, target) }
    return try await group.connected()
}

/// Connects to all of these servers of this process, through memory.
public func connectMany(
    to servers: KeyValuePairs<String, Server>, _ options: GroupOptions = .init()
) async throws -> ClientGroup {
    let group = try ClientGroup([], options)
    for (name, server) in servers { try group.join(name, .server(server)) }
    return try await group.connected()
}
