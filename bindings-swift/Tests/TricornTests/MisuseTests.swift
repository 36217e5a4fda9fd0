import Foundation
import Testing
import Tricorn

/// The wrong uses of tests/cases/misuse.json, made with the public Swift API; their errors are compared text by text. With
/// the environment variable `TRICORN_MISUSE_PRINT` the texts are printed as JSON, by the names of the rows.
@Suite struct MisuseTests {
    @Test func wrongUsesAreRefusedInTheWordsOfAllLanguages() async throws {
        let table = try JSONValue(parsing: CorpusTests.read("tests/cases/misuse.json"))
        let rows = try (table["cases"]?.arrayValue ?? []).map { try MisuseRow($0) }.filter { !$0.isSkipped }
        var texts = JSONObject()
        var failed = 0
        for row in rows {
            let text = await row.told()
            texts[row.name] = .string(text)
            if let difference = try row.difference(text) {
                failed += 1
                Issue.record("\(row.name):\n\(difference)")
            }
        }
        if ProcessInfo.processInfo.environment["TRICORN_MISUSE_PRINT"] != nil { print(JSONValue.object(texts)) }
        let differing = rows.filter { $0.today != nil }.count
        print("swift: \(rows.count) cases, \(failed) failed, \(differing) with another text today")
        #expect(!rows.isEmpty)
    }
}

/// Something that this checker cannot make: a row of another language, or of an option that is new.
private struct RowFault: Error {
    var why: String

    init(_ why: String) { self.why = why }

    static func unknown(_ what: String) -> RowFault { RowFault("this checker knows no \"\(what)\"") }
}

/// Options of a row, of which each is taken once.
private struct Given {
    private var left: JSONObject

    init(_ options: JSONObject) { left = options }

    mutating func take(_ name: String) -> JSONValue? {
        defer { left[name] = nil }
        return left[name]
    }

    private mutating func take<Value>(_ name: String, _ read: (JSONValue) -> Value?) throws -> Value? {
        guard let given = take(name) else { return nil }
        guard let value = read(given) else {
            throw RowFault("\(name): \(given) cannot be written here, which `skip` has to say")
        }
        return value
    }

    mutating func text(_ name: String) throws -> String? { try take(name, \.stringValue) }
    mutating func number(_ name: String) throws -> Int? { try take(name, \.intValue) }
    mutating func decimal(_ name: String) throws -> Double? { try take(name, \.doubleValue) }
    mutating func flag(_ name: String) throws -> Bool? { try take(name, \.boolValue) }
    mutating func object(_ name: String) throws -> JSONObject? { try take(name, \.objectValue) }
    mutating func array(_ name: String) throws -> [JSONValue]? { try take(name, \.arrayValue) }

    mutating func time(_ name: String) throws -> Duration? {
        try take(name, \.doubleValue).map { .seconds($0) }
    }

    mutating func texts(_ name: String) throws -> [String]? {
        try take(name) { list in
            guard let texts = list.arrayValue?.map(\.stringValue), !texts.contains(nil) else { return nil }
            return texts.compactMap { $0 }
        }
    }

    mutating func table(_ name: String) throws -> [String: String]? {
        try take(name) { table in
            guard let members = table.objectValue else { return nil }
            let pairs = members.compactMap { member in member.value.stringValue.map { (member.key, $0) } }
            return pairs.count == members.count ? Dictionary(uniqueKeysWithValues: pairs) : nil
        }
    }

    mutating func choices(_ name: String) throws -> [String: [String]] {
        guard let members = try object(name) else { return [:] }
        var inner = Given(members)
        return try Dictionary(uniqueKeysWithValues: members.keys.map { ($0, try inner.texts($0) ?? []) })
    }

    /// A value of an enum by its name on the wire.
    mutating func one<Value: RawRepresentable<String>>(_ name: String, of type: Value.Type) throws -> Value? {
        try take(name) { $0.stringValue.flatMap(Value.init(rawValue:)) }
    }

    /// Throws when something was not taken.
    func end() throws { if let name = left.keys.first { throw RowFault.unknown(name) } }
}

/// A row of the table.
private struct MisuseRow: Sendable {
    static let language = "swift"
    /// A URL where nothing listens: options of HTTP are refused before a connection is made.
    static let url = "http://127.0.0.1:9/mcp"

    let name: String
    let make: String
    let options: JSONObject
    let error: String
    let today: String?
    let target: JSONValue?
    let call: String
    let arguments: [JSONValue]
    let client: JSONObject
    let isSkipped: Bool

