#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// For tools without arguments that want their context: `{ (_: NoArguments, context) in … }`.
public struct NoArguments: Codable, Sendable, Hashable {
    /// Nothing.
    public init() {}
}

/// Hints about a tool's behaviour; all are advice, none is to be trusted from a server one does not trust.
public struct ToolAnnotations: Sendable, Hashable, Codable {
    /// A name for people; the tool's own `title` comes first.
    public var title: String?
    /// Changes nothing.
    public var readOnlyHint: Bool?
    /// May destroy, and not only add.
    public var destructiveHint: Bool?
    /// Doing it twice is as doing it once.
    public var idempotentHint: Bool?
    /// Deals with the world outside.
    public var openWorldHint: Bool?

    /// Hints that are nil are not sent.
    public init(
        title: String? = nil, readOnlyHint: Bool? = nil, destructiveHint: Bool? = nil, idempotentHint: Bool? = nil,
        openWorldHint: Bool? = nil
    ) {
        self.title = title
        self.readOnlyHint = readOnlyHint
        self.destructiveHint = destructiveHint
        self.idempotentHint = idempotentHint
        self.openWorldHint = openWorldHint
    }
}

private struct ToolOptions: Sendable {
    var name: String
    var description: String?
    var title: String?
    var annotations: ToolAnnotations?
    var icons: [Types.Icon]?
    var meta: JSONValue?
    var taskSupport: TaskSupport?

    func definition(input: JSONValue, output: JSONValue?) -> JSONValue {
        var tool = OptionsText()
        tool.set("name", text: name)
        tool.set("title", text: title)
        tool.set("description", text: description)
        tool.set("inputSchema", input)
        tool.set("outputSchema", output)
        tool.set("annotations", annotations.flatMap { try? JSONValue(encoding: $0) })
        tool.set("icons", list: icons?.map(\.json))
        tool.set("_meta", meta)
        if let taskSupport { tool.set("execution", ["taskSupport": taskSupport.json]) }
        return tool.json
    }
}

extension Offering {
    /// Adds a tool whose arguments decode to `Input` and whose result is what the handler returns.
    ///
    /// - Parameters:
    ///   - description: what the tool does, for the model.
    ///   - enabled: false hides it until `setEnabled`.
    ///   - taskSupport: whether it may, or must, be called as a task, of a server with `tasks`; it must not when nil. In
    ///     2026-07-28 both make it one for every client that declares the extension; others call `.optional` plainly.
    ///   - inputSchema: derived from `Input` when nil; see `SchemaProviding` for what can be.
    ///   - outputSchema: derived from `Output` when nil and possible; there is none for text and content blocks.
    ///   - replacing: it takes the place of the one of its name, if there is one, and is hidden when that is; `enabled`
    ///     can only hide it.
    ///   - scopes: what a client's access token needs for it, all of them, of a server with `auth`: others are not shown it, and
    ///     are told what they lack when they use it.
    ///   - timeout: time after which the handler is cancelled, and its caller answered with an error that the model can read;
    ///     `toolTimeout` of the server when nil, none when `.zero`. It begins anew with each
    ///     round of questions in revision 2026-07-28; in others the wait for answers of the client counts.
    ///   - handler: runs in a task of its own, which is cancelled when the client cancels the call. It returns a
    ///     value that encodes to JSON, a `String`, a `ContentBlock` block or an array of them, or a `CallToolResult`. What it
    ///     throws becomes a result with `isError`: the text of a `ToolError`, only the type's name of any other
    ///     error; `TricornError.rpc` becomes a JSON-RPC error.
    public func tool<Input: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, annotations: ToolAnnotations? = nil,
        icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false,
        scopes: [String] = [], timeout: Duration? = nil,
        taskSupport: TaskSupport? = nil, inputSchema: JSONValue? = nil, outputSchema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Input, Context) async throws -> Output
    ) {
        let decode = Arguments<Input>.decoder
        let encode = Outcome<Output>.encoder
        let options = ToolOptions(
            name: name, description: description, title: title, annotations: annotations, icons: icons, meta: meta,
            taskSupport: taskSupport)
        add(
            .tool, name,
            {
                Offer(
                    definition: options.definition(
                        input: try Arguments<Input>.schema(inputSchema),
                        output: try outputSchema ?? Outcome<Output>.schema()),
                    enabled: enabled, replacing: replacing, scopes: scopes, timeout: timeout)
            },
            run: { params, context in try encode(try await handler(try decode(params), context)) })
    }

    /// Adds a tool that does not look at its context.
    public func tool<Input: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, annotations: ToolAnnotations? = nil,
        icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false,
        scopes: [String] = [], timeout: Duration? = nil,
        taskSupport: TaskSupport? = nil, inputSchema: JSONValue? = nil, outputSchema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Input) async throws -> Output
    ) {
        tool(
            name, description, title: title, annotations: annotations, icons: icons, meta: meta,
            enabled: enabled, replacing: replacing, scopes: scopes, timeout: timeout, taskSupport: taskSupport,
            inputSchema: inputSchema, outputSchema: outputSchema
        ) { (input: Input, _) in try await handler(input) }
    }

    /// Adds a tool without arguments.
    public func tool<Output: Encodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, annotations: ToolAnnotations? = nil,
        icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false,
        scopes: [String] = [], timeout: Duration? = nil,
        taskSupport: TaskSupport? = nil, inputSchema: JSONValue? = nil, outputSchema: JSONValue? = nil,
        _ handler: @escaping @Sendable () async throws -> Output
    ) {
        tool(
            name, description, title: title, annotations: annotations, icons: icons, meta: meta,
            enabled: enabled, replacing: replacing, scopes: scopes, timeout: timeout, taskSupport: taskSupport,
            inputSchema: inputSchema, outputSchema: outputSchema
        ) { (_: NoArguments, _) in try await handler() }
    }

    /// Adds a tool that returns nothing.
    public func tool<Input: Decodable & Sendable>(
        _ name: String, _ description: String? = nil, title: String? = nil, annotations: ToolAnnotations? = nil,
        icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false,
        scopes: [String] = [], timeout: Duration? = nil,
        taskSupport: TaskSupport? = nil, inputSchema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Input, Context) async throws -> Void
    ) {
        tool(
            name, description, title: title, annotations: annotations, icons: icons, meta: meta,
            enabled: enabled, replacing: replacing, scopes: scopes, timeout: timeout, taskSupport: taskSupport,
            inputSchema: inputSchema
        ) { (input: Input, context) -> [ContentBlock] in
            try await handler(input, context)
            return []
        }
    }
}

