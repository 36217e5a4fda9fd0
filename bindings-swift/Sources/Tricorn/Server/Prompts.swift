internal import TricornCore

extension Offering {
    /// Adds a prompt, whose arguments decode to `Input`.
    ///
    /// ```swift
    /// struct Review: Codable { var code: String; var language: String? }
    ///
    /// app.prompt("review", "Reviews code") { (input: Review, _) in
    ///     [PromptMessage.user("Review this:\n\(input.code)"), .assistant("With pleasure.")]
    /// }
    /// ```
    /// - Parameters:
    ///   - description: what it is for.
    ///   - arguments: as clients see them; derived from `Input` when nil, with texts of `DescribedProperties`.
    ///   - enabled: false hides it until `setEnabled`.
    ///   - parameters: JSON Schema of the arguments, which come as text and are converted to it; derived from `Input`
    ///     when nil.
    ///   - complete: who completes which argument. One that is an enum or a truth value completes itself.
    ///   - choices: arguments of which the values are known: those that begin like what is there complete it.
    ///   - replacing: it takes the place of the one of its name, if there is one, and is hidden when that is; `enabled`
    ///     can only hide it.
    ///   - scopes: what a client's access token needs for it, all of them, of a server with `auth`: others are not shown it, and
    ///     are told what they lack when they use it.
    ///   - handler: runs in a task of its own, which is cancelled when the client cancels the request. It returns text or
    ///     `ContentBlock`, which the user says, a `PromptMessage`, an array of these, or a `GetPromptResult`. What it throws
    ///     becomes a JSON-RPC error, as that of a resource.
    public func prompt<Input: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        arguments: [Types.PromptArgument]? = nil,
        parameters: JSONValue? = nil, complete: [String: Completer] = [:], choices: [String: [String]] = [:],
        _ handler: @escaping @Sendable (Input, Context) async throws -> Output
    ) {
        let encode = PromptOutcome<Output>.encoder
        add(
            .prompt, name,
            {
                var prompt = OptionsText()
                prompt.set("name", text: name)
                prompt.set("title", text: title)
                prompt.set("description", text: description)
                prompt.set("arguments", list: arguments?.map(\.json))
                prompt.set("icons", list: icons?.map(\.json))
                prompt.set("_meta", meta)
                return Offer(
                    definition: prompt.json, parameters: try Arguments<Input>.schema(parameters, texts: true),
                    completers: Offer.completers(complete, choices), enabled: enabled, replacing: replacing,
                    scopes: scopes)
            },
            run: { params, context in
                try encode(try await handler(try Arguments<Input>.parameters(params), context))
            })
    }

    /// Adds a prompt that does not look at its context.
    public func prompt<Input: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        arguments: [Types.PromptArgument]? = nil,
        parameters: JSONValue? = nil, complete: [String: Completer] = [:], choices: [String: [String]] = [:],
        _ handler: @escaping @Sendable (Input) async throws -> Output
    ) {
        prompt(
            name, description, title: title, icons: icons, meta: meta, enabled: enabled, replacing: replacing,
            scopes: scopes,
            arguments: arguments,
            parameters: parameters, complete: complete, choices: choices
        ) { (input: Input, _) in try await handler(input) }
    }

    /// Adds a prompt without arguments.
    public func prompt<Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        _ handler: @escaping @Sendable () async throws -> Output
    ) {
        prompt(
            name, description, title: title, icons: icons, meta: meta, enabled: enabled, replacing: replacing,
            scopes: scopes
        ) {
            (_: NoArguments, _) in
            try await handler()
        }
    }
}

/// Conversion of a prompt's result to an answer.
enum PromptOutcome<Output: Encodable & Sendable> {
    static var encoder: @Sendable (Output) throws -> Answer {
        switch Output.self {
        case is String.Type: return { .text($0 as! String) }
        case is GetPromptResult.Type: return { try .of(result: $0) }
        default: return { try .of(value: $0) }
        }
    }

    /// A whole result: what a source answers with.
    static func result(_ value: Output) throws -> Answer {
        if value is GetPromptResult { return try .of(result: value) }
        let json = try JSONValue(encoding: value)
        let messages = (json.arrayValue ?? [json]).map { part -> JSONValue in
            if part["role"] != nil { return part }
            let content: JSONValue = part.stringValue.map { ["type": "text", "text": .string($0)] } ?? part
            return ["role": "user", "content": content]
        }
        return try .of(result: JSONValue.object(["messages": .array(messages)]))
    }
}
