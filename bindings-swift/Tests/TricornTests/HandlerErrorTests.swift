import Foundation
import Testing

@testable import Tricorn

private let legacy = "2025-11-25"

/// Secrecy of the errors of handlers: who may read them.
@Suite struct HandlerErrorTests {
    private func failing(_ heard: Locked<[String]>) -> Server {
        Server("test", onError: { error, _ in heard.with { $0.append("\(error)") } })
    }

    @Test func aQuestionThatWasNotSentIsNoSecret() async throws {
        let heard = Locked([String]())
        let app = failing(heard)
        app.tool("ask") { (_: NoArguments, context) in
            try await context.sample("x", maxTokens: 1).text
        }
        app.tool("slow") { (_: NoArguments, context) in
            "\(try await context.ask("roots/list", nil, .init(timeout: .milliseconds(50))))"
        }
        var options = ClientOptions(revision: legacy)
        options.roots = .asked { _ in
            try await Task.sleep(for: .seconds(60))
            return []
        }
        try await withClient(of: app, options) { client in
            for (tool, part) in [
                (
                    "ask",
                    #""sampling/createMessage" was not sent: the client does not declare the capability "sampling""#
                ),
                ("slow", "roots/list"),
            ] {
                let result = try await client.callTool(tool)
                #expect(result.isError && result.text.contains(part), "\(tool): \(result.text)")
            }
        }
        #expect(heard.with { $0 } == [])
    }

    @Test func anErrorThatAnswersAQuestionFailsTheCall() async throws {
        let app = failing(Locked([]))
        app.tool("ask") { (_: NoArguments, context) in try await context.sample("x", maxTokens: 1).text }
        app.prompt("ask") { (_: NoArguments, context) in try await context.sample("x", maxTokens: 1).text }
        var options = ClientOptions(revision: legacy)
        options.sampling = { _, _ in throw TricornError.rpc(code: -1, message: "the user said no") }
        try await withClient(of: app, options) { client in
            let told = "the question was answered with error -1: the user said no"
            let result = try await client.callTool("ask")
            #expect(result.isError && result.text == told, "\(result.text)")
            await expectCode(-32603, containing: told) { _ = try await client.getPrompt("ask") }
        }
    }

    @Test func errorsOfAnotherConnectionAreHidden() async throws {
        let upstream = Server("upstream", onError: { _, _ in })
        upstream.resource("a://secret") { () -> String in
            throw TricornError.rpc(code: 7, message: "no such row in db-7.internal")
        }
        upstream.tool("wait") { (_: NoArguments, _) in try await Task.sleep(for: .seconds(60)) }
        let other = try await connect(to: upstream)
        let heard = Locked([String]())
        let app = failing(heard)
        app.tool("read") { try await other.readResource("a://secret").text }
        app.tool("wait") {
            try await other.callTool("wait", [:], .init(timeout: .milliseconds(50))).text
        }
        app.tool("inATask") {
            try await Task { try await other.readResource("a://secret").text }.value
        }
        app.tool("again") { () -> String in
            do { return try await other.readResource("a://secret").text } catch {
                throw TricornError.rpc(code: 8, message: "try later")
            }
        }
        app.setSource(.resource, list: nil) { params, _ in try await other.request("resources/read", params) }
        try await withClient(of: app, ClientOptions(revision: legacy)) { client in
            for tool in ["read", "wait", "inATask"] {
                let result = try await client.callTool(tool)
                #expect(result.isError && result.text == "tool \"\(tool)\" failed: TricornError", "\(result.text)")
            }
            #expect(heard.with { $0.filter { $0.contains("db-7") }.count } == 2)
            #expect(heard.with { $0.count } == 3)
            // Its own words, and those of a proxy.
            await expectCode(8, containing: "try later") { _ = try await client.callTool("again") }
            await expectCode(7, containing: "db-7") { _ = try await client.readResource("a://secret") }
        }
        await other.close()
    }

    @Test func clientsHaveNoServersContext() async throws {
        let app = failing(Locked([])), seen = Locked([String]())
        app.tool("ask") { (_: NoArguments, context) in
            let text = try await context.sample("x", maxTokens: 1).text
            seen.with { $0.append(Context.current == nil ? "none" : "current") }
            return text
        }
        var options = ClientOptions(revision: legacy)
        options.sampling = { _, context in
            seen.with { $0.append(Context.current == nil ? "none" : "current") }
            return context.request?.method ?? "nothing"
        }
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("ask").text, "sampling/createMessage")
        }
        #expect(seen.with { $0 } == ["none", "current"])
    }

    @Test(arguments: [legacy, "2026-07-28"])
    func anErrorWithDataThatAreNoJSONIsAnswered(revision: String) async throws {
        let heard = Locked([String]())
        let app = failing(heard)
        app.tool("fail") { () -> String in
            throw TricornError.rpc(code: 4242, message: "m", data: ["x": [1, .double(.nan)]])
        }
        app.tool("ask") { (_: NoArguments, context) in
            try await context.sample("x", maxTokens: 1).text
        }
        var options = ClientOptions(revision: revision)
        options.sampling = { _, _ in throw TricornError.rpc(code: 1, message: "m", data: .double(.infinity)) }
        try await withClient(of: app, options) { client in
            await expectCode(-32603, containing: #"tool "fail" failed: its error cannot be sent"#) {
                _ = try await client.callTool("fail")
            }
            let hidden = "its error cannot be sent"
            if revision == "2026-07-28" {
                await expectCode(-32603, containing: hidden) { _ = try await client.callTool("ask") }
            } else {
                let result = try await client.callTool("ask")
                #expect(result.isError && result.text.contains(hidden), "\(result.text)")
            }
        }
        #expect(heard.with { $0 }.first?.contains("x[1]: nan is no JSON number") == true)
    }
}
