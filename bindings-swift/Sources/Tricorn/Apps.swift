/// MCP Apps, the extension `io.modelcontextprotocol/ui`: tools with a user interface of their own, shown by the host.
///
/// ```swift
/// let app = Server("weather", extensions: [.ui])
/// app.tool("forecast", "The weather of the coming days", meta: try ToolUI("ui://weather/map").meta) { (city: City, context) in
///     context.supportsUI() ? "Sunny." : "Sunny on all days from Monday to Sunday, 21 to 25 degrees."
/// }
/// app.uiResource("ui://weather/map", html: page)
/// ```
/// What a tool answers has to make sense without its user interface, too: not every client shows one.
public enum Apps {
    /// The extension's identifier.
    public static let uiExtension = "io.modelcontextprotocol/ui"
    /// The MIME type of a user interface.
    public static let uiMIMEType = "text/html;profile=mcp-app"
    /// The beginning of user interfaces' URIs.
    static let scheme = "ui://"

    /// The declaration of a client that shows user interfaces:
    /// `options.extensions[Apps.uiExtension] = Apps.uiClientSettings()`.
    public static func uiClientSettings(mimeTypes: [String] = [Apps.uiMIMEType]) -> JSONObject {
        ["mimeTypes": .array(mimeTypes.map { .string($0) })]
    }

    static func misuse(_ name: String, _ uri: String) -> TricornError {
        .misuse("\(name): expected a URI that begins with \(scheme), got \"\(uri)\"")
    }
}

extension ServerExtension {
    /// MCP Apps, for a server: `Server("weather", extensions: [.ui])`.
    public static var ui: ServerExtension { ServerExtension(Apps.uiExtension) }
}

// MARK: - servers

/// The user interface of a tool: `_meta.ui` of its definition.
public struct ToolUI: Sendable, Hashable {
    /// A caller of a tool.
    public enum Visibility: String, Sendable, Hashable, CaseIterable {
        /// The model.
        case model
        /// The user interface.
        case app
    }

    /// Its address, a `ui://` URI; nil: the tool has none, and only `visibility` counts.
    public let resourceURI: String?
    /// The callers that may use the tool. Hosts keep tools without `.model` from the model.
    public let visibility: Set<Visibility>

    /// Throws `TricornError.misuse` for a URI that does not begin with `ui://`.
    public init(_ resourceURI: String? = nil, visibility: Set<Visibility> = [.model, .app]) throws {
        if let resourceURI, !resourceURI.hasPrefix(Apps.scheme) { throw Apps.misuse("resourceURI", resourceURI) }
        self.resourceURI = resourceURI
        self.visibility = visibility
    }

    /// The tool's `_meta`: `app.tool("forecast", meta: try ToolUI("ui://weather/map").meta) { … }`.
    public var meta: JSONValue {
        var ui = OptionsText()
        ui.set("resourceUri", text: resourceURI)
        let all = Visibility.allCases
        if visibility != Set(all) {
            ui.set("visibility", list: all.filter(visibility.contains).map { .string($0.rawValue) })
        }
        return ["ui": ui.json]
    }
}

/// Display settings of a user interface for the host: `_meta.ui` of a resource's contents.
public struct ResourceUI: Sendable, Hashable {
    /// The origins that it may use; none when nil.
    public var csp: CSP?
    /// Abilities that it would like to have; the host may refuse.
    public var permissions: Set<Permission>
    /// The origin that it is to have, as the host names them; one of its own when nil.
    public var domain: String?
    /// True if a border around it is wanted, false if none is; as the host likes when nil.
    public var prefersBorder: Bool?

    /// The host decides what is left out.
    public init(
        csp: CSP? = nil, permissions: Set<Permission> = [], domain: String? = nil, prefersBorder: Bool? = nil
    ) {
        self.csp = csp
        self.permissions = permissions
        self.domain = domain
        self.prefersBorder = prefersBorder
    }

    /// The origins that a user interface may use, such as `https://api.example.com`; the host blocks all that is not
    /// named.
    public struct CSP: Sendable, Hashable {
        /// Origins of requests.
        public var connectDomains: [String]
        /// Origins of images, scripts, styles, fonts and media.
        public var resourceDomains: [String]
        /// Origins of frames.
        public var frameDomains: [String]
        /// Origins of base URIs.
        public var baseURIDomains: [String]

        /// None but these.
        public init(
            connectDomains: [String] = [], resourceDomains: [String] = [], frameDomains: [String] = [],
            baseURIDomains: [String] = []
        ) {
            self.connectDomains = connectDomains
            self.resourceDomains = resourceDomains
            self.frameDomains = frameDomains
            self.baseURIDomains = baseURIDomains
        }

