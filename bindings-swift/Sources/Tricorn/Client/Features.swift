#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

// What a server offers besides tools.
extension Client {
    // MARK: - resources

    /// All resources, in the server's order; as many requests as the listing has pages.
    public func listResources(_ options: RequestOptions = .init()) async throws -> [Resource] {
        try await resources(options).collect()
    }

    /// The resources, page by page as they are asked for.
    public func resources(_ options: RequestOptions = .init()) -> Listing<Resource> {
        Listing(client: self, method: "resources/list", member: "resources", options: options) { Resource(checked: $0) }
    }

    /// One page of the listing: the first, or the one that `cursor` of the page before names.
    public func listResourcesPage(
        cursor: String? = nil, _ options: RequestOptions = .init()
    ) async throws -> Types.ListResourcesResult {
        .init(checked: try await page("resources/list", cursor, options))
    }

    /// All resource templates, in the server's order; as many requests as the listing has pages.
    public func listResourceTemplates(_ options: RequestOptions = .init()) async throws -> [ResourceTemplate] {
        try await resourceTemplates(options).collect()
    }

    /// The resource templates, page by page as they are asked for.
    public func resourceTemplates(_ options: RequestOptions = .init()) -> Listing<ResourceTemplate> {
        Listing(client: self, method: "resources/templates/list", member: "resourceTemplates", options: options) {
            ResourceTemplate(checked: $0)
        }
    }

    /// One page of the listing: the first, or the one that `cursor` of the page before names.
    public func listResourceTemplatesPage(
        cursor: String? = nil, _ options: RequestOptions = .init()
    ) async throws -> Types.ListResourceTemplatesResult {
        .init(checked: try await page("resources/templates/list", cursor, options))
    }

    /// Reads a resource: `try await client.readResource("config://app").text`. One that is not there is
    /// `TricornError.rpc` with −32002, in newer revisions −32602; `isResourceNotFound` of it is true in all of them.
    public func readResource(
        _ uri: String, _ options: RequestOptions = .init()
    ) async throws -> ReadResourceResult {
        .init(checked: try await request("resources/read", ["uri": .string(uri)], options))
    }

    /// Asks to be told when a resource changes, in every revision: by `ClientOptions.onResourceUpdated` and
    /// `notifications()`. What changes before this returns may not be told.
    public func subscribe(_ uri: String, _ options: RequestOptions = .init()) async throws {
        _ = try await request("resources/subscribe", ["uri": .string(uri)], options)
    }

    /// Reads a resource.
    public func readResource(_ uri: URL, _ options: RequestOptions = .init()) async throws -> ReadResourceResult {
        try await readResource(uri.absoluteString, options)
    }

    /// Asks to be told of changes of a resource.
    public func subscribe(_ uri: URL, _ options: RequestOptions = .init()) async throws {
        try await subscribe(uri.absoluteString, options)
    }

    /// No longer asks for it.
    public func unsubscribe(_ uri: URL, _ options: RequestOptions = .init()) async throws {
        try await unsubscribe(uri.absoluteString, options)
    }

    /// No longer asks for it.
    public func unsubscribe(_ uri: String, _ options: RequestOptions = .init()) async throws {
        _ = try await request("resources/unsubscribe", ["uri": .string(uri)], options)
    }

    // MARK: - prompts

    /// All prompts, in the server's order; as many requests as the listing has pages.
    public func listPrompts(_ options: RequestOptions = .init()) async throws -> [Prompt] {
        try await prompts(options).collect()
    }

    /// The prompts, page by page as they are asked for.
    public func prompts(_ options: RequestOptions = .init()) -> Listing<Prompt> {
        Listing(client: self, method: "prompts/list", member: "prompts", options: options) { Prompt(checked: $0) }
    }

    /// One page of the listing: the first, or the one that `cursor` of the page before names.
    public func listPromptsPage(
        cursor: String? = nil, _ options: RequestOptions = .init()
    ) async throws -> Types.ListPromptsResult {
        .init(checked: try await page("prompts/list", cursor, options))
    }

    /// Gets a prompt: `try await client.getPrompt("greet", ["name": "Ada"]).messages`.
    public func getPrompt(
        _ name: String, _ arguments: [String: String] = [:], _ options: RequestOptions = .init()
    ) async throws -> GetPromptResult {
        var params = OptionsText()
        params.set("name", text: name)
        if !arguments.isEmpty { params.set("arguments", table: arguments) }
        return .init(checked: try await request("prompts/get", params.json, options))
    }

    /// Gets a prompt with arguments that encode to a JSON object; what of it is no text is sent as its JSON text.
    public func getPrompt(
        _ name: String, _ arguments: some Encodable, _ options: RequestOptions = .init()
    ) async throws -> GetPromptResult {
        guard let members = try JSONValue(encoding: arguments).objectValue else {
            throw TricornError.misuse("the arguments of a prompt are an object")
        }
        var texts: [String: String] = [:]
        for (name, value) in members where !value.isNull { texts[name] = value.stringValue ?? value.description }
        return try await getPrompt(name, texts, options)
    }

    // MARK: - completion and logging

    /// Completes an argument of a prompt or a variable of a resource template, of which `value` is there already:
    /// `try await client.complete(.prompt("greet"), argument: "name", value: "A").values`.
    ///
    /// - Parameter arguments: the others that are known.
    public func complete(
        _ reference: CompletionReference, argument: String, value: String, arguments: [String: String] = [:],
        _ options: RequestOptions = .init()
    ) async throws -> Types.CompleteResult {
        var params = OptionsText()
        params.set("ref", reference.json)
        params.set("argument", ["name": .string(argument), "value": .string(value)])
        if !arguments.isEmpty {
            var context = OptionsText()
            context.set("arguments", table: arguments)
            params.set("context", context.json)
        }
        return .init(checked: try await request("completion/complete", params.json, options))
    }

    /// Asks for log messages of at least this level from now on. Without sessions each request that follows
    /// asks for it, unless its `meta` has another `io.modelcontextprotocol/logLevel`. `TricornError.unsupported`: the
    /// server has no log.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
    )
    public func setLogLevel(_ level: Context.LogLevel, _ options: RequestOptions = .init()) async throws {
        _ = try await request("logging/setLevel", ["level": .string(level.rawValue)], options)
    }

    // MARK: - roots

    /// The server may look at these folders and files from now on, and is told so. Only of a client that was given a list of
    /// `ClientOptions.roots`, which may be empty.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public func setRoots(_ roots: [ClientRoot]) throws {
        guard case .list = self.roots else {
            throw TricornError.misuse("setRoots: connect with the option \"roots\", a list, which may be empty")
        }
        try Tricorn.core { try core.setRoots(roots: roots.json.checkedText) }
    }

    /// Tells the server that what `ClientOptions.roots`, a function, gives has changed. `setRoots` tells it by itself. In
    /// modern revisions there is nothing to tell: a server asks for roots whenever it needs them. `TricornError.misuse`
    /// for a client that was connected without roots.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public func rootsChanged() throws { try notify("notifications/roots/list_changed") }
}
