internal import TricornCore

/// A question to the client whose answer is an `Answer`: what `Context.elicit`, `elicitURL`, `sample` and `listRoots` ask,
/// as a value, for `Context.askAll` and `InputRequired`.
///
/// ```swift
/// let (name, roots) = try await context.askAll(.elicit("Who?", as: Name.self), .listRoots())
/// ```
public struct Question<Answer: Sendable>: AnyQuestion {
    public let method: String
    public let params: JSONValue?
    let read: @Sendable (JSONValue) throws -> Answer
}

/// A question to the client, whatever its answer is.
public protocol AnyQuestion: Sendable {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    var method: String { get }
    /// The parameters, as the schema has them; nil when there is nothing to say.
    var params: JSONValue? { get }
}

extension Question {
    /// As `Context.elicit`: a form that decodes to `Form`. Throws `TricornError.misuse` when no form can be derived from
    /// the type.
    public static func elicit<Form: Decodable & Sendable>(
        _ message: String, as form: Form.Type = Form.self, schema: JSONValue? = nil
    ) throws -> Question where Answer == Elicited<Form> {
        elicit(message, form, try schema ?? FormSchema.of(form))
    }

    /// As `Context.elicit`: a form that was made before.
    public static func elicit<Content>(_ message: String, _ form: ElicitationForm<Content>) -> Question
    where Answer == Elicited<Content> { elicit(message, Content.self, form.schema) }

    /// As `Context.elicit`: a form of this schema.
    public static func elicit(_ message: String, schema: JSONValue) -> Question where Answer == Elicited<JSONObject> {
        elicit(message, JSONObject.self, schema)
    }

    private static func elicit<Form: Decodable>(_ message: String, _ form: Form.Type, _ schema: JSONValue) -> Question
    where Answer == Elicited<Form> {
        let params: JSONValue = ["mode": "form", "message": .string(message), "requestedSchema": schema]
        return Question(method: "elicitation/create", params: params) { answer in
            guard answer["action"] == "accept" else { return Elicited(answer, nil) }
            do {
                return Elicited(answer, try (answer["content"] ?? [:]).decode(as: form))
            } catch let error as DecodingError {
                throw TricornError.peerMisbehaved("the answer to elicitation/create: \(error.text(subject: "member"))")
            }
        }
    }

    /// As `Context.elicitURL`.
    public static func elicitURL(_ message: String, url: String, elicitationID: String) -> Question
    where Answer == Types.ElicitResult {
        let page = URLElicitation(url: url, elicitationID: elicitationID, message: message)
        return Question(method: "elicitation/create", params: page.json) { .init(checked: $0) }
    }

    /// As `Context.sample`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public static func sample(
        _ text: String, maxTokens: Int, systemPrompt: String? = nil, temperature: Double? = nil,
        stopSequences: [String]? = nil, modelPreferences: ModelPreferences? = nil,
        includeContext: CreateMessageRequestParams.IncludeContext? = nil, tools: [Types.Tool]? = nil,
        toolChoice: Types.ToolChoice? = nil, metadata: JSONObject? = nil
    ) -> Question where Answer == CreateMessageResult {
        sample(
            [.user(text)], maxTokens: maxTokens, systemPrompt: systemPrompt, temperature: temperature,
            stopSequences: stopSequences, modelPreferences: modelPreferences, includeContext: includeContext,
            tools: tools, toolChoice: toolChoice, metadata: metadata)
    }

    /// As `Context.sample`: a conversation to go on with.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public static func sample(
        _ messages: [SamplingMessage], maxTokens: Int, systemPrompt: String? = nil, temperature: Double? = nil,
        stopSequences: [String]? = nil, modelPreferences: ModelPreferences? = nil,
        includeContext: CreateMessageRequestParams.IncludeContext? = nil, tools: [Types.Tool]? = nil,
        toolChoice: Types.ToolChoice? = nil, metadata: JSONObject? = nil
    ) -> Question where Answer == CreateMessageResult {
        let request = CreateMessageRequestParams(
            maxTokens: maxTokens, messages: messages, includeContext: includeContext, metadata: metadata,
            modelPreferences: modelPreferences, stopSequences: stopSequences, systemPrompt: systemPrompt,
            temperature: temperature, toolChoice: toolChoice, tools: tools)
        var params = OptionsText()
        for (name, value) in request.json.objectValue ?? [:] { params.set(name, value) }
        return Question(method: "sampling/createMessage", params: params.json) { .init(checked: $0) }
    }

    /// As `Context.listRoots`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public static func listRoots() -> Question where Answer == Types.ListRootsResult {
        Question(method: "roots/list", params: nil) { .init(checked: $0) }
    }
}

