#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A server: tools, resources and prompts, and the ways to offer them.
///
/// ```swift
/// struct Add: Codable { var a: Int32; var b: Int32 }
///
/// let app = Server("demo")
/// app.tool("add", "Add two numbers") { (input: Add) in Int(input.a) + Int(input.b) }
/// try await app.run()
/// ```
/// One server serves any number of connections, also of different kinds at once, and may be used from any task.
public final class Server: Offering {
    let core: CoreServer
    let source: UInt32
    private let registered = Locked(Registered())
    let report: Report
    let state: ServerState
    private let onWarning: @Sendable (String) -> Void
    private let callbacks = Callbacks()
    private let documents: DocumentFunctions?
    /// Callbacks for the address that an operation listens on.
    let listening = Locked([UInt64: @Sendable (String) -> Void]())
    let exchanges = Locked([UInt64: Exchange]())
    /// Those of `Middleware.logging`.
    let loggers = Locked([@Sendable (RequestRecord) -> Void]())

    private struct Registered {
        var handlers: [Slot: [UInt32]] = [:]
        var failure: TricornError?
        /// Nothing was wrong when it was used first: what is wrong later must not stop who comes after.
        var isUsed = false
    }

    /// The things that handlers belong to.
    enum Slot: Hashable {
        case offered(Kind, String)
        case source(Kind)
        case hook(String)
        case middleware(UInt32)
        case ofExtension(String)
        case verifier
    }

    /// A capability that can be declared before there is any of it, or besides.
    public struct Capability: Sendable, Hashable {
        let name: String
        let members: JSONObject

        /// Completion, of what is added later.
        public static let completions = Self(name: "completions", members: [:])
        /// Prompts, which are added later.
        public static let prompts = Self(name: "prompts", members: [:])
        /// Resources, which are added later.
        public static let resources = Self(name: "resources", members: [:])

        /// Capabilities that are not part of the protocol, by their names.
        public static func experimental(_ members: JSONObject) -> Self { Self(name: "experimental", members: members) }

        /// A capability that this library knows nothing of.
        public static func other(_ name: String, _ members: JSONObject) -> Self { Self(name: name, members: members) }
    }

    /// Capabilities as the core takes them.
    static func declared(_ capabilities: Set<Capability>) -> JSONValue {
        var declared = JSONObject()
        for capability in capabilities.sorted(by: { $0.name < $1.name }) {
            declared[capability.name] = .object(capability.members)
        }
        return .object(declared)
    }

    /// - Parameter given: the options that the core takes as they are.
    init(
        _ given: OptionsText, tasks: TaskOptions?, store: StoreOptions?, extensions: [ServerExtension],
        auth: ServerAuth?, capabilities: Set<Capability>, lifespan: Lifespan?, state: (any Sendable)?,
        onError: (@Sendable (any Error, String) -> Void)?, onWarning: (@Sendable (String) -> Void)?
    ) {
        var options = given
        report = { error, name, subject in
            if let onError { return onError(error, name) }
            StandardError.write("\(subject) failed: \(type(of: error)): \(error)\n")
        }
        self.onWarning = onWarning ?? { StandardError.write("\($0)\n") }
        self.state = ServerState(state)
        source = Host.shared.listen()
        let source = source
        if let own = store?.documents {
            // The core says by itself that a store fails: only who wants to hears each time.
            let unheard: Report = { _, _, _ in }
            documents = DocumentFunctions(own.store, onError == nil ? unheard : report)
        } else {
            documents = nil
        }
        options.set("store", store?.placed(documents))
        if let auth {
            let report = report
            let verifier = auth.verifier.map { verify in
                Host.shared.add("auth", "the verifier", report, verify)
            }
            registered.with { $0.handlers[.verifier] = verifier.map { [$0] } }
            options.set("auth", auth.json(verifier))
        }
        var failure: TricornError?
        func make(_ options: JSONValue) throws -> CoreServer {
            try CoreServer(bridge: Host.shared.bridge, source: source, options: options.checkedText)
        }
        do {
            core = try make(options.json)
        } catch {
            // Reported when the server is started; a name is all that a server needs until then.
            failure = .from(error)
            do { core = try make(["name": "unusable"]) } catch { fatalError("Tricorn's core does not start: \(error)") }
        }
        if let lifespan {
            do { try self.state.attach(lifespan, to: core, report) } catch { failure = failure ?? .from(error) }
        }
        if let failure { registered.with { $0.failure = failure } }
        let byOptions = capabilities.first(where: { $0.name == "extensions" })?.members.map(\.key) ?? []
        let ofTasks = tasks == nil ? [] : ["io.modelcontextprotocol/tasks"]
        self.state.extensions.with { $0.formUnion(byOptions + ofTasks) }
        self.state.server = self
        Host.shared.replaceListener(source) { [weak self] name, params in self?.event(name, params) }
        for one in extensions {
            do { try addExtension(one) } catch { fail(error, "extension \"\(one.id)\"") }
        }
    }

