/// Logs to the client of a running call, in the shape of a swift-log backend: `context.logger("db").info("connected")`.
///
/// To send a program's own logs there, let the `LogHandler` of swift-log that it uses hand them over:
/// ```swift
/// func log(level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
///     function: String, line: UInt) {
///     Context.current?.logger(label).log(
///         level: .init(rawValue: level.rawValue) ?? .debug, message: "\(message)",
///         metadata: metadata?.mapValues { "\($0)" }, source: source, file: file, function: function, line: line)
/// }
/// ```
public struct ContextLogger: Sendable {
    /// The name under which messages are sent.
    public var label: String?
    /// Sent with every message.
    public var metadata: [String: JSONValue] = [:]
    /// The least level that is sent, whatever the client wants.
    public var logLevel: Context.LogLevel = .debug
    private let context: Context

    init(_ context: Context, label: String?) {
        self.context = context
        self.label = label
    }

    /// A member of `metadata`.
    public subscript(metadataKey key: String) -> JSONValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Sends a message: its text alone, or with metadata an object with the member `message` besides.
    ///
    /// `source`, `file`, `function` and `line` are there for the shape; clients are not told about the server's code.
    public func log(
        level: Context.LogLevel, message: String, metadata: [String: JSONValue]? = nil, source: String = "",
        file: String = #fileID, function: String = #function, line: UInt = #line
    ) {
        guard level >= logLevel else { return }
        let all = self.metadata.merging(metadata ?? [:]) { $1 }
        guard !all.isEmpty else { return context.send(level, message, label) }
        var data: JSONObject = ["message": .string(message)]
        for (name, value) in all.sorted(by: { $0.key < $1.key }) where name != "message" { data[name] = value }
        context.send(level, data, label)
    }

    private func log(_ level: Context.LogLevel, _ message: () -> String, _ metadata: [String: JSONValue]?) {
        if level >= logLevel { log(level: level, message: message(), metadata: metadata) }
    }

    /// For those who look for a defect; swift-log's `trace` is this, too.
    public func debug(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.debug, message, metadata)
    }
    /// Logs what goes on.
    public func info(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.info, message, metadata)
    }
    /// Logs what is normal but worth a look.
    public func notice(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.notice, message, metadata)
    }
    /// Logs what may become an error.
    public func warning(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.warning, message, metadata)
    }
    /// Logs what went wrong.
    public func error(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.error, message, metadata)
    }
    /// Logs what makes the program useless.
    public func critical(_ message: @autoclosure () -> String, metadata: [String: JSONValue]? = nil) {
        log(.critical, message, metadata)
    }
}

extension Context {
    /// Logs to the client of this call.
    @available(
        *, deprecated,
        message: "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
    )
    public func logger(_ label: String? = nil) -> ContextLogger { ContextLogger(self, label: label) }
}

extension Context.LogLevel: Comparable {
    /// By importance.
    public static func < (left: Self, right: Self) -> Bool {
        allCases.firstIndex(of: left)! < allCases.firstIndex(of: right)!
    }
}