extension Context {
    // Not one function of a parameter pack: Swift 6.0 cannot compile the loop over one for debugging.

    /// Asks two questions at the same time, in revision 2026-07-28 in one round, and waits for both answers; each is what
    /// the call for one such question returns. There are more of this function: for three and four, and for a list.
    ///
    /// Code before the questions runs again in revision 2026-07-28; `step` is for what must not. Throws what goes wrong with
    /// the first question, in their order, with which something does, and `InputRequired` where this run ends.
    public func askAll<A, B>(_ a: Question<A>, _ b: Question<B>) async throws -> (A, B) {
        let results = try await results(of: [a, b])
        return (try read(results[0], a), try read(results[1], b))
    }

    /// Asks three questions at the same time.
    public func askAll<A, B, C>(
        _ a: Question<A>, _ b: Question<B>, _ c: Question<C>
    ) async throws -> (A, B, C) {
        let results = try await results(of: [a, b, c])
        return (try read(results[0], a), try read(results[1], b), try read(results[2], c))
    }

    /// Asks four questions at the same time.
    public func askAll<A, B, C, D>(
        _ a: Question<A>, _ b: Question<B>, _ c: Question<C>, _ d: Question<D>
    ) async throws -> (A, B, C, D) {
        let results = try await results(of: [a, b, c, d])
        return (
            try read(results[0], a), try read(results[1], b), try read(results[2], c), try read(results[3], d)
        )
    }

    /// Asks any number of questions of one kind at the same time.
    public func askAll<Answer>(_ questions: [Question<Answer>]) async throws -> [Answer] {
        try zip(await results(of: questions), questions).map { try read($0, $1) }
    }

    func ask<Answer>(_ question: Question<Answer>, _ options: RequestOptions) async throws -> Answer {
        try read(await ask(question.method, question.params, options), question)
    }

    private func read<Answer>(_ result: JSONValue, _ question: Question<Answer>) throws -> Answer {
        do {
            return try question.read(result)
        } catch {
            call.note(error, .question)
            throw error
        }
    }

    private func results(of questions: [any AnyQuestion]) async throws -> [JSONValue] {
        // None is sent when one of them cannot be asked.
        var together = OptionsText()
        if questions.count > 1 {
            together.set(
                "together",
                list: questions.map { .array([.string($0.method), $0.params ?? .object(JSONObject())]) })
        }
        let options = try together.members.isEmpty ? "" : together.json.checkedText
        let starts = questions.map { question in
            { @Sendable [key] (op: UInt64) in
                let writer = JSONWriter()
                if let params = question.params { writer.append(params) }
                try writer.withData {
                    try Host.shared.bridge.ask(key: key, op: op, method: question.method, json: $0, options: options)
                }
            }
        }
        return try await asking {
            try await Host.shared.perform(all: starts).map { JSONValue(try JSONText($0), 0) }
        }
    }

    /// Asks. In revision 2026-07-28 a question without an answer ends the run, and cancels those beside it in a task group;
    /// they are asked all the same, so that the client gets all at once: what they wait for is there already.
    func asking<Outcome: Sendable>(_ ask: @escaping @Sendable () async throws -> Outcome) async throws -> Outcome {
        let wasOver = call.isOver
        let asking = Task { [call] in try await call.noting(.question, ask) }
        do {
            return try await withTaskCancellationHandler {
                try await asking.value
            } onCancel: { [call] in
                if !call.hasAsked { asking.cancel() }
            }
        } catch is TricornError where !wasOver && call.isOver {
            // Cancelled meanwhile, of which the task hears later than the question.
            throw CancellationError()
        }
    }
}
