internal import TricornCore

/// What runs a request: parameters in, an answer out.
typealias Body = @Sendable (CorePayload, Context) async throws -> Answer

/// Hears of an error that is not for the peer, of a name alone, and of what failed, for people.
typealias Report = @Sendable (_ error: any Error, _ name: String, _ subject: String) -> Void

/// What a handler came to.
enum Answer: Sendable {
    case text(String)
    case value(JSONWriter)
    case result(JSONWriter)
    case failed(String)
    case error(code: Int, message: String, data: JSONValue?)

    /// A plain value, of which the core makes a result.
    static func of(value: some Encodable) throws -> Answer { .value(try JSONWriter.encode(value)) }

    /// A whole result object.
    static func of(result: some Encodable) throws -> Answer { .result(try JSONWriter.encode(result)) }

    static func of(
        _ name: String, _ subject: String, _ report: Report, _ body: () async throws -> Answer
    ) async -> Answer {
        do {
            return try await body()
        } catch let error as ToolError {
            return .failed(error.message)
        } catch TricornError.rpc(let code, let message, let data) {
            return .error(code: code, message: message, data: data)
        } catch {
            if !(error is CancellationError && Task.isCancelled) { report(error, name, subject) }
            return .failed("\(subject) failed: \(type(of: error))")
        }
    }
}
