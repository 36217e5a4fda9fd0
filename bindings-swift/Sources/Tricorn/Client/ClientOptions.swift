/// Options of a client; each has the core's default.
///
/// Callbacks run one after the other, in a thread of their own; 1024 wait for a slow one, further ones are dropped.
public struct ClientOptions: Sendable {
    /// The name that the server is told (`tricorn`).
    public var name: String?
    /// The version of that (the library's).
    public var version: String?
    /// The name for people.
    public var title: String?
    /// A sentence about the client.
    public var description: String?
    /// The URL of a page to read about it.
    public var websiteURL: String?
    /// Its icons, as the protocol has them.
    public var icons: [Types.Icon]?
    /// Pins a revision, such as `2025-11-25`, or those with handshakes (`legacy`) or without (`modern`); otherwise the
    /// newest that both know.
    public var revision: ProtocolRevision?
    /// Without an answer or progress for so long, a request fails (60 s); `.zero`: no limit.
    public var requestTimeout: Duration?
    /// For how long a server may be silent when asked whether it is modern (5 s).
    public var probeTimeout: Duration?
    /// Bytes of one message (32 MiB).
    public var maxMessageBytes: Int?
    /// Depth of its JSON (128).
    public var maxNesting: Int?
    /// Memory that a message's values may take once decoded, in bytes and by estimate (64 MiB).
    public var maxDecodedBytes: Int?
    /// Bytes that the whole process keeps for its peers at most, such as long messages until they are read (a quarter of the
    /// memory of the machine or its control group). The last client or server that says it decides for all.
    public var maxMemory: Int?
    /// Requests at once (256); more wait.
    public var maxInFlight: Int?
    /// Sent with every HTTP request.
    public var headers: [String: String]?
    /// The proxy for all that is asked over HTTP, logins included: a URL with `http://` or `socks5://`; empty for none. What
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say when nil.
    public var proxy: String?
    /// Authorities whose certificates are trusted besides those of this machine, which `SSL_CERT_FILE`, `SSL_CERT_DIR` and
    /// `NODE_EXTRA_CA_CERTS` may name: PEM, or the path of a file with that.
    public var ca: String?
    /// The client's own certificate: PEM, or the path of a file with that.
    public var cert: String?
    /// The private key that it belongs to: PEM, or the path of a file with that. It is in `cert` when nil.
    public var key: String?
    /// Carries all HTTP of the client, logins included: `.urlSession(session)` of the module `TricornURLSession`, or any other.
    /// The library's own connections do when nil; `proxy`, `ca`, `cert` and `key` are about those, and beside it a
    /// `TricornError.misuse`. What it throws is `TricornError.transport`.
    public var httpTransport: (any HTTPTransport)?
    /// Authorization at a protected server: `ClientAuth()` finds out everything. None when nil.
    public var auth: ClientAuth?
    /// Time that a launched server has to end by itself, and then again after SIGTERM (2 s).
    public var shutdownGrace: Duration?
    /// Without a message of the server for so long, it is asked for a sign of life (never).
    public var pingInterval: Duration?
    /// A server that does not answer that for so long is taken for lost, and the connection ends (20 s).
    public var pingTimeout: Duration?
    /// The cache of the server's answers (2026-07-28): they say what may be kept. `.off`: nothing.
    public var cache: ClientCache?
    /// Extensions of the protocol that the server is told of, by their identifiers, each with its settings:
    /// `["com.example/search": [:]]`. That for tasks is `tasks`.
    public var extensions: [String: JSONObject] = [:]
    /// True if a tool's structured content is checked against the output schema that this client has listed; what does not
    /// fit is a `TricornError.peerMisbehaved` (true).
    public var validateOutput: Bool?
    /// Records everything that passes as a cassette, in this file, which is replaced; `replay:FILE` is a target that plays it.
    /// Nothing when nil.
    public var record: String?
    /// True if secrets are left out of what is recorded: values of headers, of the target's environment and query, of `auth`,
    /// of members and variables that are named like secrets, and texts that look like them (true).
    public var redact: Bool?
    /// True if a program that has ended unasked is started again when it is needed, in revisions without sessions, at
    /// most five times within a minute; in others the client ends with it (true).
    public var restart: Bool?
    /// The part of this one's environment that a program finds, besides the `environment` of its target (all of it).
    public var inheritEnv: InheritEnv?
    /// Values of the placeholders of an `mcp.json`, by what is between their braces: `["input:key": "…"]`. They come
    /// before the environment.
    public var variables: [String: String] = [:]
    /// The capabilities to declare, as the protocol has them.
    public var capabilities: JSONValue?
    /// Answers the server's requests for a message of the model: `{ request, _ in "text" }`, or a `CreateMessageResult`.
    /// Declares `sampling`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public var sampling: Sampler? {
        get { kept.sampling }
        set { kept.sampling = newValue }
    }
    /// `sampling` knows what to do with tools. Declares `sampling.tools`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public var samplingTools: Bool {
        get { kept.samplingTools }
        set { kept.samplingTools = newValue }
    }
    /// `sampling` can give the model what servers tell it (`includeContext`). Declares `sampling.context`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
    )
    public var samplingContext: Bool {
        get { kept.samplingContext }
        set { kept.samplingContext = newValue }
    }
    /// Answers the server's questions to the user: `{ question, _ in .accept(["name": "Ada"]) }`. Declares `elicitation`.
    public var elicitation: Elicitor?
    /// The kinds of questions that `elicitation` can ask.
    public var elicitationModes: Set<ElicitationQuestion.Mode> = [.form]
    /// The folders and files that the server may look at: `["/srv/notes"]`. Declares `roots`.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )
    public var roots: Roots? {
        get { kept.roots }
        set { kept.roots = newValue }
    }
    /// An object that does all of this, for many clients: a `SamplingPolicy`, an `ElicitationPolicy`, a `RootsPolicy`, or
    /// several of these. What is given beside it counts more.
    public var policy: (any ClientPolicy)?
    /// Runs `sampling` and `elicitation` as tasks, where the server wants that (2025-11-25, experimental). In 2026-07-28 it
    /// declares the extension `io.modelcontextprotocol/tasks`: the server may answer calls of tools with tasks, which are
    /// followed to their end.
    public var tasks: TaskOptions?
    /// Asked for the trace that a request belongs to, for each one, in the task that makes it; nil is no trace. What the
    /// request's own options say comes first.
    public var traceContext: (@Sendable () -> TraceContext?)?
    /// Stands around every request that the client sends: `[.timing, .init { request, context, next in … }]`.
    public var middleware: [Middleware<ClientContext>] = []
    /// Told why the connection ended, once, when that was not by `Client.close`.
    public var onClose: (@Sendable (_ reason: String) -> Void)?
    /// Hears every notification of the server, from the start of connecting; in every revision those of all lists that it
    /// tells of, too.
    public var onNotification: (@Sendable (PeerNotification) -> Void)?
    /// Hears the server's log messages.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
    )
    public var onLog: LogListener? {
        get { kept.onLog }
        set { kept.onLog = newValue }
    }
    /// Hears that a resource that was subscribed to, or a part of it, has changed.
    public var onResourceUpdated: (@Sendable (_ uri: String) -> Void)?
    /// Hears that a list has changed, in every revision; templates are listed with resources.
    public var onListChanged: (@Sendable (_ kind: Server.Kind) -> Void)?
    /// Hears every line that a launched server writes to its standard error, from the start; without this, they go to
    /// this process's own.
    public var onStderr: (@Sendable (_ line: String) -> Void)?
    /// Hears what is wrong but no reason to fail, such as a tool that is left out for a bad `x-mcp-header`. To standard
    /// error by default.
    public var onWarning: WarningListener {
        get { warningListener ?? Self.toStandardError }
        set { warningListener = newValue }
    }

    /// Hears what is wrong but no reason to fail.
    public typealias WarningListener = @Sendable (_ message: String) -> Void

    /// Hears a log message of a server.
    public typealias LogListener = @Sendable (_ level: Context.LogLevel, _ logger: String?, _ data: JSONValue) -> Void

    /// The listener that `onWarning` was set to.
    private(set) var warningListener: WarningListener?
    private static let toStandardError: WarningListener = { StandardError.write("\($0)\n") }

    /// Values of the deprecated options, for the library to use.
    struct Kept: Sendable {
        var sampling: Sampler?
        var samplingTools = false
        var samplingContext = false
        var roots: Roots?
        var onLog: LogListener?
    }
    var kept = Kept()

    /// The core's defaults, `revision` excepted.
    public init(revision: ProtocolRevision? = nil) { self.revision = revision }

    /// The core's defaults, and a revision that is read from somewhere.
    @_disfavoredOverload
    public init(revision: String?) { self.revision = revision.map(ProtocolRevision.init(rawValue:)) }

    /// - Parameter functions: those of the options, in the table of handlers.
    func text(_ functions: AskedFunctions) -> OptionsText {
        var options = OptionsText()
        options.set("auth", functions.auth?.json)
        options.set("name", text: name)
        options.set("version", text: version)
        options.set("title", text: title)
        options.set("description", text: description)
        options.set("website_url", text: websiteURL)
        options.set("icons", list: icons?.map(\.json))
        options.set("revision", text: revision?.rawValue)
        options.set("request_timeout", duration: requestTimeout)
        options.set("probe_timeout", duration: probeTimeout)
        options.set("max_message_bytes", number: maxMessageBytes)
        options.set("max_nesting", number: maxNesting)
        options.set("max_decoded_bytes", number: maxDecodedBytes)
        options.set("max_memory", number: maxMemory)
        options.set("max_in_flight", number: maxInFlight)
        options.set("headers", table: headers)
        options.set("proxy", text: proxy)
        options.set("ca", text: ca)
        options.set("cert", text: cert)
        options.set("key", text: key)
        options.set("http_transport", functions.transport?.json)
        options.set("shutdown_grace", duration: shutdownGrace)
        options.set("ping_interval", duration: pingInterval)
        options.set("ping_timeout", duration: pingTimeout)
        options.set("cache", cache?.json(functions.cache))
        if !extensions.isEmpty {
            let declared = extensions.sorted { $0.key < $1.key }
            options.set("extensions", .object(JSONObject(declared.map { (key: $0.key, value: .object($0.value)) })))
        }
        options.set("validate_output", flag: validateOutput)
        options.set("record", text: record)
        options.set("redact", flag: redact)
        options.set("restart", flag: restart)
        options.set("inherit_env", inheritEnv?.json)
        if !variables.isEmpty { options.set("variables", table: variables) }
        options.set("capabilities", capabilities)
        options.set("tasks", tasks?.json)
        return options
    }
}

/// The part of the environment that a program gets of the one that starts it.
public enum InheritEnv: Sendable, Hashable {
    /// All of it.
    case all
    /// A short list of what programs need, in which no secret is: `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`.
    case safe
    /// The same and these.
    case names([String])

    fileprivate var json: JSONValue {
        switch self {
        case .all: true
        case .safe: false
        case .names(let names): .array(names.map { .string($0) })
        }
    }
}

/// An event of a request whose progress is listened to; see `Client.toolEvents`.
public enum RequestEvent<Result: Sendable>: Sendable {
    /// The progress of the peer.
    case progress(RequestOptions.Progress)
    /// Its outcome: the last of them.
    case result(Result)
}

/// A message from the peer that wants no answer.
public struct PeerNotification: Sendable, Hashable {
    /// Such as `notifications/message`.
    public var method: String
    /// Its parameters, nil when it has none.
    public var params: JSONValue?
}
