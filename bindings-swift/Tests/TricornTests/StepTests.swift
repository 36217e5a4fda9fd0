import Foundation
import Testing

@testable import Tricorn

private struct Trouble: Error {}

private struct Order: Codable, Sendable, Equatable {
    var id: Int
    var at: Date
    var seats: [String]
    var note: String?
}

/// Steps of a handler, done once though it runs several times, and the rounds that it keeps itself.
@Suite struct StepTests {
    @Test(arguments: asking) func aStepIsDoneOnce(revision: String) async throws {
        let app = Server("steps"), orders = Count(), sent = Count()
        app.tool("order") { (_: NoArguments, context) in
            let order = try await context.step("order") {
                await Task.yield()
                return Order(id: orders.more(), at: Date(timeIntervalSince1970: 7), seats: ["1a"], note: nil)
            }
            let number = try await context.step("number") { orders.value * 100 }
            _ = try await context.elicit("a?", schema: form("a"))
            try await context.step("send") { _ = sent.more() }
            let none = try await context.step("none") { nil as Int? }
            _ = try await context.elicit("b?", schema: form("b"))
            let same = order == Order(id: 1, at: Date(timeIntervalSince1970: 7), seats: ["1a"], note: nil)
            return "\(same) \(number) \(none == nil)"
        }
        try await withClient(of: app, Interviewee().options(revision)) { client in
            expect(try await client.callTool("order").text, "true 100 true")
        }
        #expect(orders.value == 1 && sent.value == 1)
    }

    @Test(arguments: asking) func aStepThatFailsIsNotDone(revision: String) async throws {
        let app = Server("steps"), tries = Count()
        app.tool("retry") { (_: NoArguments, context) in
            let tried = try? await context.step("try") { () async throws -> Int in
                await Task.yield()
                if tries.more() == 1 { throw Trouble() }
                return 7
            }
            _ = try await context.elicit("a?", schema: form("a"))
            return tried.map { "\($0)" } ?? "failed"
        }
        app.tool("asks in it") { (_: NoArguments, context) in
            try await context.step("ask") { try await context.elicit("a?", schema: form("a")).content?["a"] ?? .null }
        }
        try await withClient(of: app, Interviewee().options(revision)) { client in
            let isModern = revision == asking[2]
            expect(try await client.callTool("retry").text, isModern ? "7" : "failed")
            #expect(tries.value == (isModern ? 2 : 1))
            expect(try await client.callTool("asks in it").text, "<a>")
        }
    }

    /// A question ends the run, and with it all else that the handler does.
    @Test(arguments: [false, true]) func aStepAtWorkIsDoneBeforeTheHandlerRunsAgain(isAlone: Bool) async throws {
        let app = Server("steps"), orders = Count(), begun = Event(), ended = Event()
        let order: @Sendable () async throws -> Int = {
            await begun.set()
            _ = await ended.value()
            for _ in 0..<100 { await Task.yield() }
            try Task.checkCancellation()
            return orders.more()
        }
        let ask: @Sendable (Context) async throws -> Void = { context in
            _ = await begun.value()
            do {
                _ = try await context.elicit("a?", schema: form("a"))
            } catch {
                await ended.set()
                throw error
            }
        }
        app.tool("order") { (_: NoArguments, context) in
            if isAlone {
                let number = Task { try await context.step("order", order) }
                try await ask(context)
                return "\(try await number.value)"
            }
            async let number = context.step("order", order)
            try await ask(context)
            return "\(try await number)"
        }
        try await withClient(of: app, Interviewee().options(asking[2])) { client in
            expect(try await client.callTool("order").text, "1")
        }
        #expect(orders.value == 1)
    }

    @Test(arguments: asking) func stepsHaveNamesOfTheirOwn(revision: String) async throws {
        let app = Server("steps", onError: { _, _ in })
        app.tool("twice") { (_: NoArguments, context) in
            _ = try await context.step("one") { 1 }
            do {
                return "\(try await context.step("one") { 2 })"
            } catch TricornError.misuse(let message) {
                return message
            }
        }
        app.tool("changes") { (_: NoArguments, context) in
            let runs = try context.requestState == nil ? 1 : 2
            do {
                if runs == 2 { return "\(try await context.step("one") { 2 })" }
                _ = try await context.step("one") { "text" }
                throw InputRequired(state: 1)
            } catch TricornError.misuse(let message) {
                return message
            }
        }
        try await withClient(of: app, Interviewee().options(revision)) { client in
            let said = try await client.callTool("twice").text
            #expect(said.contains(#"step "one""#), "\(said)")
            let changed = try await client.callTool("changes").text
            #expect(changed.contains(#"step "one""#) && changed.contains("text"), "\(changed)")
        }
    }