    init(_ json: JSONValue) throws {
        var row = Given(json.objectValue ?? [:])
        name = try row.text("name") ?? ""
        make = try row.text("make") ?? ""
        options = try row.object("options") ?? [:]
        error = try row.text("error") ?? ""
        today = try row.object("today")?[Self.language]?.stringValue
        target = row.take("target")
        call = try row.text("call") ?? ""
        arguments = try row.array("arguments") ?? []
        client = try row.object("client") ?? [:]
        let skip = try row.object("skip") ?? [:]
        isSkipped = skip.keys.contains { $0.split(separator: ",").contains(Substring(Self.language)) }
        try row.end()
    }

    /// The text of the error that it ends with.
    func told() async -> String {
        do {
            try await bounded { try await run() }
            return "(nothing was refused)"
        } catch let error as TricornError {
            return error.kind == .misuse ? error.message : "\(error.kind): \(error.message)"
        } catch let fault as RowFault {
            return "(\(fault.why))"
        } catch {
            return "\(type(of: error)): \(error)"
        }
    }

    /// The difference of a text from the one that is expected.
    func difference(_ got: String) throws -> String? {
        let isWanted = try Self.matches(got, error)
        if try today.map({ try Self.matches(got, $0) && !isWanted }) ?? isWanted { return nil }
        let hint = isWanted ? " (as it should be: remove its `today`)" : ""
        return "  expected \(today ?? error)\n  got      \(got)\(hint)"
    }

    // MARK: - texts

    /// True if a text is the expected one as this language has it: names of options in camelCase, times in seconds.
    private static func matches(_ text: String, _ expected: String) throws -> Bool {
        let placeholder = try NSRegularExpression(pattern: #"\{(?:[otn]:[^}]*|u|s|all|any)\}"#)
        let whole = expected as NSString
        var pattern = "", end = 0
        for found in placeholder.matches(in: expected, range: NSRange(location: 0, length: whole.length)) {
            let range = found.range
            let before = whole.substring(with: NSRange(location: end, length: range.location - end))
            pattern += NSRegularExpression.escapedPattern(for: before) + rendered(whole.substring(with: range))
            end = range.location + range.length
        }
        pattern += NSRegularExpression.escapedPattern(for: whole.substring(from: end))
        let all = try NSRegularExpression(pattern: "\\A(?:\(pattern))\\z", options: .dotMatchesLineSeparators)
        return all.firstMatch(in: text, range: NSRange(location: 0, length: (text as NSString).length)) != nil
    }

    private static func rendered(_ placeholder: String) -> String {
        let value = String(placeholder.dropFirst(3).dropLast())
        switch placeholder {
        case "{u}": return "seconds"
        case "{s}": return "a JSON Schema"
        case "{all}": return "\\w+(?:, \\w+)+"
        case "{any}": return ".*"
        case _ where placeholder.hasPrefix("{o:"): return camel(value)
        case _ where placeholder.hasPrefix("{t:"): return NSRegularExpression.escapedPattern(for: "\(value) s")
        default: return NSRegularExpression.escapedPattern(for: value)
        }
    }

    /// A name as Swift's API design guidelines want it: `client_id` is `clientID`.
    private static func camel(_ name: String) -> String {
        let words = name.split(separator: "_").map(String.init)
        let others = words.dropFirst().map {
            ["id", "ttl", "uri", "url"].contains($0) ? $0.uppercased() : $0.prefix(1).uppercased() + $0.dropFirst()
        }
        return (words.first ?? "") + others.joined()
    }
}

// MARK: - what is made

private struct Code: Codable, Sendable { var code: String }
private struct Number: Codable, Sendable { var number: String }

extension MisuseRow {
    fileprivate func run() async throws {
        var given = Given(options)
        switch make {
        case "server": try await used(server(&given))
        case "task": try await used(Server("demo", tasks: tasks(&given)))
        case "client": try await connecting(&given)
        case "auth":
            var options = ClientOptions()
            options.auth = try auth(&given)
            await (try await connect(Self.url, options)).close()
        case "group":
            let options = try GroupOptions(
                connectTimeout: given.time("connect_timeout"), prefix: given.one("prefix", of: GroupOptions.Prefix.self)
            )
            await (try await group(options, &given)).close()
        case "http": try await served(demo(), http(&given))
        case "server_auth": try await served(demo(auth: serverAuth(&given)), HTTPOptions(port: 0))
        case "tool": try tool(&given)
        case "prompt": try prompt(&given)
        case "resource": try resource(&given)
        case "middleware": try await used(limited(&given))
        case "extension": try demo().addExtension(extended(&given))
        case "principal":
            _ = Principal(
                subject: try given.text("subject") ?? "", issuer: try given.text("issuer"),
                scopes: try given.texts("scopes") ?? [])
            try given.end()
        case "trace":
            let trace = TraceContext(traceparent: try given.text("traceparent"))
            try given.end()
            _ = try await withClient(of: demo()) { try await $0.listTools(RequestOptions(traceContext: trace)) }
        case "question":
            let message = try given.text("message") ?? "", schema = given.take("schema") ?? [:]
            let _: Question<Elicited<JSONObject>> = .elicit(message, schema: schema)
            try given.end()
        case "on_server": try onServer()
        case "request": try await request(&given)
        default: throw RowFault.unknown(make)
        }
    }

