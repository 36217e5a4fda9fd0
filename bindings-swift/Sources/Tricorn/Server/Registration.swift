internal import TricornCore

/// Something that is offered, without its handler.
struct Offer {
    var definition: JSONValue
    /// The JSON Schema of a template's variables or a prompt's arguments.
    var parameters: JSONValue?
    var completers: [String: Completer] = [:]
    var enabled = true
    /// It takes the place of what has its name.
    var replacing = false
    /// The scopes that an access token needs for it.
    var scopes: [String] = []
    /// The longest time of a tool's handler.
    var timeout: Duration?
    /// Lifetime and audience of what is read, in caches.
    var cache: CacheHints?
}

extension Server {
    /// The kinds of things that a server offers.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case tool
        case resource
        case resourceTemplate = "resource_template"
        case prompt

        /// For messages.
        var word: String { self == .resourceTemplate ? "resource template" : rawValue }
    }

    // MARK: - while it runs

    /// Removes a tool; clients are told that the list has changed. False when there is none of that name.
    @discardableResult
    public func removeTool(_ name: String) -> Bool { remove(.tool, name) }

    /// Removes a resource. False when there is none with that URI.
    @discardableResult
    public func removeResource(_ uri: String) -> Bool { remove(.resource, uri) }

    /// Removes a resource template. False when there is none.
    @discardableResult
    public func removeResourceTemplate(_ uriTemplate: String) -> Bool { remove(.resourceTemplate, uriTemplate) }

    /// Removes a prompt. False when there is none of that name.
    @discardableResult
    public func removePrompt(_ name: String) -> Bool { remove(.prompt, name) }

    private func remove(_ kind: Kind, _ name: String) -> Bool {
        guard (try? core.remove(kind: kind.rawValue, name: name)) == true else { return false }
        keep(nil, .offered(kind, name))
        return true
    }

    /// Adds a file as a resource, read when it is asked for; it need not exist yet, and one of more than `maxBytes`, 2 MiB,
    /// is refused. `cache` is how long what is in it keeps, and for whom; `scopes` are what a caller's access token needs, over
    /// HTTP. Throws `TricornError.misuse` for a directory, or when the URI is none or is taken.
    public func addFile(
        _ path: String, uri: String, maxBytes: Int? = nil, cache: CacheHints? = nil, scopes: [String] = []
    ) throws {
        var options = OptionsText()
        options.set("path", text: path)
        options.set("directory", flag: false)
        options.set("uri", text: uri)
        options.set("max_bytes", number: maxBytes)
        options.set("cache", cache?.json)
        if !scopes.isEmpty { options.set("scopes", texts: scopes) }
        try Tricorn.core { try core.addFiles(options: options.json.description) }
    }

    /// Adds the files of a directory, and of those in it, as resources: `uri` with their path behind it. They are listed
    /// and read as they are when they are asked for; nothing outside of the directory can be read, and files whose names
    /// begin with a dot only if `hidden`. At most `maxFiles`, 10,000, are listed, and files of more than `maxBytes`,
    /// 2 MiB, are refused. The directory is removed, hidden and shown as a resource, by its URI: `removeResource(uri)`,
    /// `setEnabled(.resource, named: uri, to: false)`. `cache` is how long what is in the files keeps, and for whom; `scopes` are what a
    /// caller's access token needs, over HTTP, to see and read them. Throws `TricornError.misuse` when there is no such
    /// directory, or the URI is none.
    public func addDirectory(
        _ path: String, uri: String, hidden: Bool = false, maxFiles: Int? = nil, maxBytes: Int? = nil,
        cache: CacheHints? = nil, scopes: [String] = []
    ) throws {
        var options = OptionsText()
        options.set("path", text: path)
        options.set("directory", flag: true)
        options.set("uri", text: uri)
        if hidden { options.set("hidden", flag: true) }
        options.set("max_files", number: maxFiles)
        options.set("max_bytes", number: maxBytes)
        options.set("cache", cache?.json)
        if !scopes.isEmpty { options.set("scopes", texts: scopes) }
        try Tricorn.core { try core.addFiles(options: options.json.description) }
    }

    /// Shows or hides what has this name, URI or URI template, from all clients: what is hidden is not listed and cannot
    /// be used. A directory goes by its URI, as a resource. Says whether that changed anything. For one client alone:
    /// `Context.setEnabled`.
    @discardableResult
    public func setEnabled(_ kind: Kind, named name: String, to yes: Bool) -> Bool {
        (try? core.setEnabled(kind: kind.rawValue, name: name, yes: yes)) ?? false
    }

    /// Tells the client that the visit to a page is over (2025-11-25): the one that was asked for it, by
    /// `Context.elicitURL` or `TricornError.urlElicitationRequired`, also after the call. Of one client the last 256 visits
    /// are known; nothing happens with others.
    public func completeElicitation(_ elicitationID: String) {
        try? core.elicitationComplete(elicitationId: elicitationID)
    }

    /// Tells clients that a resource has changed: those that subscribed or listen to `uri`, or to what it is a part of.
    public func notifyResourceUpdated(_ uri: String) { try? core.resourceUpdated(uri: uri) }

    /// Tells clients that a list has changed, where the server cannot know: that of a source.
    public func notifyListChanged(_ kind: Kind) { try? core.listChanged(kind: kind.rawValue) }

    // MARK: - hooks

    /// Hears of clients that subscribe or listen to resources, and of the end of that. Throwing `TricornError.rpc` or
    /// `ToolError` refuses it.
    public func onSubscribe(_ hear: @escaping @Sendable (_ uri: String, _ subscribed: Bool) async throws -> Void) {
        setHook("subscribe", "the subscription") { params, _ in
            let params = JSONValue(try JSONText(params), 0)
            try await hear(params["uri"]?.stringValue ?? "", params["subscribed"]?.boolValue ?? false)
            return try .of(value: JSONValue.object([:]))
        }
    }

    /// Says whose a request is, where users are known by something else than `auth`.
    ///
    /// ```swift
    /// app.setPrincipal { context in context.request?.headers["x-user"] }
    /// ```
    /// In 2026-07-28 the state between rounds of questions, and over HTTP a task, belong to who that is, and are refused to
    /// all others. Nil: nobody's in particular, and anybody of whom this says the same may go on. It is called inside of all
    /// middleware, whose `values` it sees, of requests that may ask or are about tasks; neither it nor middleware may ask the
    /// client then. When it throws, the request fails. Default: `context.principal`, else the issuer and subject of a JSON
    /// Web Token in `Authorization`, which is not verified here, else that header as it is.
    public func setPrincipal(_ of: @escaping @Sendable (_ context: Context) async throws -> String?) {
        setHook("principal", "the principal") { _, context in
            let whose = try await of(context)
            return try .of(result: JSONValue.object(["principal": whose.map { .string($0) } ?? .null]))
        }
    }

    /// Hears that a client's roots have changed. The context belongs to no request, and can ask: `context.listRoots()`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public func onRootsChanged(_ hear: @escaping @Sendable (_ context: Context) async throws -> Void) {
        setHook("roots_changed", "what hears of roots") { _, context in
            try await hear(context)
            return try .of(value: JSONValue.object([:]))
        }
    }

    func setHook(_ name: String, _ subject: String, _ run: @escaping Body) {
        let number = handler(name, subject, run)
        try? core.setHook(name: name, handler: number)
        keep([number], .hook(name))
    }
}
