/// The place of a server that a client connects to.
public enum ConnectionTarget: Sendable, Hashable {
    /// A Streamable HTTP endpoint.
    case url(String, headers: [String: String] = [:])
    /// An endpoint of the oldest HTTP transport, HTTP+SSE, without asking for a newer one first. A `url` finds out by itself.
    @available(*, deprecated, message: "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")
    case sse(String, headers: [String: String] = [:])
    /// A program, given its standard input and output. `environment` is merged into this process's own; nil removes.
    /// Its standard error is `.inherit` by default, `.event` when `ClientOptions.onStderr` is set.
    case command(
        String, arguments: [String] = [], environment: [String: String?] = [:], directory: String? = nil,
        standardError: StandardErrorOutput? = nil)
    /// A URL, the path of an `mcp.json`, a cassette (`replay:FILE`, `replay:FILE?strict`), or one command line with POSIX
    /// quoting.
    case parse(String)
    /// A host's configuration file, `{"mcpServers": {name: ...}}`: the server of this name, or the only one. Its standard
    /// error goes where a `command`'s goes by default.
    case file(String, server: String? = nil)
    /// A server of this process, through memory.
    case server(Server)

    /// The destination of a launched server's standard error.
    public enum StandardErrorOutput: String, Sendable, Hashable {
        /// To this process's own.
        case inherit
        /// To `ClientOptions.onStderr` and `Client.standardErrorLines`.
        case event
        /// Nowhere.
        case discard
    }

    /// As the core reads it, which has no word for a server of this process.
    ///
    /// - Parameter heard: somebody listens to the program's standard error.
    func json(heard: Bool) -> JSONValue {
        switch self {
        case .parse(let text):
            var target = OptionsText()
            target.set("text", text: text)
            target.set("stderr", text: heard ? "event" : nil)
            return target.json
        case .file(let path, let server):
            var target = OptionsText()
            target.set("file", text: path)
            target.set("server", text: server)
            target.set("stderr", text: heard ? "event" : nil)
            return target.json
        case .url(let url, let headers):
            var target = OptionsText()
            target.set("url", text: url)
            target.set("headers", table: headers)
            return target.json
        case .sse(let url, let headers):
            var target = OptionsText()
            target.set("type", text: "sse")
            target.set("url", text: url)
            target.set("headers", table: headers)
            return target.json
        case .server: return .null
        case .command(let program, let arguments, let environment, let directory, let standardError):
            var target = OptionsText()
            target.set("command", text: program)
            target.set("args", texts: arguments)
            var variables = JSONObject()
            for (name, value) in environment { variables[name] = value.map { .string($0) } ?? .null }
            target.set("env", .object(variables))
            target.set("cwd", text: directory)
            target.set("stderr", text: (standardError ?? (heard ? .event : .inherit)).rawValue)
            return target.json
        }
    }
}