    /// A server with one of everything.
    private func demo(auth: ServerAuth? = nil) -> Server {
        let app = Server("demo", auth: auth)
        app.tool("add") { (input: Add, _) in input.a + input.b }
        app.tool("slow") { (_: NoArguments, _) in
            try await Task.sleep(for: .seconds(60))
            return "at last"
        }
        app.prompt("hello") { "Hello" }
        app.resource("notes://1", name: "one", value: "One")
        return app
    }

    /// Serves a client with it: mistakes in a server are thrown when it serves.
    private func used(_ server: Server) async throws { try await withClient(of: server) { _ in } }

    private func served(_ server: Server, _ options: HTTPOptions) async throws {
        await (try await server.start(options)).stop()
    }

    private func server(_ given: inout Given) throws -> Server {
        var capabilities: Set<Server.Capability> = []
        for name in try given.texts("capabilities") ?? [] { capabilities.insert(.other(name, [:])) }
        let cache = try given.object("cache").map { try serverCache($0) }
        let app = Server(
            "demo", revision: try given.text("revision").map(ProtocolRevision.init(rawValue:)),
            pageSize: try given.number("page_size"), maxMessageBytes: try given.number("max_message_bytes"),
            maxNesting: try given.number("max_nesting"), maxMemory: try given.number("max_memory"),
            maxInFlight: try given.number("max_in_flight"),
            maxQueuedNotifications: try given.number("max_queued_notifications"),
            maxListeners: try given.number("max_listeners"), capabilities: capabilities,
            pingInterval: try given.time("ping_interval"), pingTimeout: try given.time("ping_timeout"),
            requestStateKeys: try given.texts("request_state_keys"),
            requestStateTTL: try given.time("request_state_ttl"),
            maxRequestStateBytes: try given.number("max_request_state_bytes"), cache: cache)
        try given.end()
        return app
    }

    private func hints(_ options: JSONObject?) throws -> CacheHints? {
        guard let options else { return nil }
        var given = Given(options)
        let hints = CacheHints(ttl: try given.time("ttl"), scope: try given.one("scope", of: CacheScope.self))
        try given.end()
        return hints
    }

    private func serverCache(_ options: JSONObject) throws -> ServerCache {
        var given = Given(options)
        let cache = ServerCache(
            ttl: try given.time("ttl"), scope: try given.one("scope", of: CacheScope.self),
            tools: try hints(given.object("tools")))
        try given.end()
        return cache
    }

    private func tasks(_ given: inout Given) throws -> TaskOptions {
        let tasks = TaskOptions(
            maxTasks: try given.number("max_tasks"), maxSessionTasks: try given.number("max_session_tasks"),
            maxTaskBytes: try given.number("max_task_bytes"), taskTTL: try given.time("task_ttl"),
            maxTaskTTL: try given.time("max_task_ttl"))
        try given.end()
        return tasks
    }

    private func clientOptions(_ given: inout Given) throws -> ClientOptions {
        var options = ClientOptions(revision: try given.text("revision"))
        options.requestTimeout = try given.time("request_timeout")
        options.probeTimeout = try given.time("probe_timeout")
        options.shutdownGrace = try given.time("shutdown_grace")
        options.pingInterval = try given.time("ping_interval")
        options.pingTimeout = try given.time("ping_timeout")
        options.maxMemory = try given.number("max_memory")
        options.maxMessageBytes = try given.number("max_message_bytes")
        options.maxNesting = try given.number("max_nesting")
        options.maxDecodedBytes = try given.number("max_decoded_bytes")
        options.headers = try given.table("headers")
        options.ca = try given.text("ca")
        options.cert = try given.text("cert")
        options.key = try given.text("key")
        options.capabilities = given.take("capabilities")
        options.roots = try given.texts("roots").map { .list($0.map { ClientRoot(uri: $0) }) }
        if let cache = try given.object("cache") {
            var cache = Given(cache)
            options.cache = ClientCache(
                maxEntries: try cache.number("max_entries"), maxBytes: try cache.number("max_bytes"))
            try cache.end()
        }
        if let extensions = try given.object("extensions") {
            var members = Given(extensions)
            for id in extensions.keys { options.extensions[id] = try members.object(id) }
        }
        try given.end()
        return options
    }