    // MARK: - by hand

    @Test(arguments: asking) func roundsMayBeKeptByHand(revision: String) async throws {
        struct Kept: Codable { var round: Int }
        let heard = Locked([String]())
        let app = Server("hands", onError: { error, _ in heard.with { $0.append("\(error)") } })
        app.tool("name") { (_: NoArguments, context) in
            let answers = try context.inputResponses, round = try context.requestState(as: Kept.self)?.round ?? 0
            guard round == 2, let answer = answers["who"] else {
                let state = try context.requestState
                #expect(round > 0 || (answers.isEmpty && state == nil))
                let question = Question.elicit("name \(round)?", schema: form("name"))
                let kept = try JSONValue(encoding: Kept(round: round + 1))
                throw InputRequired(["who": question, "roots": Question.listRoots()], state: kept)
            }
            return "\(answer["content"]?["name"] ?? .null) \(answers["roots"]?["roots"]?[0]?["uri"] ?? .null)"
        }
        let user = Interviewee()
        var options = user.options(revision) { message in .accept(["name": .string(message)]) }
        options.roots = ["/a"]
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("name").text, #""name 1?" "file:///a""#)
        }
        #expect(user.asked == ["name 0?", "name 1?"])
        #expect(heard.with { $0 } == [])
    }

    @Test(arguments: ["2024-11-05", "2025-03-26"] + asking)
    func aRequestMayComeBackWithItsStateAlone(revision: String) async throws {
        let app = Server("hands", onError: { _, _ in })
        app.tool("later") { (_: NoArguments, context) in
            let round = try context.requestState(as: Int.self) ?? 0
            guard round == 2 else { throw InputRequired(state: .int(round + 1)) }
            return "done"
        }
        app.tool("nothing") { (_: NoArguments, _) -> String in throw InputRequired() }
        app.tool("another") { (_: NoArguments, context) in
            guard try context.requestState == nil else { return "\(try context.requestState(as: [Int].self) ?? [])" }
            throw InputRequired(state: "text")
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            expect(try await client.callTool("later").text, "done")
            await expectCode(-32603, containing: "InputRequired") { _ = try await client.callTool("nothing") }
            expect(try await client.callTool("another").text, "tool \"another\" failed: DecodingError")
        }
    }

    @Test func clientsHaveNoRounds() async throws {
        let app = Server("asks")
        app.tool("ask") { (_: NoArguments, context) in
            do { return try await context.sample("x", maxTokens: 1).text } catch let error as TricornError {
                return error.message
            }
        }
        let warned = Event()
        var options = ClientOptions(revision: asking[1])
        options.sampling = { _, _ in throw InputRequired(state: 1) }
        options.onWarning = { text in Task { await warned.set(text) } }
        try await withClient(of: app, options) { client in
            let text = try await client.callTool("ask").text
            #expect(text.contains("InputRequired"), "\(text)")
        }
        #expect(await warned.value()?.contains("InputRequired") == true)
    }

    // MARK: - options

    @Test func secretsAndLimitsAreChecked() async throws {
        let wrong: [(Server, String)] = [
            (Server("keys", requestStateKeys: ["short"]), "requestStateKeys"),
            (Server("keys", requestStateKeys: []), "expected secrets of at least 32 bytes, got none"),
            (Server("keys", requestStateTTL: .zero - .seconds(1)), "requestStateTTL"),
            (Server("keys", maxRequestStateBytes: 0), "maxRequestStateBytes"),
        ]
        for (app, option) in wrong {
            do {
                try await withClient(of: app) { _ in }
                Issue.record("\(option) was taken")
            } catch TricornError.misuse(let message) {
                #expect(message.contains(option) && !message.contains("short\""), "\(message)")
            }
        }
    }

    @Test func theStateHasALimit() async throws {
        let keys = ["a secret of more than thirty-two bytes, for tests"]
        let app = Server("keys", requestStateKeys: keys, requestStateTTL: .seconds(60), maxRequestStateBytes: 400)
        app.tool("keep") { (input: Wait, context) in
            guard try context.requestState == nil else { return "kept" }
            throw InputRequired(state: .string(String(repeating: "x", count: input.ms)))
        }
        try await withClient(of: app, ClientOptions(revision: asking[2])) { client in
            expect(try await client.callTool("keep", ["ms": 10]).text, "kept")
            await expectCode(-32603, containing: "400") { _ = try await client.callTool("keep", ["ms": 1000]) }
        }
    }
}
