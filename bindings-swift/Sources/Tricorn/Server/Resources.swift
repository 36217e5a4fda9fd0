#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

extension Offering {
    /// Adds a resource, or with `{` in its URI a resource template (RFC 6570), whose variables decode to `Variables`.
    ///
    /// ```swift
    /// app.resource("config://app", "The configuration", mimeType: "application/json") { ["debug": true] }
    ///
    /// struct Day: Codable { var year: Int; var month: Int }
    /// app.resource("notes://{year}/{month}", "A month's notes") { (day: Day, _) in try notes(day.year, day.month) }
    /// ```
    /// - Parameters:
    ///   - description: what it holds, for the model.
    ///   - name: what programs call it; the last part of the URI when nil.
    ///   - size: bytes; not of a template.
    ///   - enabled: false hides it until `setEnabled`.
    ///   - parameters: JSON Schema of the variables, which come as text and are converted to it; derived from `Variables`
    ///     when nil.
    ///   - complete: who completes which variable.
    ///   - choices: variables of which the values are known: those that begin like what is there complete it.
    ///   - replacing: it takes the place of the one of its name, if there is one, and is hidden when that is; `enabled`
    ///     can only hide it.
    ///   - scopes: what a client's access token needs for it, all of them, of a server with `auth`: others are not shown it, and
    ///     are told what they lack when they use it.
    ///   - cache: how long what is read keeps, and for whom; what the server's `cache` says when nil.
    ///   - handler: runs in a task of its own, which is cancelled when the client cancels the request. It returns text,
    ///     `Data` or `ResourceContents`, an array of one of these, a `ReadResourceResult`, or any other value, which is
    ///     read as JSON; nil is an error. What it throws becomes a JSON-RPC error: `TricornError.rpc` as it is (`resourceNotFound` makes the one for
    ///     what is not there), the text of a `ToolError`, only the type's name of any other error.
    public func resource<Variables: Decodable & Sendable, Output: Encodable & Sendable>(
        _ uri: String, _ description: String? = nil, name: String? = nil, title: String? = nil,
        mimeType: String? = nil, size: Int? = nil, annotations: Types.Annotations? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        cache: CacheHints? = nil,
        parameters: JSONValue? = nil, complete: [String: Completer] = [:], choices: [String: [String]] = [:],
        _ handler: @escaping @Sendable (Variables, Context) async throws -> Output
    ) {
        let isTemplate = uri.contains("{")
        let completes = !complete.isEmpty || !choices.isEmpty
        let encode = ResourceOutcome<Output>.encoder(typed: mimeType != nil)
        add(
            isTemplate ? .resourceTemplate : .resource, uri,
            {
                if isTemplate, size != nil { throw TricornError.misuse("the option \"size\" is for resources") }
                if !isTemplate, completes { throw TricornError.misuse("the option \"complete\" is for templates") }
                var resource = OptionsText()
                resource.set(isTemplate ? "uriTemplate" : "uri", text: uri)
                resource.set("name", text: name ?? lastPart(of: uri))
                resource.set("title", text: title)
                resource.set("description", text: description)
                resource.set("mimeType", text: mimeType)
                resource.set("size", number: size)
                resource.set("annotations", annotations?.json)
                resource.set("icons", list: icons?.map(\.json))
                resource.set("_meta", meta)
                let schema = try Arguments<Variables>.schema(parameters, texts: true)
                if !isTemplate, let variable = schema["required"]?[0], variable != "uri" {
                    throw TricornError.misuse(
                        "a resource without {\(variable.stringValue ?? "")} in its URI has no such variable")
                }
                return Offer(
                    definition: resource.json, parameters: isTemplate ? schema : nil,
                    completers: Offer.completers(complete, choices), enabled: enabled, replacing: replacing,
                    scopes: scopes,
                    cache: cache)
            },
            run: { params, context in
                try encode(try await handler(try Arguments<Variables>.parameters(params), context))
            })
    }

    /// Adds a resource template that does not look at its context.
    public func resource<Variables: Decodable & Sendable, Output: Encodable & Sendable>(
        _ uri: String, _ description: String? = nil, name: String? = nil, title: String? = nil,
        mimeType: String? = nil, size: Int? = nil, annotations: Types.Annotations? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        cache: CacheHints? = nil,
        parameters: JSONValue? = nil, complete: [String: Completer] = [:], choices: [String: [String]] = [:],
        _ handler: @escaping @Sendable (Variables) async throws -> Output
    ) {
        resource(
            uri, description, name: name, title: title, mimeType: mimeType, size: size, annotations: annotations,
            icons: icons, meta: meta, enabled: enabled, replacing: replacing, scopes: scopes, cache: cache,
            parameters: parameters,
            complete: complete, choices: choices
        ) { (variables: Variables, _) in try await handler(variables) }
    }

