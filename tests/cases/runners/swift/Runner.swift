// The case runner of Swift: does what each line says, with the public client, and reports what came of it.
import Foundation
import Tricorn

/// An object of what there is.
func known(_ members: [(String, JSONValue?)]) -> JSONValue {
    .object(JSONObject(members.compactMap { name, value in value.map { (key: name, value: $0) } }))
}

/// Parameters of the functions that answer a server.
actor Asked {
    private(set) var all: [JSONValue] = []

    func add(_ question: JSONValue) { all.append(question) }
}

/// The answer that the case says, or its error.
func said(_ answer: JSONValue) throws -> JSONValue {
    guard let error = answer["error"] else { return answer }
    throw TricornError.rpc(code: error["code"]?.intValue ?? 0, message: error["message"]?.stringValue ?? "")
}

/// One line on standard output, whole.
actor Output {
    func say(_ line: JSONValue) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}

actor Runner {
    private let output = Output()
    private var clients: [Int: Client] = [:]
    private var heard: [Int: [JSONValue]] = [:]
    private var asked: [Int: Asked] = [:]
    private var running: [Int: Task<Void, Never>] = [:]

    func take(_ line: String) {
        guard let command = try? JSONValue(parsing: line), let id = command["id"]?.intValue else { return }
        running[id] = Task { await answer(id, command) }
    }

    private func answer(_ id: Int, _ command: JSONValue) async {
        do {
            let result = try await perform(id, command)
            await output.say(["id": .int(id), "result": result])
        } catch {
            await output.say(["id": .int(id), "error": failure(error)])
        }
        running[id] = nil
    }

    private func failure(_ error: any Error) -> JSONValue {
        if error is CancellationError { return ["kind": "cancelled_here", "message": "\(error)"] }
        guard let error = error as? TricornError else { return ["kind": "exception", "message": .string("\(error)")] }
        return known([
            ("kind", .string(error.kind.rawValue)), ("message", .string(error.message)),
            ("code", error.code.map(JSONValue.int)),
            ("data", error.data),
        ])
    }

    private func perform(_ id: Int, _ command: JSONValue) async throws -> JSONValue {
        let key = command["client"]?.intValue ?? 0
        let params = command["params"]
        switch command["do"]?.stringValue ?? "" {
        case "connect": return try await connect(key, command)
        case "cancel":
            running[command["call"]?.intValue ?? 0]?.cancel()
            return [:]
        case "close":
            await clients.removeValue(forKey: key)?.close()
            return [:]
        case "info": return await info(key, try client(key))
        case "list_tools": return .array(try await client(key).listTools().map(\.json))
        case "list_page": return try await page(try client(key), command)
        case "list_tools_page": return try await client(key).listToolsPage(cursor: command["cursor"]?.stringValue).json
        case "call_tool": return try await call(id, try client(key), command)
        case "ping":
            try await client(key).ping()
            return [:]
        case "request": return try await client(key).request(command["method"]?.stringValue ?? "", params)
        case "notify":
            try client(key).notify(command["method"]?.stringValue ?? "", params)
            return [:]
        case "metrics": return try client(key).metrics.json
        case let other: return try await feature(other, try client(key), command)
        }
    }

    private func feature(_ name: String, _ client: Client, _ command: JSONValue) async throws -> JSONValue {
        func text(_ name: String) -> String { command[name]?.stringValue ?? "" }
        let whole = command["whole"] == true
        switch name {
        case "list":
            switch text("what") {
            case "resources": return .array(try await client.listResources().map(\.json))
            case "resource_templates": return .array(try await client.listResourceTemplates().map(\.json))
            default: return .array(try await client.listPrompts().map(\.json))
            }
        case "read_resource":
            let read = try await client.readResource(text("uri")).json
            return whole ? read : read["contents"] ?? nil
        case "subscribe": try await client.subscribe(text("uri"))
        case "unsubscribe": try await client.unsubscribe(text("uri"))
        case "get_prompt":
            return try await client.getPrompt(text("name"), texts(command["arguments"]?.objectValue ?? [:])).json
        case "complete":
            let template = command["template"]?.stringValue.map(CompletionReference.resource)
            let found = try await client.complete(
                template ?? .prompt(text("prompt")), argument: text("argument"), value: text("value"),
                arguments: texts(command["context"]?.objectValue ?? [:]))
            return whole ? found.json : found.completion.json
        case "set_log_level": try await client.setLogLevel(.init(rawValue: text("level")) ?? .info)
        case "roots_changed": try client.rootsChanged()
        case "wait_for_task": return try await client.task(text("task")).wait().json
        case "set_roots": try client.setRoots(roots(command["roots"]))
        default: throw ToolError("what is \(name)?")
        }
        return [:]
    }

    private func page(_ client: Client, _ command: JSONValue) async throws -> JSONValue {
        let cursor = command["cursor"]?.stringValue
        switch command["what"] {
        case "tools": return try await client.listToolsPage(cursor: cursor).json
        case "resources": return try await client.listResourcesPage(cursor: cursor).json
        case "resource_templates": return try await client.listResourceTemplatesPage(cursor: cursor).json
        default: return try await client.listPromptsPage(cursor: cursor).json
        }
    }

    private func roots(_ list: JSONValue?) -> [ClientRoot] {
        (list?.arrayValue ?? []).map { root in
            ClientRoot(uri: root.stringValue ?? root["uri"]?.stringValue ?? "", name: root["name"]?.stringValue)
        }
    }

    private func client(_ key: Int) throws -> Client {
        guard let client = clients[key] else { throw ToolError("no such client") }
        return client
    }

    private func connect(_ key: Int, _ command: JSONValue) async throws -> JSONValue {
        var options = try clientOptions(command["options"] ?? [:])
        let questions = Asked()
        asked[key] = questions
        answer(command["answers"] ?? [:], &options, questions)
        let client = try await Tricorn.connect(place(command["target"] ?? [:]), options)
        clients[key] = client
        heard[key] = []
        let notifications = client.notifications()
        Task {
            for await notification in notifications {
                hear(key, ["method": .string(notification.method), "params": notification.params ?? nil])
            }
        }
        return await info(key, client)
    }

    /// Sets handlers that record each question of the server, then answer as the case says.
    private func answer(_ answers: JSONValue, _ options: inout ClientOptions, _ asked: Asked) {
        if let list = answers["roots"] { options.roots = .list(roots(list)) }
        options.samplingTools = answers["sampling_tools"] == true
        if let sampled = answers["sampling"] {
            options.sampling = { request, _ in
                await asked.add(["sampling": request.json])
                let answer = try said(sampled)
                return try answer.stringValue ?? Types.CreateMessageResult(json: answer)
            }
        }
        let (form, page) = (answers["elicitation"], answers["elicitation_url"])
        guard form != nil || page != nil else { return }
        options.elicitationModes = Set((form == nil ? [] : [.form]) + (page == nil ? [] : [.url]))
        options.elicitation = { question, _ in
            let isPage = question.mode == .url
            await asked.add(
                isPage
                    ? known([
                        ("url", question.url.map(JSONValue.string)), ("message", .string(question.message)),
                        ("elicitationId", question.elicitationID.map(JSONValue.string)),
                    ]) : known([("form", question.schema), ("message", .string(question.message))]))
            let answer = try said((isPage ? page : form) ?? nil)
            switch answer["action"]?.stringValue {
            case "accept": return .accept(answer["content"]?.objectValue)
            case "cancel": return .cancel
            default: return .decline
            }
        }
    }

    private func hear(_ key: Int, _ notification: JSONValue) { heard[key, default: []].append(notification) }

    private func place(_ target: JSONValue) -> ConnectionTarget {
        if let text = target.stringValue { return .parse(text) }
        if let url = target["url"]?.stringValue { return .url(url) }
        let environment = (target["env"]?.objectValue ?? [:]).map { ($0.key, $0.value.stringValue) }
        return .command(
            target["command"]?.stringValue ?? "",
            arguments: (target["args"]?.arrayValue ?? []).compactMap(\.stringValue),
            environment: Dictionary(uniqueKeysWithValues: environment), standardError: .discard)
    }

    /// The option `auth`, by the names that all languages share.
    private func authorization(_ given: JSONValue) -> ClientAuth {
        func text(_ name: String) -> String? { given[name]?.stringValue }
        var auth = ClientAuth(
            clientID: text("client_id"), clientSecret: text("client_secret"), issuer: text("issuer"),
            clientMetadataURL: text("client_metadata_url"))
        auth.scopes = (given["scopes"]?.arrayValue ?? []).compactMap(\.stringValue)
        auth.grant = text("grant").flatMap(ClientAuth.Grant.init)
        auth.privateKey = text("private_key")
        auth.signingAlgorithm = text("signing_algorithm")
        auth.keyID = text("key_id")
        auth.clientName = text("client_name")
        auth.clientURI = text("client_uri")
        auth.applicationType = text("application_type").flatMap(ClientAuth.ApplicationType.init)
        auth.dpop = given["dpop"]?.boolValue
        auth.token = text("token").map { .text($0) }
        auth.assertion = text("assertion").map { .text($0) }
        auth.loginTimeout = given["login_timeout"].flatMap { seconds($0) }
        auth.noBrowser = given["no_browser"] == true
        auth.redirectPort = given["redirect_port"]?.intValue
        auth.store = given["store"]?["directory"]?.stringValue.map { .directory($0) } ?? .memory
        return auth
    }

    private func clientOptions(_ json: JSONValue) throws -> ClientOptions {
        var options = ClientOptions()
        for (name, value) in json.objectValue ?? [:] {
            switch name {
            case "name": options.name = value.stringValue
            case "version": options.version = value.stringValue
            case "title": options.title = value.stringValue
            case "description": options.description = value.stringValue
            case "website_url": options.websiteURL = value.stringValue
            case "revision": options.revision = value.stringValue.map(ProtocolRevision.init(rawValue:))
            case "request_timeout": options.requestTimeout = seconds(value)
            case "probe_timeout": options.probeTimeout = seconds(value)
            case "ping_interval": options.pingInterval = seconds(value)
            case "ping_timeout": options.pingTimeout = seconds(value)
            case "validate_output": options.validateOutput = value == true
            case "restart": options.restart = value == true
            case "shutdown_grace": options.shutdownGrace = seconds(value)
            case "max_message_bytes": options.maxMessageBytes = value.intValue
            case "max_nesting": options.maxNesting = value.intValue
            case "max_decoded_bytes": options.maxDecodedBytes = value.intValue
            case "proxy": options.proxy = value.stringValue
            case "ca": options.ca = value.stringValue
            case "max_in_flight": options.maxInFlight = value.intValue
            case "headers": options.headers = value.objectValue.map(texts)
            case "capabilities": options.capabilities = value
            case "tasks": options.tasks = TaskOptions()
            case "record": options.record = value.stringValue
            case "auth": options.auth = authorization(value)
            default: throw TricornError.misuse("unknown option \"\(name)\"")
            }
        }
        return options
    }

    private func texts(_ object: JSONObject) -> [String: String] {
        Dictionary(uniqueKeysWithValues: object.map { ($0.key, $0.value.stringValue ?? "") })
    }

    private func seconds(_ value: JSONValue?) -> Duration? { value?.doubleValue.map { .seconds($0) } }

    private func info(_ key: Int, _ client: Client) async -> JSONValue {
        let questions = await asked[key]?.all ?? []
        return known([
            ("protocolVersion", .string(client.protocolVersion.rawValue)), ("era", .string(client.era.rawValue)),
            ("serverInfo", client.serverInfo?.json), ("capabilities", client.capabilities.json),
            ("instructions", client.instructions.map(JSONValue.string)),
            ("initializeResult", client.initializeResult),
            ("sessionId", client.sessionID.map(JSONValue.string)), ("notifications", .array(heard[key] ?? [])),
            ("asked", .array(questions)),
        ])
    }

    private func call(_ id: Int, _ client: Client, _ command: JSONValue) async throws -> JSONValue {
        var options = RequestOptions(timeout: seconds(command["timeout"]), maxTimeout: seconds(command["max_timeout"]))
        let (reports, report) = AsyncStream.makeStream(of: RequestOptions.Progress.self)
        if command["progress"]?.boolValue == true { options.onProgress = { report.yield($0) } }
        let name = command["name"]?.stringValue ?? ""
        let arguments = command["arguments"] ?? [:]
        async let reported: Void = {
            for await one in reports {
                let progress: JSONValue = known([
                    ("progress", .double(one.progress)), ("total", one.total.map(JSONValue.double)),
                    ("message", one.message.map(JSONValue.string)),
                ])
                await output.say(["id": .int(id), "progress": progress])
            }
        }()
        defer { report.finish() }
        let result = try await client.callTool(name, arguments, options, meta: command["meta"])
        report.finish()
        await reported
        if command["whole"] == true { return result.json ?? nil }
        return known([
            ("text", .string(result.text)), ("is_error", .bool(result.isError)), ("content", result.json?["content"]),
            ("meta", result.meta ?? [:]), ("structured", result.structured),
        ])
    }

    func end() async {
        for client in clients.values { await client.close() }
    }
}

@main struct CaseRunner {
    static func main() async {
        let runner = Runner()
        let (lines, feed) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { feed.yield(line) }
            feed.finish()
        }
        for await line in lines { await runner.take(line) }
        await runner.end()
    }
}