    private func connecting(_ given: inout Given) async throws {
        let server = try given.text("server")
        let options = try clientOptions(&given)
        guard let target else { return try await withClient(of: demo(), options) { _ in } }
        if let text = target.stringValue { return await (try await connect(text, options)).close() }
        if target["mcpServers"] != nil { return try await connectingToFile(target, server, options) }
        var place = Given(target.objectValue ?? [:])
        let url = try place.text("url"), command = try place.text("command")
        try place.end()
        if let url { return await (try await connect(.url(url), options)).close() }
        await (try await connect(.command(command ?? ""), options)).close()
    }

    /// Connects to a server of a configuration, which one client reads from a file: its path is in front of what is said.
    private func connectingToFile(_ target: JSONValue, _ server: String?, _ options: ClientOptions) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tricorn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("mcp.json")
        try Data(target.description.utf8).write(to: file)
        do {
            await (try await connect(.file(file.path, server: server), options)).close()
        } catch TricornError.misuse(let message) where message.hasPrefix("\(file.path): ") {
            throw TricornError.misuse(String(message.dropFirst(file.path.count + 2)))
        }
    }

    private func auth(_ given: inout Given) throws -> ClientAuth {
        var auth = ClientAuth(
            clientID: try given.text("client_id"), clientSecret: try given.text("client_secret"),
            issuer: try given.text("issuer"), clientMetadataURL: try given.text("client_metadata_url"),
            scopes: try given.texts("scopes") ?? [], store: .memory)
        auth.grant = try given.one("grant", of: ClientAuth.Grant.self)
        auth.token = try given.text("token").map { .text($0) }
        auth.privateKey = try given.text("private_key")
        auth.signingAlgorithm = try given.text("signing_algorithm")
        auth.loginTimeout = try given.time("login_timeout")
        auth.redirectPort = try given.number("redirect_port")
        auth.redirectURI = try given.text("redirect_uri")
        auth.noBrowser = true
        try given.end()
        return auth
    }

    private func group(_ options: GroupOptions, _ given: inout Given) async throws -> ClientGroup {
        var options = options
        options.client = try clientOptions(&given)
        return try await connectMany(["one": .url(Self.url)], options)
    }

    private func http(_ given: inout Given) throws -> HTTPOptions {
        var options = HTTPOptions(
            host: try given.text("host"), port: 0, path: try given.text("path"),
            allowedHosts: try given.texts("allowed_hosts"), allowedOrigins: try given.texts("allowed_origins"),
            maxSessions: try given.number("max_sessions"), sessionIdleTimeout: try given.time("session_idle_timeout"),
            keepAliveInterval: try given.time("keep_alive_interval"),
            maxConnections: try given.number("max_connections"))
        options.cert = try given.text("cert")
        options.key = try given.text("key")
        options.drainTimeout = try given.time("drain_timeout")
        options.headerTimeout = try given.time("header_timeout")
        options.idleTimeout = try given.time("idle_timeout")
        options.bodyTimeout = try given.time("body_timeout")
        options.writeTimeout = try given.time("write_timeout")
        options.sseRetry = try given.time("sse_retry")
        options.sse = try given.flag("sse")
        options.stateless = try given.flag("stateless")
        options.trustedProxies = try given.texts("trusted_proxies")
        try given.end()
        return options
    }

    private func serverAuth(_ given: inout Given) throws -> ServerAuth {
        let issuer = try given.text("issuer"), resource = try given.text("resource")
        var auth: ServerAuth
        if let asked = try given.object("introspection") {
            guard issuer == nil else { throw RowFault("each way to check a token has a function of its own") }
            var asked = Given(asked)
            auth = .introspection(
                try asked.text("url") ?? "", clientID: try asked.text("client_id") ?? "",
                clientSecret: try asked.text("client_secret") ?? "", authorizationServers: [], resource: resource)
            try asked.end()
        } else {
            auth = .issuer(issuer ?? "", resource: resource)
        }
        auth.jwksURI = try given.text("jwks_uri")
        auth.requiredScopes = try given.texts("required_scopes") ?? []
        auth.scopesSupported = try given.texts("scopes_supported") ?? []
        auth.scopeImplies = try given.choices("scope_implies")
        auth.clockSkew = try given.time("clock_skew")
        auth.timeout = try given.time("timeout")
        try given.end()
        return auth
    }