    deinit {
        Host.shared.replaceListener(source, nil)
        try? core.close()
        state.orphan()
        Host.shared.removeHandlers(registered.with { $0.handlers.values.flatMap { $0 } })
    }

    private func event(_ name: String, _ params: CorePayload) {
        guard let text = try? JSONText(params) else { return }
        let value = JSONValue(text, 0)
        switch name {
        case "listening":
            let url = value["url"]?.stringValue ?? ""
            let op = value["op"]?.intValue.map { UInt64($0) }
            let hear = listening.with { $0.removeValue(forKey: op ?? 0) }
            if let hear { callbacks.run { hear(url) } }
        case "warning":
            let message = value["message"]?.stringValue ?? value.description
            callbacks.offer { [onWarning] in onWarning(message) }
        case "failed":
            let name = value["name"]?.stringValue ?? ""
            let failure = TricornError.misuse(value["message"]?.stringValue ?? "")
            callbacks.offer { [report] in report(failure, name, name) }
        case "request":
            let record = RequestRecord(json: value), loggers = loggers.with { $0 }
            callbacks.offer { for logger in loggers { logger(record) } }
        case "http_head", "http_chunk": exchangeEvent(name, value)
        default: break
        }
    }

    // MARK: - what is offered

    /// Adds what is offered; something of the same kind and name is an error, unless it is to be replaced.
    func enter(_ kind: Kind, _ name: String, _ make: () throws -> Offer, run: @escaping Body) throws {
        let numbers = try make().register("\(kind.word) \"\(name)\"", run) { what, run in
            handler(name, what, run)
        } add: { definition, options, handler in
            try Tricorn.core {
                try core.add(kind: kind.rawValue, definition: definition, options: options, handler: handler)
            }
        }
        registered.with {
            // Calls of what this replaces may be on their way: the core says when its handlers can be forgotten.
            let before = Host.shared.known($0.handlers[.offered(kind, name)] ?? [])
            $0.handlers[.offered(kind, name)] = numbers + before
        }
    }

    /// Adds to the server. What is wrong is thrown by `run` and the other ways to serve; once the server was used,
    /// `onWarning` hears of it at once, and `add` throws it.
    public var _place: _OfferPlace {
        _OfferPlace { [self] kind, name, make, run in
            do { try enter(kind, name, make, run: run) } catch { fail(error, "\(kind.word) \"\(name)\"") }
        }
    }

    /// Keeps what was wrong with a declaration, for `check`; of a server that is used already it is a warning.
    ///
    /// - Parameter subject: what it is about, if the error does not name it.
    func fail(_ error: any Error, _ subject: String = "") {
        let failure = subject.isEmpty ? TricornError.from(error) : TricornError.from(error).about(subject)
        let isUsed = registered.with {
            if !$0.isUsed { $0.failure = $0.failure ?? failure }
            return $0.isUsed
        }
        if isUsed { callbacks.offer { [onWarning] in onWarning(failure.message) } }
    }

    /// Registers a handler, which is to be `keep`t.
    func handler(_ name: String, _ subject: String, passesOn: Bool = false, _ run: @escaping Body) -> UInt32 {
        let subject = Subject(name: name, text: subject, report: report, passesOn: passesOn, state: state)
        return Host.shared.add(subject, .server) { params, call in try await run(params, Context(call)) }
    }

    /// The handlers of `slot` are these from now on; those before are forgotten.
    func keep(_ numbers: [UInt32]?, _ slot: Slot) {
        // Calls of those before may be running; their handler is theirs already.
        let before = registered.with {
            let before = $0.handlers[slot]
            $0.handlers[slot] = numbers
            return before
        }
        Host.shared.removeHandlers(before ?? [])
    }

