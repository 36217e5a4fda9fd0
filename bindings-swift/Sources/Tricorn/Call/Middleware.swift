internal import TricornCore

/// A function that stands around requests: of a server, around those that its handlers answer; of a client, around those
/// that it sends. The first that is added is the outermost.
///
/// ```swift
/// app.middleware { request, context, next in
///     context.values[User.self] = try user(of: context)
///     return try await next(request, context)
/// }
/// app.middleware(.rateLimit(perSecond: 5))
///
/// options.middleware = [.timing, .init { request, context, next in try await next(request, context) }]
/// ```
public struct Middleware<Caller: RequestContext>: Sendable {
    /// Handles one request. It returns the result object, such as a `CallToolResult`'s: what `next` gave, or its own
    /// without asking `next`. What a server's throws is answered as what a handler throws; what a client's throws is thrown
    /// to who sent the request. The task is cancelled with the request.
    public typealias Function =
        @Sendable (_ request: MiddlewareRequest, _ context: Caller, _ next: Next<Caller>) async throws -> JSONValue

    enum Kind: Sendable {
        case function(Function)
        case builtIn(JSONValue)
        case logging(@Sendable (RequestRecord) -> Void)
    }

    let kind: Kind

    /// A function of one's own.
    public init(_ handle: @escaping Function) { kind = .function(handle) }

    private init(builtIn options: OptionsText) { kind = .builtIn(options.json) }

    private init(kind: Kind) { self.kind = kind }

    /// Counts and adds up the time of requests by method: `metrics["timing"]`, an object of `{"count", "failed",
    /// "seconds", "longest"}`.
    public static var timing: Middleware {
        var options = OptionsText()
        options.set("kind", text: "timing")
        return Middleware(builtIn: options)
    }

    /// Tells of every request that is finished, one after the other, in a thread of their own; 1024 wait for a slow
    /// `write`, further ones are dropped. By default one line of standard error each.
    public static func logging(
        _ write: @escaping @Sendable (RequestRecord) -> Void = { StandardError.write("\($0)\n") }
    ) -> Middleware {
        Middleware(kind: .logging(write))
    }

    /// Lets so many requests through in a second, and answers the others with an error (−32603, before 2026-07-28 −32000)
    /// whose `data.retryAfter` says in how many seconds to come back.
    ///
    /// - Parameters:
    ///   - burst: so many at once after a pause; as many as in one second when nil.
    ///   - perSession: counts each client apart: each legacy HTTP session, else each principal, and over standard streams
    ///     and in memory each connection. Requests over HTTP that have neither session nor principal are counted together.
    public static func rateLimit(perSecond: Double, burst: Int? = nil, perSession: Bool = false) -> Middleware {
        var options = OptionsText()
        options.set("kind", text: "rate_limit")
        options.set("per_second", decimal: perSecond)
        options.set("burst", number: burst)
        if perSession { options.set("per_session", flag: true) }
        return Middleware(builtIn: options)
    }

    /// Lets so many requests run at once; others wait, and beyond `maxWaiting`, 256, of those are refused (−32603, before
    /// 2026-07-28 −32000).
    public static func concurrencyLimit(_ max: Int, maxWaiting: Int? = nil) -> Middleware {
        var options = OptionsText()
        options.set("kind", text: "concurrency_limit")
        options.set("max", number: max)
        options.set("max_waiting", number: maxWaiting)
        return Middleware(builtIn: options)
    }
}

/// A request on its way through middleware.
public struct MiddlewareRequest: Sendable, Hashable {
    /// Such as `tools/call`.
    public let method: String
    /// Its parameters; empty when there are none. `next` goes on with those that it is given.
    public var params: JSONObject
}

/// The rest of a request's way.
public struct Next<Caller: RequestContext>: Sendable {
    let call: Call
    let given: JSONObject

    /// Lets the request go on, and returns its result object. It may be done again, to try once more. Cancelling the task
    /// that waits for it cancels what runs.
    public func callAsFunction(_ request: MiddlewareRequest, _ context: Caller) async throws -> JSONValue {
        let params = JSONWriter()
        if request.params != given { params.append(.object(request.params)) }
        return try await call.noting(.inside) {
            let result = try await Host.shared.perform { [call] op in
                try params.withData { try Host.shared.bridge.next(key: call.key, op: op, json: $0) }
            }
            return JSONValue(try JSONText(result), 0)
        }
    }
}

/// A request that is finished, for `Middleware.logging`.
public struct RequestRecord: Sendable, Hashable {
    /// Such as `tools/call`.
    public var method: String
    /// The subject: the tool's or prompt's name, or the resource's URI.
    public var name: String?
    /// Time until its answer.
    public var duration: Duration
    /// The error that it was answered with; a tool's own failure is none.
    public var error: String?
    /// It was cancelled, and not answered.
    public var isCancelled: Bool

