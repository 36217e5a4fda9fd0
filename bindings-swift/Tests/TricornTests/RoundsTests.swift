import Foundation
import Testing

@testable import Tricorn

private let modern = "2026-07-28"

/// Those that have questions to the user.
let asking = ["2025-06-18", "2025-11-25", modern]

private struct Name: Codable, Sendable { var name: String }

private struct Wrapped: Error { var inner: any Error }

/// A form of one required text.
func form(_ name: String) -> JSONValue {
    ["type": "object", "properties": [name: ["type": "string"]], "required": [.string(name)]]
}

/// Answers `a?` with `<a>` as the member `a`, and keeps what it was asked.
final class Interviewee: Sendable {
    private let messages = Locked([String]())

    var asked: [String] { messages.with { $0 } }

    func options(
        _ revision: String, _ answer: @escaping @Sendable (String) -> ElicitationAnswer = Interviewee.fill
    ) -> ClientOptions {
        var options = ClientOptions(revision: revision)
        options.elicitationModes = [.form, .url]
        options.elicitation = { [messages] question, _ in
            messages.with { $0.append(question.message) }
            return question.mode == .url ? .accept() : answer(question.message)
        }
        options.onWarning = { _ in }
        return options
    }

    static func fill(_ message: String) -> ElicitationAnswer {
        let name = String(message.dropLast())
        return .accept([name: .string("<\(name)>")])
    }
}

/// A count of events.
final class Count: Sendable {
    private let held = Locked(0)

    var value: Int { held.with { $0 } }

    @discardableResult
    func more() -> Int {
        held.with {
            $0 += 1
            return $0
        }
    }
}

/// Questions in every revision that has them: one handler, asked by requests or in rounds.
@Suite struct RoundsTests {
    @Test(arguments: asking) func oneQuestionIsAcceptedDeclinedOrCancelled(revision: String) async throws {
        let app = Server("asks")
        app.tool("hello") { (_: NoArguments, context) in
            let answer = try await context.elicit("name?", as: Name.self)
            return answer.content.map { "hello \($0.name)" } ?? answer.action.rawValue
        }
        let answers: [(ElicitationAnswer, String)] = [
            (.accept(["name": "Ada"]), "hello Ada"), (.decline, "decline"), (.cancel, "cancel"),
        ]
        for (answer, text) in answers {
            let user = Interviewee()
            try await withClient(of: app, user.options(revision) { _ in answer }) { client in
                expect(try await client.callTool("hello").text, text)
            }
            #expect(user.asked == ["name?"])
        }
    }

    @Test(arguments: asking) func questionsFollowOneAnother(revision: String) async throws {
        let app = Server("asks"), runs = Count()
        app.tool("three") { (_: NoArguments, context) in
            runs.more()
            var given: [String] = []
            // The same question twice is two questions.
            for name in ["a", "b", "b"] {
                given.append(try await context.elicit("\(name)?", schema: form(name)).content?[name]?.stringValue ?? "")
            }
            return given.joined(separator: " ")
        }
        let user = Interviewee()
        try await withClient(of: app, user.options(revision)) { client in
            expect(try await client.callTool("three").text, "<a> <b> <b>")
        }
        #expect(user.asked == ["a?", "b?", "b?"])
        #expect(runs.value == (revision == modern ? 4 : 1))
    }

