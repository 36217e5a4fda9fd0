// A client program that does what each line says, as tests/cases/runners do, and keeps nothing of what it gets.
// One JSON command a line on standard input, one line for each on standard output.
import Foundation
import Tricorn

actor Victim {
    private var clients: [Int: Client] = [:]

    func take(_ line: String) {
        guard let command = try? JSONValue(parsing: line) else { return }
        Task { await answer(command) }
    }

    private func answer(_ command: JSONValue) async {
        let id = command["id"] ?? nil
        var said: JSONValue = ["id": id, "result": [:]]
        do {
            try await perform(command)
        } catch {
            let failed = error as? TricornError
            let kind = failed?.kind.rawValue ?? "other"
            let message = (failed?.message ?? "\(error)").prefix(300)
            said = ["id": id, "error": ["kind": .string(kind), "message": .string(String(message))]]
        }
        FileHandle.standardOutput.write(Data("\(said)\n".utf8))
    }

    private func perform(_ command: JSONValue) async throws {
        func text(_ name: String) -> String { command[name]?.stringValue ?? "" }
        let key = command["client"]?.intValue ?? 0
        switch text("do") {
        case "connect":
            clients[key] = try await connect(target(command["target"] ?? [:]), options(command))
            return
        case "close":
            await clients.removeValue(forKey: key)?.close()
            return
        default: break
        }
        guard let client = clients[key] else { throw ToolError("no such client") }
        switch text("do") {
        case "list_tools": _ = try await client.listTools()
        case "call_tool":
            _ = try await client.callTool(
                text("name"), command["arguments"] ?? [:], RequestOptions(timeout: seconds(command["timeout"])))
        case "ping": try await client.ping()
        case "list" where text("what") == "resources": _ = try await client.listResources()
        case "list": _ = try await client.listResourceTemplates()
        case "read_resource": _ = try await client.readResource(text("uri"))
        case "get_prompt": _ = try await client.getPrompt(text("name"))
        case "complete":
            _ = try await client.complete(.prompt(text("prompt")), argument: text("argument"), value: text("value"))
        case let other: throw ToolError("\(other) is no command")
        }
    }

    private func target(_ said: JSONValue) -> ConnectionTarget {
        if let url = said["url"]?.stringValue { return .url(url) }
        let arguments = (said["args"]?.arrayValue ?? []).compactMap(\.stringValue)
        return .command(said["command"]?.stringValue ?? "", arguments: arguments)
    }

    private func options(_ command: JSONValue) throws -> ClientOptions {
        var options = ClientOptions()
        options.onNotification = { _ in }
        for (name, value) in command["options"]?.objectValue ?? [:] {
            switch name {
            case "revision": options.revision = value.stringValue.map(ProtocolRevision.init(rawValue:))
            case "request_timeout": options.requestTimeout = seconds(value)
            case "probe_timeout": options.probeTimeout = seconds(value)
            case "auth":
                var auth = ClientAuth(
                    clientID: value["client_id"]?.stringValue, clientSecret: value["client_secret"]?.stringValue)
                auth.grant = value["grant"]?.stringValue.flatMap(ClientAuth.Grant.init)
                options.auth = auth
            default: throw TricornError.misuse("unknown option \"\(name)\"")
            }
        }
        let answers = command["answers"] ?? [:]
        if let roots = answers["roots"]?.arrayValue {
            options.roots = .list(roots.map { ClientRoot(uri: $0["uri"]?.stringValue ?? "") })
        }
        if let answer = answers["sampling"] {
            options.sampling = { _, _ in try Types.CreateMessageResult(json: answer) }
        }
        if let answer = answers["elicitation"] {
            options.elicitation = { _, _ in
                answer["action"] == "accept" ? .accept(answer["content"]?.objectValue) : .decline
            }
        }
        return options
    }

    private func seconds(_ value: JSONValue?) -> Duration? { value?.doubleValue.map { .seconds($0) } }

    func end() async {
        for client in clients.values { await client.close() }
    }
}

@main struct HostileVictim {
    static func main() async {
        let victim = Victim()
        let (lines, feed) = AsyncStream.makeStream(of: String.self)
        Thread.detachNewThread {
            while let line = readLine() { feed.yield(line) }
            feed.finish()
        }
        for await line in lines { await victim.take(line) }
        await victim.end()
    }
}
