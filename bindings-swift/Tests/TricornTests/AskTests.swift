import Foundation
import Testing

@testable import Tricorn

private enum Size: String, Codable, CaseIterable, Sendable { case small, large }

private struct Booking: Codable, Sendable, Equatable {
    var name: String
    var seats: Int
    var size: Size?
    var window: Bool?
}

private struct Nested: Codable, Sendable {
    var inner: Booking
}

private let legacy = "2025-11-25"

/// Questions of servers to their clients.
@Suite struct AskTests {
    private func options(
        _ elicitation: Elicitor? = nil, sampling: Sampler? = nil, roots: Roots? = nil
    ) -> ClientOptions {
        var options = ClientOptions(revision: legacy)
        options.elicitation = elicitation
        options.sampling = sampling
        options.roots = roots
        options.onWarning = { _ in }
        return options
    }

    private func booking() -> Server {
        let app = Server("test", onError: { _, _ in })
        app.tool("book") { (_: NoArguments, context) -> String in
            let answer = try await context.elicit("Who comes?", as: Booking.self)
            guard let booking = answer.content else { return answer.action == .decline ? "declined" : "cancelled" }
            return "\(booking.name) \(booking.seats) \(booking.size?.rawValue ?? "any")"
        }
        return app
    }

    @Test func formsAreMadeOfTypes() async throws {
        let asked = Locked(JSONValue.null)
        let options = options { question, context in
            asked.with { $0 = question.json }
            #expect(context.request?.method == "elicitation/create")
            return .accept(["name": "Ada", "seats": 2, "size": "large"])
        }
        try await withClient(of: booking(), options) { client in
            expect(try await client.callTool("book").text, "Ada 2 large")
        }
        let question = ElicitationQuestion(json: asked.with { $0 })
        #expect(question.message == "Who comes?" && question.mode == .form)
        let properties = try #require(question.schema?["properties"])
        #expect(properties["seats"] == ["type": "integer"])
        #expect(properties["size"] == ["type": "string", "enum": ["small", "large"]])
        #expect(properties["window"] == ["type": "boolean"])
        #expect(question.schema?["required"] == ["name", "seats"])
    }

    @Test func theUserMaySayNo() async throws {
        try await withClient(of: booking(), options { _, _ in .decline }) { client in
            expect(try await client.callTool("book").text, "declined")
        }
        try await withClient(of: booking(), options { _, _ in .cancel }) { client in
            expect(try await client.callTool("book").text, "cancelled")
        }
        try await withClient(of: booking(), options { _, _ in try .accept(encoding: Booking(name: "A", seats: 1)) }) {
            client in
            expect(try await client.callTool("book").text, "A 1 any")
        }
    }

    @Test func anAnswerThatDoesNotFitIsTheClientsFault() async throws {
        let app = Server("test")
        app.tool("book") { (_: NoArguments, context) in
            do {
                _ = try await context.elicit("Who comes?", as: Booking.self)
                return "fits"
            } catch let error as TricornError {
                return error.description
            }
        }
        try await withClient(of: app, options { _, _ in .accept(["name": "Ada", "seats": "many"]) }) { client in
            let text = try await client.callTool("book").text
            #expect(text.contains("seats"), "\(text)")
        }
    }