    private func tool(_ given: inout Given) throws {
        let name = try given.text("name") ?? "", meta = given.take("meta"), scopes = try given.texts("scopes") ?? []
        let support = try given.one("task_support", of: TaskSupport.self)
        let input = given.take("input_schema"), output = given.take("output_schema")
        try given.end()
        try demo().add {
            $0.tool(name, meta: meta, scopes: scopes, taskSupport: support, inputSchema: input, outputSchema: output) {
                (_: JSONValue, _) in "done"
            }
        }
    }

    private func prompt(_ given: inout Given) throws {
        let name = try given.text("name") ?? "", meta = given.take("meta"), choices = try given.choices("complete")
        let arguments = try given.array("arguments")?.map { argument in
            var argument = Given(argument.objectValue ?? [:])
            guard let name = try argument.text("name") else { throw RowFault("an argument has a name here") }
            try argument.end()
            return Types.PromptArgument(name: name)
        }
        try given.end()
        try demo().add {
            $0.prompt(name, meta: meta, arguments: arguments, choices: choices) { (input: Code, _) in input.code }
        }
    }

    private func resource(_ given: inout Given) throws {
        let uri = try given.text("uri") ?? "", name = try given.text("name"), size = try given.number("size")
        let choices = try given.choices("complete"), cache = try hints(given.object("cache"))
        try given.end()
        try demo().add {
            if uri.contains("{number") {
                $0.resource(uri, name: name, size: size, cache: cache, choices: choices) { (variables: Number, _) in
                    variables.number
                }
            } else {
                $0.resource(uri, name: name, size: size, cache: cache, choices: choices) { (_: NoArguments, _) in "text"
                }
            }
        }
    }

    private func limited(_ given: inout Given) throws -> Server {
        let app = Server("demo")
        switch call {
        case "rate_limit":
            app.middleware(
                .rateLimit(perSecond: try given.decimal("per_second") ?? 0, burst: try given.number("burst")))
        case "concurrency_limit":
            app.middleware(
                .concurrencyLimit(try given.number("max") ?? 0, maxWaiting: try given.number("max_waiting")))
        default: throw RowFault.unknown(call)
        }
        try given.end()
        return app
    }

    private func extended(_ given: inout Given) throws -> ServerExtension {
        var new = ServerExtension(try given.text("id") ?? "")
        if let method = try given.text("method") { new.method(method) { JSONObject() } }
        let member = try given.text("member") ?? ""
        if let notification = try given.text("notification") { new.notification(notification, member: member) }
        try given.end()
        return new
    }

    private func argument(_ at: Int) throws -> String {
        guard at < arguments.count, let text = arguments[at].stringValue else {
            throw RowFault("argument \(at): expected text, which `skip` has to say")
        }
        return text
    }

    private func onServer() throws {
        let app = demo()
        try app.addExtension(ServerExtension("com.example/x"))
        switch call {
        case "notify": try app.notify(argument(0), arguments[1])
        case "add_directory": try app.addDirectory(argument(0), uri: argument(1))
        case "add_file": try app.addFile(argument(0), uri: argument(1))
        default: throw RowFault.unknown(call)
        }
    }

    private func request(_ given: inout Given) async throws {
        var own = Given(client)
        let options = RequestOptions(timeout: try given.time("timeout"), maxTimeout: try given.time("max_timeout"))
        let meta = given.take("meta"), extensions = try given.object("extensions")
        try given.end()
        var wanted: [String: Listening.Wanted] = [:]
        for (member, value) in extensions ?? [:] {
            guard let all = value.boolValue else { throw RowFault("\(member): expected true, which `skip` has to say") }
            wanted[member] = all ? .all : .keys([])
        }
        let asked = wanted
        try await withClient(of: demo(), clientOptions(&own)) { client in
            switch call {
            case "list_tools": _ = try await client.listTools(options)
            case "call_tool": _ = try await client.callTool(argument(0), arguments[1], options, meta: meta)
            case "request": _ = try await client.request(argument(0), arguments[1], options)
            case "notify": try client.notify(argument(0), arguments[1])
            case "set_roots": try client.setRoots([])
            case "listen": (try await client.listen(extensions: asked)).close()
            default: throw RowFault.unknown(call)
            }
        }
    }
}