/// Conversion of a handler's arguments to `Input`.
enum Arguments<Input: Decodable & Sendable> {
    /// - Parameter texts: they come as text, which is never null.
    static func schema(_ given: JSONValue?, texts: Bool = false) throws -> JSONValue {
        if let given { return given }
        if Input.self == JSONValue.self || Input.self == JSONObject.self { return ["type": "object"] }
        let schema = try JSONSchema.of(Input.self, nulls: !texts)
        guard schema["type"] == "object" else {
            throw TricornError.misuse("arguments are an object, and \(Input.self) is not; wrap it in a struct")
        }
        return schema
    }

    static var decoder: @Sendable (CorePayload) throws -> Input {
        { payload in
            let text = try JSONText(payload)
            do {
                return try JSONReader.decode(Input.self, text, 0)
            } catch let error as DecodingError {
                throw ToolError(error.text(subject: "argument"))
            }
        }
    }
}

/// Conversion of a tool's result to an answer; decided once, when the tool is added.
enum Outcome<Output: Encodable & Sendable> {
    static func schema() throws -> JSONValue? {
        if Output.self == String.self || Output.self == ContentBlock.self || Output.self == [ContentBlock].self
            || Output.self == CallToolResult.self || Output.self == JSONValue.self
        {
            return nil
        }
        // A type that only encodes, or decodes in its own way, goes without.
        guard let type = Output.self as? any Decodable.Type, let schema = try? JSONSchema.of(type, nulls: true) else {
            return nil
        }
        return schema
    }

    static var encoder: @Sendable (Output) throws -> Answer {
        if Output.self == String.self { return { .text($0 as! String) } }
        if Output.self == ContentBlock.self {
            return { try .of(result: CallToolResult(content: [$0 as! ContentBlock])) }
        }
        if Output.self == [ContentBlock].self {
            return { try .of(result: CallToolResult(content: $0 as! [ContentBlock])) }
        }
        if Output.self == CallToolResult.self { return { try .of(result: $0 as! CallToolResult) } }
        return { try .of(value: $0) }
    }
}
