internal import TricornCore

/// An answer that a `Sampler` may return: text, or a `CreateMessageResult`.
public protocol SamplingAnswer: Encodable, Sendable {}

extension String: SamplingAnswer {}
extension Types.CreateMessageResult: SamplingAnswer {}

/// Answers a server's request for a message of the model.
public typealias Sampler =
    @Sendable (_ request: CreateMessageRequestParams, _ context: ClientContext) async throws -> any SamplingAnswer

/// Answers a server's question to the user.
public typealias Elicitor =
    @Sendable (_ question: ElicitationQuestion, _ context: ClientContext) async throws -> ElicitationAnswer

/// An object that answers the servers of a client: see `ClientOptions.policy`.
public protocol ClientPolicy: Sendable {}

/// Answers servers' requests for a message of the model. Declares `sampling`.
public protocol SamplingPolicy: ClientPolicy {
    /// Text, or a `CreateMessageResult`.
    func sampling(_ request: CreateMessageRequestParams, _ context: ClientContext) async throws -> any SamplingAnswer
    /// It knows what to do with tools (no). Declares `sampling.tools`.
    var samplingTools: Bool { get }
    /// It can give the model what servers tell it (no). Declares `sampling.context`.
    var samplingContext: Bool { get }
}

extension SamplingPolicy {
    /// It knows no tools.
    public var samplingTools: Bool { false }
    /// It gives the model nothing of what servers tell.
    public var samplingContext: Bool { false }
}

/// Answers servers' questions to the user. Declares `elicitation`.
public protocol ElicitationPolicy: ClientPolicy {
    /// The user's answer.
    func elicitation(_ question: ElicitationQuestion, _ context: ClientContext) async throws -> ElicitationAnswer
    /// The kinds of questions that it can ask (forms).
    var elicitationModes: Set<ElicitationQuestion.Mode> { get }
}

extension ElicitationPolicy {
    /// Forms alone.
    public var elicitationModes: Set<ElicitationQuestion.Mode> { [.form] }
}

/// Says which folders and files servers may look at. Declares `roots`.
public protocol RootsPolicy: ClientPolicy {
    /// Asked each time that a server wants to know.
    func roots(_ context: ClientContext) async throws -> [ClientRoot]
}

extension ClientOptions {
    /// With what the policy does where nothing else is given.
    var withPolicy: ClientOptions {
        get throws {
            guard let policy else { return self }
            var options = self
            if options.kept.sampling == nil, let sampling = policy as? any SamplingPolicy {
                options.kept.sampling = { try await sampling.sampling($0, $1) }
                options.kept.samplingTools = sampling.samplingTools
                options.kept.samplingContext = sampling.samplingContext
            }
            if options.elicitation == nil, let elicitation = policy as? any ElicitationPolicy {
                options.elicitation = { try await elicitation.elicitation($0, $1) }
                options.elicitationModes = elicitation.elicitationModes
            }
            if options.kept.roots == nil, let roots = policy as? any RootsPolicy {
                options.kept.roots = .asked { try await roots.roots($0) }
            }
            guard policy is any SamplingPolicy || policy is any ElicitationPolicy || policy is any RootsPolicy else {
                throw TricornError.misuse("policy: expected a SamplingPolicy, ElicitationPolicy or RootsPolicy")
            }
            return options
        }
    }
}

/// A server's question to the user.
public struct ElicitationQuestion: Sendable, Hashable {
    /// Everything below, and what later versions add, as JSON.
    public let json: JSONValue

    /// The form of a question to the user.
    public enum Mode: String, Sendable, Hashable {
        /// By a form.
        case form
        /// By a page that the user is to visit, and that the client must not look at.
        case url
    }

    /// The form of the question.
    public var mode: Mode { json["mode"] == "url" ? .url : .form }
    /// The question.
    public var message: String { json["message"]?.stringValue ?? "" }
    /// The JSON Schema of a form, a flat object; nil for a page.
    public var schema: JSONValue? { json["requestedSchema"] }
    /// The page. Show all of it, and open it only when the user agrees.
    public var url: String? { json["url"]?.stringValue }
    /// Names the question of a page, in `notifications/elicitation/complete`.
    public var elicitationID: String? { json["elicitationId"]?.stringValue }
}

/// The user's answer.
public enum ElicitationAnswer: Sendable, Hashable {
    /// Filled in the form, or agreed to visit the page. What a form's content leaves out has its default.
    case accept(JSONObject? = nil)
    /// Said no.
    case decline
    /// Closed it without a choice.
    case cancel
    /// All that the protocol's answer may say, `_meta` too.
    case result(Types.ElicitResult)

