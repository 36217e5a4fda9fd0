#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

// What a handler asks of the client that called it. Cancelling the handler cancels what it asked.
extension Context {
    /// Sends the client any request, as part of this call, and returns its result. In revision 2026-07-28, whose servers
    /// send no requests, that is for questions alone, as `elicit` and its like ask them: code before one runs again;
    /// `step` is for what must not.
    ///
    /// Throws `TricornError.unsupported`, and sends nothing, when the client does not declare the capability or the revision
    /// has no such request; `TricornError.rpc` is the client's own error. A handler that lets these pass fails with
    /// their message: a tool with a result that the model reads (`isError`).
    public func ask(
        _ method: String, _ params: JSONValue? = nil, _ options: RequestOptions = .init()
    ) async throws -> JSONValue {
        let writer = JSONWriter()
        if let params { writer.append(params) }
        return try await asking { [key] in
            let result = try await Host.shared.request(writer, options) { op, params, options in
                try Host.shared.bridge.ask(key: key, op: op, method: method, json: params, options: options)
            }
            return JSONValue(result, 0)
        }
    }

    /// Sends the client a notification, as part of this call.
    public func notify(_ method: String, _ params: JSONValue? = nil) throws {
        let writer = JSONWriter()
        if let params { writer.append(params) }
        _ = try core { try writer.withData { try Host.shared.bridge.notify(key: key, method: method, json: $0) } }
    }

    /// Ends the event stream that the answer goes on, to free its connection while a long call runs. The client asks for
    /// the rest after the server's `sseRetry`; what is sent meanwhile is kept for it. Where a client would not come back,
    /// or there is no such stream, nothing happens. False when the call is over.
    @discardableResult
    public func closeStream() -> Bool { (try? Host.shared.bridge.closeStream(key: key)) ?? false }

    /// Shows or hides what has this name, URI or URI template from this client alone, for as long as its session lives; a
    /// directory goes by its URI, as a resource. Says whether that changed anything; throws `TricornError.unsupported` in
    /// revisions without sessions.
    @discardableResult
    public func setEnabled(_ kind: Server.Kind, named name: String, to yes: Bool) throws -> Bool {
        try core { try Host.shared.bridge.setEnabled(key: key, kind: kind.rawValue, name: name, yes: yes) }
    }

    // MARK: - the user

    /// Asks the user for a form that decodes to `Form`, and waits for the answer. Code before a question runs again in
    /// revision 2026-07-28; `step` is for what must not.
    ///
    /// There a question without an answer throws `InputRequired`, which is to be let pass, and the handler runs again with
    /// the answer (specification, "Multi Round-Trip Requests"). It has to come to the same questions each time.
    ///
    /// ```swift
    /// struct Booking: Codable { var name: String; var seats: Int }
    ///
    /// guard let booking = try await context.elicit("Who comes?", as: Booking.self).content else { return "no booking" }
    /// ```
    /// - Parameter schema: derived from `Form` when nil. Forms are flat: texts, numbers, truth values and choices; anything
    ///   else is `TricornError.misuse`. What the user leaves out has its default, where the schema has one.
    public func elicit<Form: Decodable & Sendable>(
        _ message: String, as form: Form.Type = Form.self, schema: JSONValue? = nil,
        _ options: RequestOptions = .init()
    ) async throws -> Elicited<Form> {
        try await ask(.elicit(message, as: form, schema: schema), options)
    }

    /// Asks the user to fill in a form that was made before, and waits for the answer. Code before a question runs again in
    /// revision 2026-07-28; `step` is for what must not.
    public func elicit<Content>(
        _ message: String, _ form: ElicitationForm<Content>, _ options: RequestOptions = .init()
    ) async throws -> Elicited<Content> {
        try await ask(.elicit(message, form), options)
    }

    /// Asks the user for a form of this schema, and waits for the answer. Code before a question runs again in revision
    /// 2026-07-28; `step` is for what must not.
    public func elicit(
        _ message: String, schema: JSONValue, _ options: RequestOptions = .init()
    ) async throws -> Elicited<JSONObject> {
        try await ask(.elicit(message, schema: schema), options)
    }

    /// Asks the user to visit a page, for what is no business of the client: passwords, payments, authorization. Accepting
    /// means that the user agreed to go there, not that all is done. Code before a question runs again in revision
    /// 2026-07-28; `step` is for what must not.
    ///
    /// - Parameter elicitationID: names this question for `completeElicitation`, when all is done.
    public func elicitURL(
        _ message: String, url: String, elicitationID: String, _ options: RequestOptions = .init()
    ) async throws -> Types.ElicitResult {
        try await ask(.elicitURL(message, url: url, elicitationID: elicitationID), options)
    }

    /// Tells the client that the visit to a page is over (2025-11-25), so that it need not ask the user.
    ///
    /// - Parameter elicitationID: what the page was asked for with, by `elicitURL` or `urlElicitationRequired`.
    public func completeElicitation(_ elicitationID: String) throws {
        try notify("notifications/elicitation/complete", ["elicitationId": .string(elicitationID)])
    }

    // MARK: - the model

    /// Has the client's model write a message: `try await context.sample("Summarize: …", maxTokens: 200).text`. Code before
    /// a question runs again in revision 2026-07-28; `step` is for what must not.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public func sample(
        _ text: String, maxTokens: Int, systemPrompt: String? = nil, temperature: Double? = nil,
        stopSequences: [String]? = nil, modelPreferences: ModelPreferences? = nil,
        includeContext: CreateMessageRequestParams.IncludeContext? = nil, tools: [Types.Tool]? = nil,
        toolChoice: Types.ToolChoice? = nil, metadata: JSONObject? = nil, _ options: RequestOptions = .init()
    ) async throws -> CreateMessageResult {
        try await sample(
            [.user(text)], maxTokens: maxTokens, systemPrompt: systemPrompt, temperature: temperature,
            stopSequences: stopSequences, modelPreferences: modelPreferences, includeContext: includeContext,
            tools: tools, toolChoice: toolChoice, metadata: metadata, options)
    }

    /// Has the client's model go on with a conversation. Code before a question runs again in revision 2026-07-28; `step` is
    /// for what must not. With `tools` the client has to declare `sampling.tools`, and with `includeContext` other than
    /// `none` `sampling.context`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public func sample(
        _ messages: [SamplingMessage], maxTokens: Int, systemPrompt: String? = nil, temperature: Double? = nil,
        stopSequences: [String]? = nil, modelPreferences: ModelPreferences? = nil,
        includeContext: CreateMessageRequestParams.IncludeContext? = nil, tools: [Types.Tool]? = nil,
        toolChoice: Types.ToolChoice? = nil, metadata: JSONObject? = nil, _ options: RequestOptions = .init()
    ) async throws -> CreateMessageResult {
        let question = Question.sample(
            messages, maxTokens: maxTokens, systemPrompt: systemPrompt, temperature: temperature,
            stopSequences: stopSequences, modelPreferences: modelPreferences, includeContext: includeContext,
            tools: tools, toolChoice: toolChoice, metadata: metadata)
        return try await ask(question, options)
    }

    // MARK: - the roots

    /// The folders and files that the client lets the server look at. Code before a question runs again in revision
    /// 2026-07-28; `step` is for what must not.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public func listRoots(_ options: RequestOptions = .init()) async throws -> Types.ListRootsResult {
        try await ask(.listRoots(), options)
    }
}
