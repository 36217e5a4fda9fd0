// The tools of tests/cases/FIXTURES.md, in its order.
import Tricorn

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What `slow` has done so far.
private actor Counts {
    private(set) var started = 0
    private(set) var cancelled = 0
    private(set) var finished = 0

    func start() { started += 1 }
    func cancel() { cancelled += 1 }
    func finish() { finished += 1 }

    var json: JSONValue {
        [
            "started": .int(started), "cancelled": .int(cancelled), "finished": .int(finished),
            "running": .int(started - cancelled - finished),
        ]
    }
}

/// The ordinary error of a careless author.
private struct Trouble: Error, CustomStringConvertible {
    var description: String
}

private struct Add: Codable { var a: Int, b: Int }
private struct Text: Codable { var text: String }
private struct Wait: Codable { var ms: Int }
private struct Kind: Codable { var kind: String }
private struct City: Codable { var city: String }
private struct Goal: Codable { var to: Int }
private struct Touched: Codable { var uri: String }

private struct Weather: Codable {
    var city: String
    var temperature: Double
    var conditions: String
}

private let allContent: [ContentBlock] = [
    .text(
        "one",
        .init(
            annotations: ["audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"],
            meta: ["com.example/n": 1])),
    .image(png, mimeType: "image/png"),
    .audio(wav, mimeType: "audio/wav"),
    .resourceLink(
        .init(
            uri: "test://linked", name: "linked", title: "Linked", description: "A link", mimeType: "text/plain",
            size: 3)),
    .resource(.init(uri: "test://text", mimeType: "text/plain", text: "abc")),
    .resource(.init(uri: "test://blob", mimeType: "application/octet-stream", blob: Data([0, 1, 2]))),
    .text("last"),
]

func addContractTools(to app: Server) {
    let counts = Counts()

    app.tool("add", "Add two integers") { (input: Add) in
        let (sum, overflow) = input.a.addingReportingOverflow(input.b)
        if overflow { throw ToolError("the sum is too large") }
        return sum
    }
    app.tool(
        "echo", "Return the text unchanged", title: "Echo",
        annotations: .init(
            title: "Echo (hint)", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false
        ),
        icons: [
            .init(
                src: "https://example.com/echo.png", mimeType: "image/png", sizes: ["48x48", "any"], theme: .dark)
        ],
        meta: ["com.example/color": "blue"],
        inputSchema: [
            "type": "object", "properties": ["text": ["type": "string", "description": "What to say"]],
            "required": ["text"], "additionalProperties": false,
        ]
    ) { (input: Text) in input.text }
    let support: TaskSupport? = Everything.setting("EVERYTHING_TASKS").map { _ in .optional }
    app.tool("slow", "Wait, cancellably", taskSupport: support) { (input: Wait, context) in
        await counts.start()
        context.progress(0, total: Double(input.ms), message: "started")
        do {
            // A cancelled sleep keeps its timer until it is due: one long sleep would keep it for ten minutes.
            let end = ContinuousClock.now + .milliseconds(input.ms)
            while case let left = end - .now, left > .zero { try await Task.sleep(for: min(left, .milliseconds(100))) }
        } catch {
            await counts.cancel()
            throw error
        }
        await counts.finish()
        context.progress(Double(input.ms), total: Double(input.ms), message: "done")
        return "slept \(input.ms) ms"
    }
    app.tool("fail", "Fail in one of three ways") { (input: Kind) in
        switch input.kind {
        case "tool": throw ToolError("the tool says no")
        case "exception": throw Trouble(description: "secret detail")
        case "protocol":
            throw TricornError.rpc(code: 4242, message: "custom refusal", data: ["hint": "try another kind"])
        default: return "no failure"
        }
    }
    app.tool("all_content", "Every kind of content") { allContent }
    app.tool(
        "structured", "A weather report",
        inputSchema: [
            "type": "object", "properties": ["city": ["type": "string", "minLength": 1]], "required": ["city"],
        ],
        outputSchema: [
            "type": "object",
            "properties": [
                "city": ["type": "string"], "temperature": ["type": "number"], "conditions": ["type": "string"],
            ],
            "required": ["city", "temperature", "conditions"],
        ]
    ) { (input: City) in Weather(city: input.city, temperature: 22.5, conditions: "sunny") }
    app.tool(
        "structured_invalid", "Breaks its own output schema", inputSchema: ["type": "object"],
        outputSchema: ["type": "object", "properties": ["n": ["type": "integer"]], "required": ["n"]]
    ) { ["n": "not a number"] }
    app.tool(
        "any_value", "Return any JSON value",
        inputSchema: ["type": "object", "properties": ["value": [:]], "required": ["value"]],
        outputSchema: ["type": ["object", "array", "string", "number", "boolean", "null"]]
    ) { (input: JSONValue) in input["value"] ?? .null }
    app.tool("context", "What is known about this request") { (_: NoArguments, context) in
        context.request?.json ?? [:]
    }
    app.tool(
        "draft7", "Arguments described in draft-07",
        inputSchema: [
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "definitions": ["label": ["type": "string", "maxLength": 3]],
            "properties": [
                "pair": [
                    "type": "array", "items": [["$ref": "#/definitions/label"], ["type": "integer"]],
                    "additionalItems": false,
                ]
            ],
            "required": ["pair"],
        ]
    ) { (_: JSONValue) in "draft7 ok" }
    app.tool("empty", "Return nothing") { (_: NoArguments, _) in }
    app.tool("print", "Print carelessly") { (input: Text) in
        print(input.text)
        return "printed"
    }
    app.tool("count", "Report each number up to this one") { (input: Goal, context) in
        for n in stride(from: 1, through: input.to, by: 1) { context.progress(Double(n), total: Double(input.to)) }
        return "counted to \(input.to)"
    }
    app.tool("touch", "Say that a resource has changed") { [weak app] (input: Touched) in
        app?.notifyResourceUpdated(input.uri)
        return "touched \(input.uri)"
    }
    app.tool("roots", "The URIs of the client's roots") { (_: NoArguments, context) in
        try await context.listRoots().roots.map(\.uri).joined(separator: " ")
    }
    app.tool("test_metrics", "Gauges of this server") { [weak app] () -> JSONValue in
        ["server": app?.metrics.json ?? [:], "slow": await counts.json]
    }
}