    /// Filled in the form; `form` encodes to a JSON object.
    public static func accept(encoding form: some Encodable) throws -> ElicitationAnswer {
        guard let content = try JSONValue(encoding: form).objectValue else {
            throw TricornError.misuse("the content of a form is an object")
        }
        return .accept(content)
    }

    var json: JSONValue {
        switch self {
        case .accept(let content?): ["action": "accept", "content": .object(content)]
        case .accept: ["action": "accept"]
        case .decline: ["action": "decline"]
        case .cancel: ["action": "cancel"]
        case .result(let result): result.json
        }
    }
}

/// The folders and files that a server may look at.
public enum Roots: Sendable, ExpressibleByArrayLiteral {
    /// These; `Client.setRoots` changes them.
    case list([ClientRoot])
    /// Those that a function names when the server asks.
    case asked(@Sendable (_ context: ClientContext) async throws -> [ClientRoot])
    /// As `asked`, with all that the protocol's answer may say, `_meta` too.
    case result(@Sendable (_ context: ClientContext) async throws -> Types.ListRootsResult)

    /// `["/srv/notes", ClientRoot(uri: "file:///srv", name: "srv")]`.
    public init(arrayLiteral roots: ClientRoot...) { self = .list(roots) }
}

extension ClientOptions {
    /// One of the server's requests, and who answers it.
    struct AnswerTo: Sendable {
        var method: String
        var capability: JSONValue
        var handler: UInt32
    }

    /// Registers who answers what.
    var answers: [AnswerTo] {
        var answers: [AnswerTo] = []
        func add(
            _ method: String, _ capability: JSONValue,
            _ run: @escaping @Sendable (CorePayload, ClientContext) async throws -> Answer
        ) {
            let subject = Subject(name: method, text: "the answer to \"\(method)\"", report: warn)
            let handler = Host.shared.add(subject, .client) { params, call in
                try await run(params, ClientContext(call))
            }
            answers.append(AnswerTo(method: method, capability: capability, handler: handler))
        }
        if let sampling = kept.sampling {
            var capability = OptionsText()
            if kept.samplingTools { capability.set("tools", [:]) }
            if kept.samplingContext { capability.set("context", [:]) }
            add("sampling/createMessage", capability.json) { params, context in
                let request = try Self.sampled(JSONValue(try JSONText(params), 0))
                return try .of(value: await sampling(request, context))
            }
        }
        if let elicitation {
            var modes = OptionsText()
            for mode in [ElicitationQuestion.Mode.form, .url] where elicitationModes.contains(mode) {
                modes.set(mode.rawValue, [:])
            }
            add("elicitation/create", modes.json) { params, context in
                let question = ElicitationQuestion(json: JSONValue(try JSONText(params), 0))
                return try .of(result: await elicitation(question, context).json)
            }
        }
        if case .asked(let list) = kept.roots {
            add("roots/list", ["listChanged": true]) { _, context in try .of(value: await list(context)) }
        }
        if case .result(let whole) = kept.roots {
            add("roots/list", ["listChanged": true]) { _, context in try .of(result: await whole(context).json) }
        }
        return answers
    }

    private static func sampled(_ params: JSONValue) throws -> CreateMessageRequestParams {
        do {
            return try CreateMessageRequestParams(json: params)
        } catch let error as DecodingError {
            throw TricornError.rpc(code: -32602, message: error.text(subject: "member"))
        }
    }

    // MARK: - notifications

    /// Somebody is there to hear that lists change. Modern servers tell only those who listen.
    var hearsChanges: Bool { onNotification != nil || onListChanged != nil }

    var hearsNotifications: Bool {
        onNotification != nil || kept.onLog != nil || onResourceUpdated != nil || onListChanged != nil
    }

    /// Calls back.
    func hear(_ notification: PeerNotification) {
        onNotification?(notification)
        let params = notification.params
        switch notification.method {
        case "notifications/message":
            let level = params?["level"]?.stringValue.flatMap(Context.LogLevel.init) ?? .info
            kept.onLog?(level, params?["logger"]?.stringValue, params?["data"] ?? .null)
        case "notifications/resources/updated": onResourceUpdated?(params?["uri"]?.stringValue ?? "")
        case "notifications/tools/list_changed": onListChanged?(.tool)
        case "notifications/resources/list_changed": onListChanged?(.resource)
        case "notifications/prompts/list_changed": onListChanged?(.prompt)
        default: break
        }
    }
}