        fileprivate var json: JSONValue {
            var csp = OptionsText()
            for (name, domains) in [
                ("connectDomains", connectDomains), ("resourceDomains", resourceDomains),
                ("frameDomains", frameDomains), ("baseUriDomains", baseURIDomains),
            ] where !domains.isEmpty {
                csp.set(name, texts: domains)
            }
            return csp.json
        }
    }

    /// An ability that a user interface may ask for.
    public enum Permission: String, Sendable, Hashable, CaseIterable {
        case camera, microphone, geolocation, clipboardWrite
    }

    /// The `_meta` of the resource's contents.
    public var meta: JSONValue {
        var ui = OptionsText()
        ui.set("csp", csp?.json)
        if !permissions.isEmpty {
            var wanted = OptionsText()
            for permission in Permission.allCases where permissions.contains(permission) {
                wanted.set(permission.rawValue, [:])
            }
            ui.set("permissions", wanted.json)
        }
        ui.set("domain", text: domain)
        ui.set("prefersBorder", flag: prefersBorder)
        return ["ui": ui.json]
    }
}

extension Offering {
    /// Adds a user interface that a function makes when it is read.
    ///
    /// - Parameters:
    ///   - uri: begins with `ui://`, and has no variables.
    ///   - ui: how the host is to show it.
    ///   - name: what programs call it; the URI without `ui://` when nil.
    ///   - html: returns a whole HTML document. What it throws becomes a JSON-RPC error, as of other resources.
    public func uiResource(
        _ uri: String, _ description: String? = nil, ui: ResourceUI? = nil, name: String? = nil, title: String? = nil,
        icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true, replacing: Bool = false,
        scopes: [String] = [],
        cache: CacheHints? = nil, _ html: @escaping @Sendable () async throws -> String
    ) {
        guard uri.hasPrefix(Apps.scheme), !uri.contains("{") else {
            let error: TricornError =
                uri.contains("{")
                ? .misuse("uri: expected a URI without variables, got \"\(uri)\"") : Apps.misuse("uri", uri)
            return add(.resource, uri, { throw error }, run: { _, _ in throw error })
        }
        let shown = ui?.meta
        resource(
            uri, description, name: name ?? String(uri.dropFirst(Apps.scheme.count)), title: title,
            mimeType: Apps.uiMIMEType, icons: icons, meta: meta, enabled: enabled, replacing: replacing, scopes: scopes,
            cache: cache
        ) { () -> ResourceContents in
            ResourceContents(uri: uri, mimeType: Apps.uiMIMEType, text: try await html(), meta: shown)
        }
    }

    /// Adds a user interface that is always the same: `app.uiResource("ui://weather/map", html: page)`.
    public func uiResource(
        _ uri: String, _ description: String? = nil, html: String, ui: ResourceUI? = nil, name: String? = nil,
        title: String? = nil, icons: [Types.Icon]? = nil, meta: JSONValue? = nil, enabled: Bool = true,
        replacing: Bool = false, scopes: [String] = [], cache: CacheHints? = nil
    ) {
        uiResource(
            uri, description, ui: ui, name: name, title: title, icons: icons, meta: meta, enabled: enabled,
            replacing: replacing, scopes: scopes, cache: cache
        ) { html }
    }
}

extension Context {
    /// True if the client of this request shows user interfaces of this MIME type; text has to do when it does not.
    public func supportsUI(_ mimeType: String = Apps.uiMIMEType) -> Bool {
        self.extension(Apps.uiExtension)?["mimeTypes"]?.arrayValue?.contains(.string(mimeType)) ?? false
    }
}

// MARK: - hosts

extension Tool {
    /// The user interface that a listed tool has, also under its former name `ui/resourceUri`; nil for none, or for what
    /// is no such thing.
    public var ui: ToolUI? {
        let own = meta?["ui"]
        if let own, own.objectValue == nil { return nil }
        guard let visibility else { return nil }
        guard let uri = own?["resourceUri"] ?? meta?["ui/resourceUri"] else {
            return own == nil ? nil : try? ToolUI(visibility: visibility)
        }
        guard let uri = uri.stringValue else { return nil }
        return try? ToolUI(uri, visibility: visibility)
    }

    /// True if a host may tell the model of this tool. False when its visibility is no list.
    public var isVisibleToModel: Bool { visibility?.contains(.model) ?? false }

    /// True if a host may let a user interface of the same server call this tool. False when its visibility is no list.
    public var isCallableByApp: Bool { visibility?.contains(.app) ?? false }

    /// The callers that may use it, those we know; nil when its visibility is no list.
    private var visibility: Set<ToolUI.Visibility>? {
        guard let given = meta?["ui"]?["visibility"] else { return [.model, .app] }
        guard let given = given.arrayValue else { return nil }
        return Set(given.compactMap { $0.stringValue.flatMap(ToolUI.Visibility.init) })
    }
}
