// Tools that run as tasks: the extension of 2026-07-28 where the client declares it, those of 2025-11-25 where the
// client asks for one.
import Tricorn

private func form(_ name: String, _ type: JSONValue) -> JSONValue {
    ["type": "object", "properties": [name: ["type": type]], "required": [.string(name)]]
}

private struct Greet: Codable { var name: String }
private struct Delete: Codable { var filename: String }

private struct Compute: Codable {
    var seconds: Double?
    var label: String?
}

func addTaskTools(to app: Server) {
    app.tool("greet", "Greet someone, at once") { (who: Greet) in "Hello, \(who.name)!" }
    app.tool("slow_compute", "Compute for some seconds", taskSupport: .optional) { (asked: Compute, _) in
        let seconds = asked.seconds ?? 0
        guard (0...1e9).contains(seconds) else { throw ToolError("nobody waits for \(seconds) s") }
        try await Task.sleep(for: .seconds(seconds))
        let time = Int(exactly: seconds).map { "\($0)" } ?? "\(seconds)"
        return "computed \(asked.label ?? "") in \(time) s"
    }
    app.tool("failing_job", "Work for a second and fail", taskSupport: .required) { () async throws -> String in
        try await Task.sleep(for: .seconds(1))
        throw ToolError("the job failed")
    }
    app.tool("protocol_error_job", "End with a JSON-RPC error", taskSupport: .required) { () -> String in
        throw TricornError.rpc(code: -32603, message: "the job broke")
    }
    app.tool("confirm_delete", "Ask before something is deleted", taskSupport: .required) { (file: Delete, context) in
        let answer = try await context.elicit("Delete \(file.filename)?", schema: form("confirm", "boolean"))
        return "\(answer.content?["confirm"] == true ? "deleted" : "kept") \(file.filename)"
    }
    app.tool("multi_input", "Ask two things at once", taskSupport: .required) { (_: NoArguments, context) in
        let (left, right) = try await context.askAll(
            .elicit("Left?", schema: form("name", "string")), .elicit("Right?", schema: form("confirm", "boolean")))
        return "\(left.content?["name"]?.stringValue ?? "") \(right.content?["confirm"] ?? .null)"
    }
    app.tool("test_tool_with_task", "Ask, then go on as a task") { (_: NoArguments, context) in
        let answer = try await context.elicit("What is your name?", schema: form("name", "string"))
        try context.runAsTask()
        try await Task.sleep(for: .milliseconds(100))
        return "Hello, \(answer.content?["name"]?.stringValue ?? "")!"
    }
}