    @Test(arguments: asking) func questionsBesideOneAnotherAreOneRound(revision: String) async throws {
        let app = Server("asks"), runs = Count()
        app.tool("async let") { (_: NoArguments, context) in
            runs.more()
            async let a = context.elicit("a?", schema: form("a"))
            async let b = context.elicit("b?", schema: form("b"))
            return "\(try await a.content?["a"] ?? .null) \(try await b.content?["b"] ?? .null)"
        }
        app.tool("task group") { (_: NoArguments, context) in
            runs.more()
            let given = try await withThrowingTaskGroup(of: String.self) { group in
                for name in ["a", "b"] {
                    group.addTask {
                        "\(try await context.elicit("\(name)?", schema: form(name)).content?[name] ?? .null)"
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            return given.sorted().joined(separator: " ")
        }
        app.tool("ask all") { (_: NoArguments, context) in
            runs.more()
            let (a, b) = try await context.askAll(
                .elicit("a?", schema: form("a")), .elicit("b?", schema: form("b")))
            return "\(a.content?["a"] ?? .null) \(b.content?["b"] ?? .null)"
        }
        app.tool("ask all of a list") { (_: NoArguments, context) in
            runs.more()
            let questions = ["a", "b"].map { Question.elicit("\($0)?", schema: form($0)) }
            let answers = try await context.askAll(questions)
            return "\(answers[0].content?["a"] ?? .null) \(answers[1].content?["b"] ?? .null)"
        }
        for tool in ["async let", "task group", "ask all", "ask all of a list"] {
            let before = runs.value, user = Interviewee()
            try await withClient(of: app, user.options(revision)) { client in
                expect(try await client.callTool(tool).text, #""<a>" "<b>""#)
            }
            #expect(user.asked.sorted() == ["a?", "b?"], "\(tool)")
            #expect(runs.value - before == (revision == modern ? 2 : 1), "\(tool)")
        }
    }

    /// The question that ends a run cancels what runs beside it, which may not have asked yet.
    @Test func aQuestionThatIsCancelledByAnotherIsAskedAllTheSame() async throws {
        let app = Server("asks"), runs = Count()
        app.tool("late") { (_: NoArguments, context) in
            let isFirst = runs.more() == 1
            let given = try await withThrowingTaskGroup(of: [String].self) { group in
                group.addTask { [try await context.elicit("a?", schema: form("a")).content?["a"]?.stringValue ?? ""] }
                group.addTask {
                    while isFirst && !Task.isCancelled { await Task.yield() }
                    let b = try await context.elicit("b?", schema: form("b")).content?["b"]?.stringValue ?? ""
                    let (c, d) = try await context.askAll(
                        .elicit("c?", schema: form("c")), .elicit("d?", schema: form("d")))
                    return [b, c.content?["c"]?.stringValue ?? "", d.content?["d"]?.stringValue ?? ""]
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            return given.sorted().joined(separator: " ")
        }
        let user = Interviewee()
        let result = try await bounded {
            try await withClient(of: app, user.options(modern)) { try await $0.callTool("late").text }
        }
        #expect(result == "<a> <b> <c> <d>")
        #expect(user.asked.prefix(2).sorted() == ["a?", "b?"] && user.asked.count == 4)
        #expect(runs.value == 3)
    }

    @Test(arguments: asking) func questionsOfAnyKindAreAskedAtOnce(revision: String) async throws {
        let app = Server("asks")
        app.tool("all") { (_: NoArguments, context) in
            let (name, said, roots) = try await context.askAll(
                .elicit("name?", as: Name.self), .sample("2+2?", maxTokens: 9), .listRoots())
            return "\(name.content?.name ?? "") \(said.text) \(roots.roots.map(\.uri))"
        }
        app.tool("page") { (_: NoArguments, context) in
            let (name, page) = try await context.askAll(
                .elicit("name?", try ElicitationForm(Name.self)),
                .elicitURL("Log in", url: "https://example.com", elicitationID: "e1"))
            return "\(name.content?.name ?? "") \(page.action.rawValue)"
        }
        let user = Interviewee()
        var options = user.options(revision)
        options.sampling = { request, _ in "to \(request.messages.first?.text ?? "")" }
        options.roots = ["/a"]
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("all").text, #"<name> to 2+2? ["file:///a"]"#)
            // 2025-06-18 has no pages.
            guard revision != asking[0] else { return }
            expect(try await client.callTool("page").text, "<name> accept")
        }
        // What one of them lacks, none is told.
        options.sampling = nil
        try await withClient(of: app, options) { client in
            let said = await Self.outcome { try await client.callTool("all") }
            #expect(said.contains("sampling"), "\(said)")
        }
    }

    @Test(arguments: asking) func promptsAndResourcesAskToo(revision: String) async throws {
        let app = Server("asks")
        app.prompt("letter") { (_: NoArguments, context) in
            "a letter to \(try await context.elicit("to?", schema: form("to")).content?["to"] ?? .null)"
        }
        app.resource("memo://x") { (_: NoArguments, context) in
            "memo \(try await context.elicit("which?", schema: form("which")).content?["which"] ?? .null)"
        }
        try await withClient(of: app, Interviewee().options(revision)) { client in
            expect(try await client.getPrompt("letter").messages.first?.text, #"a letter to "<to>""#)
            expect(try await client.readResource("memo://x").text, #"memo "<which>""#)
        }
    }

    /// Nobody is told of a failure when a run ends at a question, whatever the handler makes of it.
    @Test(arguments: asking) func aRunThatEndsAtAQuestionHasNotFailed(revision: String) async throws {
        let heard = Locked([String]())
        let app = Server("asks", onError: { error, name in heard.with { $0.append("\(name): \(error)") } })
        app.tool("wraps") { (_: NoArguments, context) in
            do {
                return "\(try await context.elicit("a?", schema: form("a")).content?["a"] ?? .null)"
            } catch {
                throw Wrapped(inner: error)
            }
        }
        app.tool("swallows") { (_: NoArguments, context) in
            let answer = try? await context.elicit("a?", schema: form("a"))
            return "\(answer?.content?["a"] ?? .null)"
        }
        app.tool("says so") { (_: NoArguments, context) in
            do {
                return "\(try await context.elicit("a?", schema: form("a")).content?["a"] ?? .null)"
            } catch {
                throw ToolError("the user did not answer")
            }
        }
        app.middleware { request, context, next in
            do { return try await next(request, context) } catch { throw Wrapped(inner: error) }
        }
        for tool in ["wraps", "swallows", "says so"] {
            let user = Interviewee()
            try await withClient(of: app, user.options(revision)) { client in
                expect(try await client.callTool(tool).text, #""<a>""#)
            }
            #expect(user.asked == ["a?"])
        }
        #expect(heard.with { $0 } == [])
    }

    @Test(arguments: asking) func middlewareAsksToo(revision: String) async throws {
        let app = Server("asks")
        app.middleware { request, context, next in
            guard request.method == "tools/call" else { return try await next(request, context) }
            guard try await context.elicit("sure?", schema: form("sure")).action == .accept else {
                throw TricornError.rpc(code: -1, message: "not sure")
            }
            return try await next(request, context)
        }
        app.tool("ask") { (_: NoArguments, context) in
            "\(try await context.elicit("a?", schema: form("a")).content?["a"] ?? .null)"
        }
        let user = Interviewee()
        try await withClient(of: app, user.options(revision)) { client in
            expect(try await client.callTool("ask").text, #""<a>""#)
        }
        #expect(user.asked == ["sure?", "a?"])
        try await withClient(of: app, user.options(revision) { _ in .decline }) { client in
            let said = await Self.outcome { try await client.callTool("ask") }
            #expect(said.contains("not sure"), "\(said)")
        }
    }

    @Test func aHandlerThatAsksSomethingElseIsToldOfBoth() async throws {
        let app = Server("asks"), runs = Count()
        app.tool("odd") { (_: NoArguments, context) in
            "\(try await context.elicit("question \(runs.more())?", schema: form("x")).action)"
        }
        try await withClient(of: app, Interviewee().options(modern) { _ in .accept(["x": "y"]) }) { client in
            let said = await Self.outcome { try await client.callTool("odd") }
            #expect(said.contains("question 1?") && said.contains("question 2?"), "\(said)")
        }
    }

    @Test(arguments: asking) func whoCannotBeAskedIsNot(revision: String) async throws {
        let app = Server("asks", onError: { _, _ in })
        app.tool("ask") { (_: NoArguments, context) in
            try await context.elicit("a?", schema: form("a")).action.rawValue
        }
        app.tool("by hand") { (_: NoArguments, context) -> String in
            throw InputRequired(["a": Question.elicit("a?", schema: form("a"))])
        }
        try await withClient(of: app, ClientOptions(revision: revision)) { client in
            for tool in ["ask", "by hand"] {
                let said = await Self.outcome { try await client.callTool(tool) }
                #expect(said.contains("elicitation"), "\(tool): \(said)")
                if revision == modern {
                    await expectCode(-32021, containing: "elicitation") { _ = try await client.callTool(tool) }
                }
            }
        }
    }

    /// The text of a call's result, or of its error.
    static func outcome(_ call: () async throws -> CallToolResult) async -> String {
        do { return try await call().text } catch { return "\(error)" }
    }
}

/// Errors that keep what they are, whatever words they get.
@Suite struct RefusedTests {
    @Test func aRefusedQuestionIsKnownWhateverItsWords() async throws {
        let app = Server("books", onError: { _, _ in })
        app.tool("reworded") { (_: NoArguments, context) -> String in
            do {
                return try await context.elicit("a?", schema: form("a")).action.rawValue
            } catch TricornError.unsupported(let message) {
                throw TricornError.unsupported("booking: \(message)")
            }
        }
        app.tool("as it is") { (_: NoArguments, context) in
            try await context.elicit("a?", schema: form("a")).action.rawValue
        }
        try await withClient(of: app, ClientOptions(revision: modern)) { client in
            for tool in ["reworded", "as it is"] {
                await expectCode(-32021, containing: "elicitation") { _ = try await client.callTool(tool) }
            }
        }
    }

    @Test func aHandlerThatIsGoneIsAnsweredAsWhatThereIsNot() async throws {
        let app = Server("gone")
        // Nobody has this number, as of a handler that was removed while its call was on the way.
        try app.core.add(
            kind: "tool", definition: #"{"name":"t","inputSchema":{"type":"object"}}"#, options: "", handler: .max)
        try await withClient(of: app, ClientOptions(revision: "2025-11-25")) { client in
            await expectCode(-32602, containing: "unknown tool") { _ = try await client.callTool("t") }
        }
    }
}