    init(json: JSONValue) {
        method = json["method"]?.stringValue ?? ""
        name = json["name"]?.stringValue
        duration = .seconds(json["seconds"]?.doubleValue ?? 0)
        error = json["error"]?.stringValue
        isCancelled = json["cancelled"]?.boolValue ?? false
    }
}

extension RequestRecord: CustomStringConvertible {
    /// `tools/call add: 1.5 ms`, and what went wrong.
    public var description: String {
        let (seconds, attoseconds) = duration.components
        let microseconds = Double(seconds) * 1e6 + (Double(attoseconds) / 1e12).rounded()
        let subject = name.map { "\(method) \($0)" } ?? method
        let end = isCancelled ? ", cancelled" : error.map { ", failed: \($0)" } ?? ""
        return "\(subject): \(microseconds / 1000) ms\(end)"
    }
}

// MARK: - what is put to use

extension Middleware {
    /// The entry of the handler table of a function.
    static func entry(
        _ function: @escaping Function, _ report: @escaping Report, _ state: ServerState? = nil,
        isOutward: Bool = false,
        _ context: @escaping @Sendable (Call) -> Caller
    ) -> (subject: Subject, run: CallBody) {
        let subject = Subject(
            name: "middleware", text: "middleware", report: report, isMiddleware: true, isOutward: isOutward,
            state: state)
        return (
            subject,
            { payload, call in
                let params = JSONValue(try JSONText(payload), 0)
                let given = params["params"]?.objectValue ?? [:]
                let request = MiddlewareRequest(method: params["method"]?.stringValue ?? "", params: given)
                let result = try await function(request, context(call), Next(call: call, given: given))
                guard case .object = result else {
                    throw ToolError("middleware failed: its result is no object")
                }
                return try .of(result: result)
            }
        )
    }
}

extension Server {
    /// Puts a function around every request that a handler answers.
    public func middleware(_ handle: @escaping Middleware<Context>.Function) { middleware(Middleware(handle)) }

    /// Puts middleware around every request that a handler answers. What is wrong with it is thrown by `run` and the
    /// other ways to serve; once the server was used, `onWarning` hears of it.
    public func middleware(_ middleware: Middleware<Context>) {
        do {
            switch middleware.kind {
            case .function(let function):
                let (subject, run) = Middleware.entry(function, report, state) { Context($0) }
                let number = Host.shared.add(subject, .server, run)
                keep([number], .middleware(number))
                try Tricorn.core { try core.addMiddleware(handler: number) }
            case .builtIn(let options): try Tricorn.core { try core.addBuiltin(options: options.description) }
            case .logging(let write):
                let isFirst = loggers.with {
                    $0.append(write)
                    return $0.count == 1
                }
                if isFirst { try Tricorn.core { try core.addBuiltin(options: #"{"kind":"logging"}"#) } }
            }
        } catch {
            fail(error)
        }
    }
}

extension ClientOptions {
    /// The functions among the middleware, as entries of the handler table, in their order.
    func middlewareEntries() -> [UInt32] {
        middleware.compactMap { middleware in
            guard case .function(let function) = middleware.kind else { return nil }
            let (subject, run) = Middleware.entry(function, warn, isOutward: true) { ClientContext($0) }
            return Host.shared.add(subject, .client, run)
        }
    }

    /// Puts the middleware around a client's requests; `entries` are the functions among it.
    func addMiddleware(to client: CoreClient, _ entries: [UInt32]) throws {
        var entries = entries[...], isLogging = false
        for middleware in middleware {
            switch middleware.kind {
            case .function: if let entry = entries.popFirst() { try client.addMiddleware(handler: entry) }
            case .builtIn(let options): try client.addBuiltin(options: options.description)
            case .logging:
                if !isLogging { try client.addBuiltin(options: #"{"kind":"logging"}"#) }
                isLogging = true
            }
        }
    }

    /// Tells of a request that is finished.
    func log(_ record: RequestRecord) {
        for case .logging(let write) in middleware.map(\.kind) { write(record) }
    }

    /// Tells of an error that is not for the server.
    var warn: Report {
        { [onWarning] error, _, subject in onWarning("\(subject) failed: \(type(of: error)): \(error)") }
    }

    /// Tells of what a cache's store throws. The core warns of it once in a minute: only who wants to hears each time.
    var warnOfStore: Report {
        guard warningListener != nil else { return { _, _, _ in } }
        return warn
    }
}
