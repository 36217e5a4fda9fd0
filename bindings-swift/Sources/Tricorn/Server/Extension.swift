internal import TricornCore

/// An extension of the protocol: what it is called, its settings, its requests and notifications.
///
/// ```swift
/// struct Query: Codable { var query: String; var limit: Int? }
///
/// var search = ServerExtension("com.example/search", settings: ["languages": ["en"]])
/// search.method("com.example/search") { (query: Query, _) in ["found": try await index.find(query)] }
/// search.notification("notifications/com.example/found", member: "com.example/queries")
/// let app = Server("library", extensions: [search])
/// ```
/// Both sides have to declare it: of a client that does not, requests are refused (−32021, in older revisions −32601), and it
/// hears no notification.
public struct ServerExtension: Sendable {
    /// An identifier with a prefix, such as `com.example/search`.
    public let id: String
    /// Settings that clients are told with it.
    public let settings: JSONObject
    fileprivate var methods: [Method] = []
    fileprivate var notifications: [JSONValue] = []

    fileprivate struct Method: Sendable {
        var name: String
        var idempotent: Bool
        var schema: @Sendable () throws -> JSONValue
        var run: Body
    }

    /// An extension that can do nothing yet. What is wrong with its identifier, the server says that it is added to.
    public init(_ id: String, settings: JSONObject = [:]) {
        self.id = id
        self.settings = settings
    }

    /// Answers a request of the extension, whose parameters decode to `Params`.
    ///
    /// - Parameters:
    ///   - name: the request's method, such as `com.example/search`.
    ///   - idempotent: it may be sent again when nobody knows whether it was carried out.
    ///   - schema: JSON Schema of the parameters, by which they are checked (−32602); derived from `Params` when nil. With
    ///     `JSONValue` or `JSONObject` as `Params` they come as they are, without `_meta`.
    ///   - handler: runs in a task of its own, which is cancelled when the client cancels the request. It returns a value
    ///     that encodes to a JSON object, which may have a `resultType` of the extension's own; nil is an empty one. What it
    ///     throws becomes a JSON-RPC error: `TricornError.rpc` as it is, the text of a `ToolError`, only the type's name of
    ///     any other error.
    public mutating func method<Params: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, idempotent: Bool = false, schema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Params, Context) async throws -> Output
    ) {
        let method = Method(name: name, idempotent: idempotent) {
            try Arguments<Params>.schema(schema)
        } run: { params, context in
            try .of(value: await handler(try Arguments<Params>.parameters(params), context))
        }
        methods.append(method)
    }

    /// Answers a request by a function that does not look at its context.
    public mutating func method<Params: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String, idempotent: Bool = false, schema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Params) async throws -> Output
    ) {
        method(name, idempotent: idempotent, schema: schema) { (params: Params, _) in try await handler(params) }
    }

    /// Answers a request without parameters.
    public mutating func method<Output: Encodable & Sendable>(
        _ name: String, idempotent: Bool = false, _ handler: @escaping @Sendable () async throws -> Output
    ) {
        method(name, idempotent: idempotent) { (_: NoArguments, _) in try await handler() }
    }

    /// Answers a request with an empty result.
    public mutating func method<Params: Decodable & Sendable>(
        _ name: String, idempotent: Bool = false, schema: JSONValue? = nil,
        _ handler: @escaping @Sendable (Params, Context) async throws -> Void
    ) {
        method(name, idempotent: idempotent, schema: schema) { (params: Params, context) -> JSONObject in
            try await handler(params, context)
            return [:]
        }
    }

    /// Sends this notification, such as `notifications/com.example/found`, to clients that ask for it; `Server.notify` does
    /// it.
    ///
    /// - Parameter member: that of the filter of `subscriptions/listen`, which is `true`, or an array of the keys that they
    ///   want to hear of.
    public mutating func notification(_ method: String, member: String) {
        notifications.append(["method": .string(method), "member": .string(member)])
    }
}

extension Server {
    /// Offers an extension of the protocol; connections that are open do not learn of it. Throws `TricornError.misuse` for an
    /// identifier, a method or a member of the filter that is wrong or taken.
    public func addExtension(_ new: ServerExtension) throws {
        let subject = "extension \"\(new.id)\""
        var numbers: [UInt32] = []
        // Before its first request can come.
        let isNew = state.extensions.with { $0.insert(new.id).inserted }
        do {
            var methods: [JSONValue] = []
            for method in new.methods {
                let schema: JSONValue
                do { schema = try method.schema() } catch {
                    throw TricornError.from(error).about("\(subject): \"\(method.name)\"")
                }
                let number = handler(method.name, "request \"\(method.name)\"", method.run)
                numbers.append(number)
                var row = OptionsText()
                row.set("name", text: method.name)
                row.set("handler", number: Int(number))
                row.set("idempotent", flag: method.idempotent)
                row.set("schema", schema)
                methods.append(row.json)
            }
            var definition = OptionsText()
            definition.set("id", text: new.id)
            definition.set("settings", .object(new.settings))
            definition.set("methods", list: methods)
            definition.set("notifications", list: new.notifications)
            try core.addExtension(definition: definition.json.checkedText)
        } catch {
            if isNew { state.extensions.with { _ = $0.remove(new.id) } }
            Host.shared.removeHandlers(numbers)
            throw TricornError.from(error).about(subject)
        }
        keep(numbers, .ofExtension(new.id))
    }

    /// Sends a notification of an extension to the clients that asked for it: those with `true` in its member of their
    /// filter, and those with `key` in that. Clients of older revisions, which cannot ask, hear of it when they declare the
    /// extension. Throws `TricornError.misuse` when no extension has it, and for parameters that are no object.
    public func notify(_ method: String, _ params: JSONValue? = nil, key: String? = nil) throws {
        let writer = JSONWriter()
        if let params { writer.append(params) }
        try Tricorn.core { try writer.withData { try core.notify(method: method, json: $0, key: key) } }
    }
}
