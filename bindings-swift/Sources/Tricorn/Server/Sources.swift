internal import TricornCore

extension Server {
    /// Sets the source of what is not added one by one, such as another server.
    ///
    /// ```swift
    /// app.setSource(.tool) { cursor, _ in
    ///     try await other.listToolsPage(cursor: cursor).json
    /// } get: { params, _ in
    ///     try await other.request("tools/call", params)
    /// }
    /// ```
    /// - Parameters:
    ///   - list: gets the cursor that it gave with the page before, and returns an array of definitions or a whole list
    ///     result. Its pages follow what was added.
    ///   - get: gets the parameters of `tools/call`, `resources/read` or `prompts/get` for what was not added. It returns
    ///     what a handler of that kind may, or a whole result as JSON.
    public func setSource(
        _ kind: Kind,
        list: (@Sendable (_ cursor: String?, _ context: Context) async throws -> any Encodable & Sendable)?,
        get: (@Sendable (_ params: JSONValue, _ context: Context) async throws -> any Encodable & Sendable)? = nil
    ) {
        var numbers: [UInt32] = []
        func number(_ what: String, _ run: @escaping Body) -> UInt32 {
            numbers.append(handler(kind.rawValue, "\(what) \(kind.word)s", passesOn: true, run))
            return numbers[numbers.count - 1]
        }
        let listing = list.map { list in
            number("the list of") { params, context in
                let cursor = JSONValue(try JSONText(params), 0)["cursor"]?.stringValue
                return try .of(value: await list(cursor, context))
            }
        }
        let getting = get.map { get in
            number("the source of") { params, context in
                try kind.answer(await get(JSONValue(try JSONText(params), 0), context))
            }
        }
        try? core.setSource(kind: kind.rawValue, list: listing, get: getting)
        keep(numbers, .source(kind))
    }
}

extension Server.Kind {
    /// The answer made of what a source's `get` returned.
    fileprivate func answer<Value: Encodable & Sendable>(_ value: Value) throws -> Answer {
        let body =
            switch self {
            case .tool: "content"
            case .resource, .resourceTemplate: "contents"
            case .prompt: "messages"
            }
        if let json = value as? JSONValue, json[body]?.arrayValue != nil || json["resultType"] != nil {
            return try .of(result: json)
        }
        return switch self {
        case .tool: try Outcome<Value>.encoder(value)
        case .resource, .resourceTemplate: try ResourceOutcome<Value>.encoder(typed: false)(value)
        case .prompt: try PromptOutcome<Value>.result(value)
        }
    }
}
