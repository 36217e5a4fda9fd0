// Our client in Swift: interop-client PLAN
#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif
import Tricorn

guard CommandLine.arguments.count > 1 else { throw TricornError.misuse("usage: interop-client PLAN") }
let plan = try JSONValue(parsing: CommandLine.arguments[1])
let answers = plan["answers"] ?? [:]

/// Messages that the server sent by itself.
actor Heard {
    private var lists: [String: [JSONValue]] = [:]
    private var waiting: [(String, Int, CheckedContinuation<Void, any Error>)] = []

    func add(_ what: String, _ value: JSONValue) {
        lists[what, default: []].append(value)
        settle { $0 == what && lists[what, default: []].count >= $1 ? .success(()) : nil }
    }

    /// The list, once it has so many; waits for ten seconds.
    func wait(_ what: String, _ count: Int) async throws -> JSONValue {
        if lists[what, default: []].count < count {
            let late = Task {
                try await Task.sleep(for: .seconds(10))
                settle { name, _ in name == what ? .failure(TricornError.misuse("it was not heard")) : nil }
            }
            defer { late.cancel() }
            try await withCheckedThrowingContinuation { waiting.append((what, count, $0)) }
        }
        return .object([what: .array(lists[what] ?? [])])
    }

    private func settle(_ outcome: (String, Int) -> Result<Void, any Error>?) {
        waiting.removeAll { what, count, continuation in
            guard let outcome = outcome(what, count) else { return false }
            continuation.resume(with: outcome)
            return true
        }
    }
}

let heard = Heard()

/// Subscriptions; what comes is heard as `changes`.
actor Streams {
    private var open: Listening?

    func listen(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
        let uris = (step["uris"]?.arrayValue ?? []).compactMap(\.stringValue)
        let listening = try await client.listen(tools: step["tools"] == true, uris: uris)
        open = listening
        Task { [heard] in
            do {
                for try await change in listening {
                    await heard.add("changes", .string(change == .toolsListChanged ? "tools" : change.uri ?? ""))
                }
            } catch {
                await heard.add("changes", .string("\(error)"))
            }
        }
        let honoured = listening.honoured
        return ["tools": .bool(honoured.tools), "uris": .array(honoured.uris.map { .string($0) })]
    }

    func close() { open?.close() }
}

let streams = Streams()
var options = ClientOptions(revision: plan["revision"]?.stringValue)
options.sampling = { request, _ in
    let content = request.json["messages"]?.arrayValue?.last?["content"]
    return "heard \((content?["text"] ?? content?.arrayValue?.first?["text"])?.stringValue ?? "")"
}
options.elicitation = { [form = answers["elicitation"]?.objectValue] _, _ in .accept(form) }
options.roots = .list((answers["roots"]?.arrayValue ?? []).map { ClientRoot(uri: $0.stringValue ?? "") })
// Of older revisions they are another thing.
if plan["revision"]?.stringValue == nil { options.tasks = TaskOptions() }
options.onLog = { [heard] _, _, data in Task { await heard.add("logs", data) } }
options.onResourceUpdated = { [heard] uri in Task { await heard.add("uris", .string(uri)) } }

func text(_ step: JSONValue, _ name: String) -> String { step[name]?.stringValue ?? "" }
func names(_ list: [String]) -> JSONValue { ["names": .array(list.map { .string($0) })] }

func call(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    // Reports come one after the other, and all before the call returns.
    final class Reports: @unchecked Sendable { var all: [JSONValue] = [] }
    let reports = Reports()
    var request = RequestOptions()
    if step["progress"] == true {
        request.onProgress = { reports.all.append([.double($0.progress), $0.total.map { .double($0) } ?? .null]) }
    }
    let result = try await client.callTool(text(step, "name"), step["arguments"] ?? [:], request)
    let blocks = result.json?["content"]?.arrayValue ?? []
    return [
        "error": .bool(result.isError), "text": blocks.first?["text"] ?? "",
        "types": .array(blocks.map { $0["type"] ?? nil }), "structured": result.structured ?? nil,
        "progress": .array(reports.all),
    ]
}

let target: ConnectionTarget
if let url = plan["target"]?.stringValue {
    target = .url(url)
} else {
    let words = (plan["target"]?.arrayValue ?? []).compactMap(\.stringValue)
    target = .command(words[0], arguments: Array(words.dropFirst()))
}

/// Fifty calls at once.
func many(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    try await withThrowingTaskGroup(of: JSONValue.self) { group in
        for _ in 0..<50 { group.addTask { try await call(client, step) } }
        var all: [JSONValue] = []
        for try await result in group { all.append(result) }
        return ["all": .array(all)]
    }
}

/// A call that is given up at once, and the next one.
func cancel(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    let given = Task { try await call(client, step) }
    try await Task.sleep(for: .milliseconds(10))
    given.cancel()
    _ = await given.result
    return try await call(client, step)
}