    @Test func schemasMayBeGiven() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            let schema: JSONValue = [
                "type": "object", "properties": ["n": ["type": "number", "default": 1.5], "s": ["type": "string"]],
            ]
            let answer = try await context.elicit("n?", schema: schema)
            return "\(answer.action.rawValue) \(answer.content.map { JSONValue.object($0) } ?? .null)"
        }
        try await withClient(of: app, options { _, _ in .accept([:]) }) { client in
            expect(try await client.callTool("ask").text, #"accept {"n":1.5}"#)
        }
    }

    @Test func formsAreFlat() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            do {
                return "\(try await context.elicit("?", as: Nested.self))"
            } catch TricornError.misuse(let message) {
                return message
            }
        }
        try await withClient(of: app, options { _, _ in .accept() }) { client in
            let text = try await client.callTool("ask").text
            #expect(text.contains("inner"), "\(text)")
        }
        struct Kinds: Codable { var sizes: [Size], id: UUID, at: Date }
        let schema = try FormSchema.of(Kinds.self)
        #expect(schema["properties"]?["sizes"]?["items"] == ["type": "string", "enum": ["small", "large"]])
        #expect(schema["properties"]?["id"] == ["type": "string"])
        #expect(schema["properties"]?["at"]?["format"] == "date-time")
    }

    @Test func aPolicyAnswersForManyClients() async throws {
        struct Policy: SamplingPolicy, ElicitationPolicy, RootsPolicy {
            func sampling(
                _ request: CreateMessageRequestParams, _ context: ClientContext
            ) async throws -> any SamplingAnswer { "from the policy" }

            func elicitation(
                _ question: ElicitationQuestion, _ context: ClientContext
            ) async throws -> ElicitationAnswer { .accept(["n": 7]) }

            func roots(_ context: ClientContext) async throws -> [ClientRoot] { ["/srv/notes"] }
        }
        struct None: ClientPolicy {}
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            let said = try await context.sample("how?", maxTokens: 1).text
            let schema: JSONValue = ["type": "object", "properties": ["n": ["type": "integer"]]]
            let given = try await context.elicit("n?", schema: schema).content?["n"]
            return "\(said), \(given ?? .null), \(try await context.listRoots().roots.count)"
        }
        var options = ClientOptions(revision: "2025-11-25")
        options.policy = Policy()
        for _ in 1...2 {
            try await withClient(of: app, options) { client in
                expect(try await client.callTool("ask").text, "from the policy, 7, 1")
            }
        }
        options.sampling = { _, _ in "beside it" }
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("ask").text, "beside it, 7, 1")
        }
        await #expect(throws: TricornError.self) {
            var options = ClientOptions()
            options.policy = None()
            try await withClient(of: app, options) { _ in }
        }
    }

    @Test func aFormIsMadeBeforeAnybodyIsAsked() async throws {
        struct Size: Codable, Equatable { var size: String; var count: Int }
        let form = try ElicitationForm(Size.self)
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            try await context.elicit("?", form).content == Size(size: "S", count: 2) ? "as filled in" : "not"
        }
        try await withClient(of: app, options { _, _ in .accept(["size": "S", "count": 2]) }) { client in
            expect(try await client.callTool("ask").text, "as filled in")
        }
        let object: JSONValue = ["type": "object", "properties": ["home": ["type": "object"]]]
        for refused in [
            { _ = try ElicitationForm(Nested.self) }, { _ = try ElicitationForm(JSONObject.self, schema: object) },
        ] {
            do {
                try refused()
                Issue.record("a form that cannot be shown")
            } catch TricornError.misuse(let message) {
                #expect(message.contains("property \"inner\"") || message.contains("property \"home\""), "\(message)")
            }
        }
    }

    @Test func pagesAreForThoseWhoCan() async throws {
        let app = Server("test", onError: { _, _ in })
        app.tool("login") { (_: NoArguments, context) in
            let answer = try await context.elicitURL("Log in", url: "https://example.com/login", elicitationID: "e1")
            try context.completeElicitation("e1")
            return answer.action.rawValue
        }
        app.tool("first") { (_: NoArguments, _) -> String in
            throw TricornError.urlElicitationRequired([
                URLElicitation(url: "https://example.com", elicitationID: "e2", message: "Pay")
            ])
        }
        let heard = Locked([String]())
        var able = options { question, _ in
            heard.with { $0.append("\(question.mode) \(question.url ?? "") \(question.elicitationID ?? "")") }
            return .accept()
        }
        able.elicitationModes = [.form, .url]
        able.onNotification = { note in heard.with { $0.append(note.method) } }
        try await withClient(of: app, able) { client in
            #expect(try await client.callTool("login").text == "accept")
            #expect(await eventually { heard.with { $0.count } == 2 })
            #expect(
                heard.with { $0 } == [
                    "url https://example.com/login e1", "notifications/elicitation/complete",
                ])
            do {
                _ = try await client.callTool("first")
                Issue.record("no error")
            } catch let error as TricornError {
                #expect(error.code == -32042)
                #expect(error.urlElicitations.map(\.url) == ["https://example.com"])
                #expect(error.urlElicitations.first?.message == "Pay")
            }
        }
        try await withClient(of: app, options { _, _ in .accept() }) { client in
            expect(try await client.callTool("login").isError, true)
        }
    }

    @Test func modelsWrite() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            let one = try await context.sample(
                "2+2?", maxTokens: 9, systemPrompt: "Count.", temperature: 0.5, stopSequences: ["."],
                modelPreferences: .init(hints: [.init(name: "tiny")]),
                includeContext: CreateMessageRequestParams.IncludeContext.none, metadata: ["k": 1])
            let two = try await context.sample([.user("a"), .assistant("b"), .user("c")], maxTokens: 3)
            return "\(one.text) \(one.model) \(two.text) \(two.model)"
        }
        let asked = Locked([CreateMessageRequestParams]())
        let options = options(sampling: { request, _ in
            asked.with { $0.append(request) }
            return request.messages.count == 1 ? CreateMessageResult(text: "4", model: "tiny") : "text alone"
        })
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("ask").text, "4 tiny text alone unknown")
        }
        let request = try #require(asked.with { $0.first })
        #expect(request.maxTokens == 9 && request.systemPrompt == "Count." && request.temperature == 0.5)
        #expect(request.stopSequences == ["."] && request.metadata?["k"] == 1)
        #expect(request.modelPreferences?.hints?.first?.name == "tiny")
        #expect(request.messages.first?.text == "2+2?")
        #expect(asked.with { $0[1].messages.map(\.text) } == ["a", "b", "c"])
    }

    @Test func toolsOfModelsAreForThoseWhoKnowThem() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            let tool = Types.Tool(name: "add", inputSchema: ["type": "object"])
            let choice = Types.ToolChoice(mode: .auto)
            do {
                return try await context.sample("2+2?", maxTokens: 9, tools: [tool], toolChoice: choice).text
            } catch let error as TricornError {
                return error.description
            }
        }
        var options = options(sampling: { request, _ in request.tools?.first?.name ?? "none" })
        try await withClient(of: app, options) { client in
            let text = try await client.callTool("ask").text
            #expect(text.contains("sampling.tools"), "\(text)")
        }
        options.samplingTools = true
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("ask").text, "add")
        }
    }

    @Test func aServerHearsThatRootsHaveChanged() async throws {
        let heard = Event()
        let app = Server("test")
        app.onRootsChanged { context in
            await heard.set(try await context.listRoots().roots.map(\.uri).joined(separator: " "))
        }
        try await withClient(of: app, options(roots: ["/a"])) { client in
            try client.setRoots(["/b", "/c"])
            #expect(await heard.value() == "file:///b file:///c")
        }
    }

    @Test func rootsOfAFunctionAreSaidToHaveChanged() async throws {
        let heard = Event()
        let app = Server("test")
        app.onRootsChanged { context in
            await heard.set(try await context.listRoots().roots.map(\.uri).joined(separator: " "))
        }
        try await withClient(of: app, options(roots: .asked { _ in ["/asked"] })) { client in
            try client.rootsChanged()
            #expect(await heard.value() == "file:///asked")
        }
        for revision in [legacy, "2026-07-28"] {
            var undeclared = options()
            undeclared.revision = .init(rawValue: revision)
            try await withClient(of: app, undeclared) { client in
                #expect(throws: TricornError.self) { try client.rootsChanged() }
            }
        }
    }

    @Test func changedRootsNeedNotBeToldWhereTheyAreAskedFor() async throws {
        let app = Server("test"), path = Locked("/a")
        app.tool("where") { (_: NoArguments, context) -> String in
            try await context.listRoots().roots.map(\.uri).joined(separator: " ")
        }
        var options = options(roots: .asked { _ in [ClientRoot(path: path.with { $0 })] })
        options.revision = "2026-07-28"
        try await withClient(of: app, options) { client in
            path.with { $0 = "/b" }
            try client.rootsChanged()
            expect(try await client.callTool("where").text, "file:///b")
        }
    }

    @Test func usersAreSentToWebPagesOnly() {
        let page = URLElicitation(url: "https://example.com", elicitationID: "1", message: "m")
        #expect(TricornError.urlElicitationRequired([page]).code == -32042)
        #expect(TricornError.urlElicitationRequired([]).kind == "misuse")
        for url in ["javascript:alert(1)", "ftp://example.com/", "example.com", ""] {
            let wrong = TricornError.urlElicitationRequired([
                page, URLElicitation(url: url, elicitationID: "2", message: "m"),
            ])
            #expect(wrong.kind == "misuse" && wrong.message.contains("elicitations[1]: \"url\""), "\(wrong)")
        }
    }

    @Test func rootsAreListedAndChange() async throws {
        let changed = Event()
        let app = Server("test")
        app.tool("roots") { (_: NoArguments, context) in
            try await context.listRoots().roots.map { "\($0.uri) \($0.name ?? "-")" }.joined(separator: ", ")
        }
        let given: Roots = [
            "/srv/my notes", ClientRoot(uri: "file:///srv", name: "srv"), .init(path: "/tmp", name: "t"),
        ]
        try await withClient(of: app, options(roots: given)) { client in
            #expect(
                try await client.callTool("roots").text == "file:///srv/my%20notes -, file:///srv srv, file:///tmp t")
            try client.setRoots(["/new"])
            #expect(try await client.callTool("roots").text == "file:///new -")
            #expect(throws: TricornError.self) { try client.setRoots(["https://example.com"]) }
        }
        let function = Roots.asked { context in
            await changed.set(context.request?.method ?? "")
            return ["/asked"]
        }
        try await withClient(of: app, options(roots: function)) { client in
            expect(try await client.callTool("roots").text, "file:///asked -")
            #expect(await changed.value() == "roots/list")
            #expect(throws: TricornError.self) { try client.setRoots(["/new"]) }
        }
        await #expect(throws: TricornError.self) { try await connect(to: app, options(roots: ["https://x"])) }
    }

    @Test func whatIsNotDeclaredIsNotAsked() async throws {
        let app = Server("test")
        app.tool("ask") { (input: Kind, context) in
            do {
                switch input.kind {
                case "sampling": _ = try await context.sample("x", maxTokens: 1)
                case "elicitation": _ = try await context.elicit("x", as: Booking.self)
                default: _ = try await context.listRoots()
                }
                return "answered"
            } catch TricornError.unsupported(let message) {
                return message
            }
        }
        try await withClient(of: app, ClientOptions(revision: legacy)) { client in
            for kind in ["sampling", "elicitation", "roots"] {
                let text = try await client.callTool("ask", ["kind": .string(kind)]).text
                #expect(text.contains(kind), "\(text)")
            }
        }
        try await withClient(of: app, ClientOptions(revision: "2026-07-28")) { client in
            expect(try await client.callTool("ask", ["kind": "sampling"]).text != "answered", true)
        }
    }

    private struct Kind: Codable, Sendable { var kind: String }

    @Test func theClientsErrorArrives() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            do {
                return try await context.sample("x", maxTokens: 1).text
            } catch TricornError.rpc(let code, let message, let data) {
                return "\(code) \(message) \(data ?? .null)"
            }
        }
        struct Trouble: Error {}
        let refusing = options(sampling: { _, _ in
            throw TricornError.rpc(code: -1, message: "the user said no", data: ["n": 1])
        })
        try await withClient(of: app, refusing) { client in
            expect(try await client.callTool("ask").text, #"-1 the user said no {"n":1}"#)
        }
        let warned = Event()
        var failing = options(sampling: { _, _ in throw Trouble() })
        failing.onWarning = { text in Task { await warned.set(text) } }
        try await withClient(of: app, failing) { client in
            let text = try await client.callTool("ask").text
            #expect(text.hasPrefix("-32603") && text.contains("Trouble"), "\(text)")
        }
        #expect(await warned.value()?.contains("Trouble") == true)
    }

    @Test func cancellingACallCancelsWhatItAsked() async throws {
        let asked = Event(), ended = Event(), handler = Event()
        let app = Server("test", onError: { _, _ in })
        app.tool("ask") { (_: NoArguments, context) in
            do {
                return try await context.sample("x", maxTokens: 1).text
            } catch {
                await handler.set("\(type(of: error))")
                throw error
            }
        }
        let options = options(sampling: { _, _ in
            await asked.set()
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                await ended.set("\(type(of: error))")
                throw error
            }
            return "late"
        })
        try await withClient(of: app, options) { client in
            let call = Task { try await client.callTool("ask") }
            #expect(await asked.value() != nil)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(await handler.value() == "CancellationError")
            #expect(await ended.value() == "CancellationError")
            expect(try await client.listTools().count, 1)
        }
    }

    @Test func anAskMayTimeOut() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            do {
                return "\(try await context.ask("roots/list", nil, .init(timeout: .milliseconds(50))))"
            } catch TricornError.timeout {
                return "timeout"
            }
        }
        let slow = Roots.asked { _ in
            try await Task.sleep(for: .seconds(60))
            return []
        }
        try await withClient(of: app, options(roots: slow)) { client in
            expect(try await client.callTool("ask").text, "timeout")
        }
    }

    @Test func anyRequestMayBeAsked() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) in
            _ = try await context.ask("ping")
            return "\(try await context.ask("roots/list")["roots"]?[0]?["uri"] ?? .null)"
        }
        try await withClient(of: app, options(roots: ["/a"])) { client in
            expect(try await client.callTool("ask").text, #""file:///a""#)
        }
    }

    @Test func answeringReportsProgress() async throws {
        let app = Server("test")
        app.tool("ask") { (_: NoArguments, context) -> [Double] in
            let seen = Locked([Double]())
            let options = RequestOptions(onProgress: { report in seen.with { $0.append(report.progress) } })
            _ = try await context.sample("x", maxTokens: 1, options)
            return seen.with { $0 }
        }
        let options = options(sampling: { _, context in
            context.progress(1, total: 2)
            context.progress(2, total: 2)
            return "done"
        })
        try await withClient(of: app, options) { client in
            expect(try await client.callTool("ask").decode(as: [Double].self), [1, 2])
        }
    }
}