    /// Adds a resource that a function without arguments reads.
    public func resource<Output: Encodable & Sendable>(
        _ uri: String, _ description: String? = nil, name: String? = nil, title: String? = nil,
        mimeType: String? = nil, size: Int? = nil, annotations: Types.Annotations? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        cache: CacheHints? = nil,
        _ handler: @escaping @Sendable () async throws -> Output
    ) {
        resource(
            uri, description, name: name, title: title, mimeType: mimeType, size: size, annotations: annotations,
            icons: icons, meta: meta, enabled: enabled, replacing: replacing, scopes: scopes, cache: cache
        ) { (_: NoArguments, _) in try await handler() }
    }

    /// Adds a resource that is always the same: `app.resource("about://us", value: "We are …")`.
    public func resource(
        _ uri: String, _ description: String? = nil, name: String? = nil, title: String? = nil,
        mimeType: String? = nil, size: Int? = nil, annotations: Types.Annotations? = nil, icons: [Types.Icon]? = nil,
        meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false, scopes: [String] = [],
        cache: CacheHints? = nil,
        value: some Encodable & Sendable
    ) {
        resource(
            uri, description, name: name, title: title, mimeType: mimeType, size: size, annotations: annotations,
            icons: icons, meta: meta, enabled: enabled, replacing: replacing, scopes: scopes, cache: cache
        ) { value }
    }

}

/// The last part of a URI, or all of it when it has no parts.
private func lastPart(of uri: String) -> String {
    let parts = uri.split { ":/?#{}&,;".contains($0) }
    return parts.last.map(String.init) ?? uri
}

extension Arguments {
    /// Decodes a template's variables or a prompt's arguments; those that do not fit are the client's mistake.
    static func parameters(_ params: CorePayload) throws -> Input {
        do {
            return try decoder(params)
        } catch let error as ToolError {
            throw TricornError.rpc(code: -32602, message: error.message)
        }
    }
}

/// Conversion of a resource's result to an answer.
enum ResourceOutcome<Output: Encodable> {
    /// - Parameter typed: the definition says a MIME type.
    static func encoder(typed: Bool) -> @Sendable (Output) throws -> Answer {
        if let optional = Output.self as? any OptionalOutput.Type {
            let encode = optional.encoder(typed: typed)
            return { try encode($0) }
        }
        switch Output.self {
        case is String.Type: return { .text($0 as! String) }
        case is Data.Type: return { try .of(value: blob($0 as! Data)) }
        case is ReadResourceResult.Type: return { try .of(result: $0) }
        case is ResourceContents.Type, is Types.AnyResourceContents.Type, is Types.TextResourceContents.Type,
            is Types.BlobResourceContents.Type:
            return { try .of(value: $0) }
        case is [String].Type: return { try .of(result: ["contents": ($0 as! [String]).map { ["text": $0] }]) }
        case is [Data].Type: return { try .of(result: ["contents": ($0 as! [Data]).map(blob)]) }
        case is [ResourceContents].Type, is [Types.AnyResourceContents].Type, is [Types.TextResourceContents].Type,
            is [Types.BlobResourceContents].Type:
            return { try .of(result: ["contents": $0]) }
        default:
            // Spelt out: a value with a member "text" is no contents.
            return { value in
                let json = try JSONWriter.encode(value).withBytes { String(decoding: $0, as: UTF8.self) }
                return try .of(value: typed ? ["text": json] : ["text": json, "mimeType": "application/json"])
            }
        }
    }
}

private func blob(_ data: Data) -> [String: String] { ["blob": data.base64EncodedString()] }

/// The result of a resource's handler that may return nothing.
private protocol OptionalOutput {
    static func encoder(typed: Bool) -> @Sendable (Any) throws -> Answer
}

extension Optional: OptionalOutput where Wrapped: Encodable {
    fileprivate static func encoder(typed: Bool) -> @Sendable (Any) throws -> Answer {
        let encode = ResourceOutcome<Wrapped>.encoder(typed: typed)
        return { value in
            guard let value = value as? Wrapped else {
                throw ToolError("the resource's handler returned nil, expected text, data, contents or a value")
            }
            return try encode(value)
        }
    }
}

extension ContentBlock.EmbeddedResource: Codable {
    /// From what is on the wire. Throws `DecodingError` when it has neither text nor bytes.
    public init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        guard let resource = Self(known: value) else { throw value.mismatch("\"uri\" and \"text\" or \"blob\"") }
        self = resource
    }

    /// As on the wire.
    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

extension Types.ReadResourceResult {
    /// The texts of all contents, joined by line breaks.
    public var text: String {
        contents.compactMap { if case .text(let contents) = $0 { contents.text } else { nil } }.joined(separator: "\n")
    }

    /// The bytes of the first contents that have some.
    public var data: Data? {
        for case .blob(let contents) in contents { return Data(lenient: contents.blob) }
        return nil
    }
}
