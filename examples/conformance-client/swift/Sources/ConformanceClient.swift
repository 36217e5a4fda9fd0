// The client the official conformance suite drives: `run URL`, the scenario is in the environment.
import Tricorn

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

typealias Scenario = @Sendable (Client) async throws -> Void

/// The tools; some of the suite's servers have none.
func offered(_ client: Client) async throws -> [Tool] {
    client.capabilities["tools"] == nil ? [] : try await client.listTools()
}

func context() throws -> JSONValue {
    try JSONValue(parsing: ProcessInfo.processInfo.environment["MCP_CONFORMANCE_CONTEXT"] ?? "{}")
}

let scenarios: [String: Scenario] = [
    "initialize": { client in _ = try await offered(client) },
    "tools_call": { client in
        _ = try await client.listTools()
        _ = try await client.callTool("add_numbers", ["a": 5, "b": 3])
    },
    "request-metadata": { client in
        if let tool = try await offered(client).first { _ = try await client.callTool(tool.name) }
    },
    "http-standard-headers": { client in
        for tool in try await client.listTools() { _ = try await client.callTool(tool.name) }
    },
    "http-custom-headers": { client in
        _ = try await client.listTools()
        for call in try context()["toolCalls"]?.arrayValue ?? [] {
            _ = try await client.callTool(call["name"]?.stringValue ?? "", call["arguments"] ?? [:])
        }
    },
    "http-invalid-tool-headers": { client in
        for tool in try await client.listTools() { _ = try await client.callTool(tool.name) }
    },
    "elicitation-sep1034-client-defaults": { client in
        for tool in try await client.listTools() { _ = try await client.callTool(tool.name) }
    },
    "sse-retry": { client in _ = try await client.callTool("test_reconnection") },
    "json-schema-ref-no-deref": { client in _ = try await client.listTools() },
    "json-schema-2020-12-preservation": { client in
        let tools = try await client.listTools()
        guard let tool = tools.first(where: { $0.name == "json_schema_2020_12_tool" }) else {
            throw ToolError("json_schema_2020_12_tool is not listed")
        }
        _ = try await client.callTool("json_schema_echo", ["schema": tool.inputSchema])
    },
    "auth": { client in _ = try await client.callTool("test-tool") },
    "sep-2322-client-request-state": { client in
        for tool in ["echo_state", "unrelated", "no_state", "no_result_type"] {
            _ = try await client.callTool("test_mrtr_\(tool)")
        }
    },
]

@main struct ConformanceClient {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        let scenario = environment["MCP_CONFORMANCE_SCENARIO"] ?? ""
        let isProtected = scenario.hasPrefix("auth/")
        guard let url = CommandLine.arguments.dropFirst().first,
            let run = scenarios[isProtected ? "auth" : scenario]
        else {
            throw ToolError("unknown scenario \(scenario)")
        }
        // The oldest releases of the suite do not say which revision they mean.
        var options = ClientOptions(revision: environment["MCP_CONFORMANCE_PROTOCOL_VERSION"] ?? "2025-11-25")
        if isProtected { options.auth = auth(scenario, try context()) }
        // What the suite asks a client to declare; answering is for the scenarios that need it.
        if scenario == "request-metadata" {
            options.capabilities = ["roots": [:], "sampling": [:], "elicitation": [:]]
        }
        if scenario.hasPrefix("elicitation-") {
            // What the user says nothing of has its default.
            options.elicitation = { _, _ in .accept([:]) }
        }
        if scenario == "sep-2322-client-request-state" {
            options.elicitation = { _, _ in .accept(["confirmed": true]) }
        }
        let client = try await connect(url, options)
        do {
            try await run(client)
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }
}