    /// Throws what went wrong when the server or what it offers was declared.
    func check() throws {
        let failure = registered.with {
            $0.isUsed = $0.failure == nil
            return $0.failure
        }
        if let failure { throw failure }
    }

    // MARK: - serving

    /// A transport that `run` serves over.
    public enum Transport: Sendable, Hashable {
        /// Standard input and output.
        case stdio
        /// Streamable HTTP.
        case http(HTTPOptions)

        /// HTTP when `--http [[HOST:]PORT|unix:PATH]` is among the program's arguments, else standard input and output.
        static func asked(_ arguments: [String]) throws -> Transport {
            guard let at = arguments.firstIndex(where: { $0 == "--http" || $0.hasPrefix("--http=") }) else {
                return .stdio
            }
            var address = String(arguments[at].dropFirst("--http=".count))
            if arguments[at] == "--http", at + 1 < arguments.count, !arguments[at + 1].hasPrefix("-") {
                address = arguments[at + 1]
            }
            return .http(try address.isEmpty ? HTTPOptions() : HTTPOptions(address: address))
        }
    }

    /// Serves over standard input and output, or over HTTP when that is asked for: by `transport`, or by
    /// `--http [[HOST:]PORT|unix:PATH]` among the program's arguments.
    ///
    /// Returns when standard input ends, after `close` and `drain`, and after SIGTERM, which drains. SIGINT (Ctrl-C) and SIGHUP close the server,
    /// too, and then end the process with status 130 or 129. All that `run` hear of a signal, and the last of them ends the
    /// process. Handlers of these signals that the program has set are called as well; SIGTERM and SIGHUP stay ignored where
    /// they are. Over HTTP it prints `ready URL` to standard error when it listens.
    public func run(_ transport: Transport? = nil) async throws {
        let signals = Signals { [self] mayDrain in mayDrain ? drain() : close() }
        defer { signals.stop() }
        switch try transport ?? Transport.asked(Array(CommandLine.arguments.dropFirst())) {
        case .stdio: try await serveStdio()
        case .http(let options): try await serveHTTP(options) { StandardError.write("ready \($0)\n") }
        }
        signals.stopAndExitIfInterrupted()
    }

    /// Serves one client over standard input and output until the input ends, or nobody reads the output any more.
    /// Meanwhile what the program prints goes to standard error, line by line, and there is nothing to read.
    public func serveStdio() async throws {
        try check()
        StandardOutput.take()
        defer { StandardOutput.giveBack() }
        try await serve { [core] op in try core.serveStdio(op: op) }
    }

    func serve(_ start: @escaping @Sendable (UInt64) throws -> Void) async throws {
        try Task.checkCancellation()
        let serving = Task { try await Host.shared.perform(isServing: true, start) }
        do {
            _ = try await withTaskCancellationHandler {
                try await serving.value
            } onCancel: {
                // It ends as after `close`, which has its time to stop what the lifespan started.
                close()
                Task {
                    try await Task.sleep(for: .seconds(5))
                    serving.cancel()
                }
            }
        } catch {
            throw state.own(error)
        }
        try Task.checkCancellation()
    }

    /// Closes gently: over HTTP no connection is taken any more, `/readyz` says 503, streams that wait for news end, and
    /// requests have `drainTimeout` to be answered. Everything is closed after that, and `run` and its like return. SIGTERM
    /// does the same in `run`.
    public func drain() { try? core.drain(op: 0) }

    /// Stops serving everywhere: nothing new is accepted, running handlers are cancelled, `run` and its like return.
    public func close() { try? core.close() }

    /// Gauges: `connections` (pipes, sockets, clients in this process), `in_flight` (calls of all transports), `listeners`
    /// (clients that listen, 2026-07-28), `tasks` (kept, finished or not), of HTTP `sessions` and `streams`, and what is
    /// queued; `timing`, what `Middleware.timing` counted.
    public var metrics: Metrics {
        guard let payload = try? core.metrics(), let text = try? JSONText(payload) else { return Metrics(json: [:]) }
        return Metrics(json: JSONValue(text, 0))
    }
}

extension Server: Hashable {
    /// It is the same object.
    public static func == (one: Server, other: Server) -> Bool { one === other }

    /// By identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
