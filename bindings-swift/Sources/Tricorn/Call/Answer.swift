/// The outcome of a handler.
enum Answer: Sendable {
    case text(String)
    case value(JSONWriter)
    case result(JSONWriter)
    case failed(String)
    case error(TricornError)
    /// The client has to answer this first.
    case inputRequired(JSONWriter)
    /// This run ends at a question.
    case ended

    /// The handler runs again, with what the client answers.
    var isQuestion: Bool {
        switch self {
        case .inputRequired, .ended: true
        default: false
        }
    }

    /// A plain value, of which the core makes a result.
    static func of(value: some Encodable) throws -> Answer { .value(try JSONWriter.encode(value)) }

    /// A whole result object.
    static func of(result: some Encodable) throws -> Answer { .result(try JSONWriter.encode(result)) }

    /// A question that a handler asks by itself.
    static func of(_ input: InputRequired) -> Answer {
        let writer = JSONWriter()
        writer.append(input.json)
        return .inputRequired(writer)
    }

    /// The outcome of `body`. Of an error the peer reads what was meant for it: a `ToolError`, a JSON-RPC error that the
    /// handler made, and how the call's own question to this very peer ended. Of all others it learns the type.
    static func of(_ subject: Subject, _ call: Call, _ body: () async throws -> Answer) async -> Answer {
        do {
            return try await body()
        } catch let error where subject.isOutward {
            return .error(Host.shared.thrown.standIn(for: error))
        } catch let error as InputRequired where call.side == .server {
            return error.isEnd ? .ended : .of(error)
        } catch let error as ToolError {
            return .failed(error.message)
        } catch {
            if let error = error as? TricornError, let answer = call.answer(to: error, passesOn: subject.passesOn) {
                return answer
            }
            // To give up when nobody waits any more is no failure.
            let givesUp =
                switch error {
                case is CancellationError: Task.isCancelled || call.isOver
                case TricornError.cancelled: call.isOver
                default: false
                }
            // What a handler has made of a run that ends at a question is none either.
            if !givesUp && !call.hasAsked {
                subject.report(error, subject.name, subject.text)
            }
            let hidden = "\(subject.text) failed: \(type(of: error))"
            if case TricornError.unsupported = error, !subject.isMiddleware, call.isOwn(error) {
                return .error(.unsupported(hidden))
            }
            return .failed(hidden)
        }
    }
}
