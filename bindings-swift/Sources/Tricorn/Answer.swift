/// What a handler came to.
enum Answer: Sendable {
    case text(String)
    case value(JSONWriter)
    case result(JSONWriter)
    case failed(String)
    case error(TricornError)

    /// A plain value, of which the core makes a result.
    static func of(value: some Encodable) throws -> Answer { .value(try JSONWriter.encode(value)) }

    /// A whole result object.
    static func of(result: some Encodable) throws -> Answer { .result(try JSONWriter.encode(result)) }

    /// What `body` comes to. Of an error the peer reads what was meant for it: a `ToolError`, a JSON-RPC error that the
    /// handler made, and how the call's own question to this very peer ended. Of all others it learns the type.
    static func of(_ subject: Subject, _ call: Call, _ body: () async throws -> Answer) async -> Answer {
        do {
            return try await body()
        } catch let error where subject.isOutward {
            return .error(Host.shared.thrown.standIn(for: error))
        } catch let error as ToolError {
            return .failed(error.message)
        } catch {
            if let error = error as? TricornError, let answer = call.answer(to: error, passesOn: subject.passesOn) {
                return answer
            }
            if !(error is CancellationError && Task.isCancelled) {
                subject.report(error, subject.name, subject.text)
            }
            return .failed("\(subject.text) failed: \(type(of: error))")
        }
    }
}