/// Asks whoever has started this for something, and waits until it is done.
func ask(_ what: String) async throws {
    print(["ask": .string(what)] as JSONValue)
    fflush(nil)
    let answered = await Task.detached { readLine() != nil }.value
    if !answered { throw TricornError.misuse("nobody answers") }
}

/// A call that fails when it takes longer than ten seconds.
func soon(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    try await withThrowingTaskGroup(of: JSONValue?.self) { group in
        group.addTask { try await call(client, step) }
        group.addTask {
            try await Task.sleep(for: .seconds(10))
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let result = first else { throw Late() }
        return result
    }
}

/// A call to a server that is gone does not end.
struct Late: Error {}

/// Between two calls the server is killed: it is started again, or the client says at once that it is gone.
func killed(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    try await ask("kill")
    for _ in 0..<2 {
        do {
            return try await soon(client, step)
        } catch let late as Late {
            throw late
        } catch {}
    }
    let fresh = try await connect(target, options)
    let result = try await call(fresh, step)
    await fresh.close()
    return result
}

/// The names of a list, after something of its first entry.
func resources(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    let list = try await client.listResources().map(\.uri)
    if step["first"] == true, let uri = list.first {
        let contents = try await client.readResource(uri).json["contents"]?.arrayValue ?? []
        if contents.isEmpty { throw TricornError.misuse("\(uri) has no contents") }
    }
    return names(list)
}

/// As `resources`, of the first prompt that needs no arguments.
func prompts(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    let list = try await client.listPrompts()
    let whole = list.first { prompt in !(prompt.arguments ?? []).contains { $0.required == true } }
    if step["first"] == true, let whole {
        let messages = try await client.getPrompt(whole.name).json["messages"]?.arrayValue ?? []
        if messages.isEmpty { throw TricornError.misuse("prompt \(whole.name) has no messages") }
    }
    return names(list.map(\.name))
}

func cached(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    var said: JSONValue = [:]
    var hits: Int?
    for _ in 0..<2 {
        hits = client.metrics["cache"]?["hits"]?.intValue
        if let uri = step["uri"]?.stringValue {
            said = try await client.readResource(uri).json
        } else {
            said = try await client.listToolsPage().json
        }
    }
    let kept = client.metrics["cache"]?["hits"]?.intValue != hits
    return ["ttlMs": said["ttlMs"] ?? nil, "cacheScope": said["cacheScope"] ?? nil, "kept": .bool(kept)]
}

func runTask(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    let task = try await client.callToolTask(text(step, "name"), step["arguments"] ?? [:])
    let result = try await task.result()
    let status = task.created?["task"]?["status"]
    return ["created": status ?? nil, "error": .bool(result.isError), "text": .string(result.text)]
}

func perform(_ client: Client, _ step: JSONValue) async throws -> JSONValue {
    let uri = text(step, "uri")
    let count = step["count"]?.intValue ?? 0
    switch text(step, "do") {
    case "tools": return names(try await client.listTools().map(\.name))
    case "resources": return try await resources(client, step)
    case "templates": return names(try await client.listResourceTemplates().map(\.uriTemplate))
    case "prompts": return try await prompts(client, step)
    case "call": return try await call(client, step)
    case "many": return try await many(client, step)
    case "cancel": return try await cancel(client, step)
    case "restart":
        try await ask("restart")
        return try await call(client, step)
    case "killed": return try await killed(client, step)
    case "read": return try await client.readResource(uri).json["contents"]?.arrayValue?.first ?? nil
    case "prompt":
        let message = try await client.getPrompt(text(step, "name"), step["arguments"] ?? [:]).json["messages"]?
            .arrayValue?.first
        return ["role": message?["role"] ?? nil, "text": message?["content"]?["text"] ?? nil]
    case "complete":
        let found = try await client.complete(
            .prompt(text(step, "prompt")), argument: text(step, "argument"), value: text(step, "value"))
        return ["values": .array(found.values.map { .string($0) })]
    case "subscribe": try await client.subscribe(uri)
    case "unsubscribe": try await client.unsubscribe(uri)
    case "level": try await client.setLogLevel(.debug)
    case "updated": return try await heard.wait("uris", count)
    case "logs": return try await heard.wait("logs", count)
    case "listen": return try await streams.listen(client, step)
    case "changes": return try await heard.wait("changes", count)
    case "unlisten": await streams.close()
    case "cached": return try await cached(client, step)
    case "task": return try await runTask(client, step)
    case let other: throw TricornError.misuse("what is \(other)?")
    }
    return [:]
}

let client = try await connect(target, options)
var said: [JSONValue] = []
for step in plan["steps"]?.arrayValue ?? [] {
    do {
        said.append(["result": try await perform(client, step)])
    } catch {
        said.append(["error": .string("\(error)")])
    }
}
print(["protocolVersion": .string(client.protocolVersion.rawValue), "steps": .array(said)] as JSONValue)
await client.close()
