// Tools that ask their user, in straight lines: what becomes of that in which revision is not theirs to know.
import Tricorn

private func form(_ name: String) -> JSONValue {
    ["type": "object", "properties": [name: ["type": "string"]], "required": [.string(name)]]
}

private struct Left: Codable { var left: String }
private struct Right: Codable { var right: String }
private struct Confirmation: Codable { var confirm: Bool }

/// What `step_once` has reserved so far.
private actor Reservations {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}

func addQuestionsInARow(to app: Server) {
    let reservations = Reservations()
    app.tool("three_questions", "Ask three things, one after the other") { (_: NoArguments, context) in
        var given: [String] = []
        for (message, name) in [("First?", "a"), ("Second?", "b"), ("Third?", "c")] {
            let answer = try await context.elicit(message, schema: form(name))
            guard let content = answer.content else { return "\(message): \(answer.action.rawValue)" }
            given.append(content[name]?.stringValue ?? "")
        }
        return given.joined(separator: " ")
    }
    app.tool("two_questions", "Ask two things at once") { (_: NoArguments, context) in
        let (left, right) = try await context.askAll(
            .elicit("Left?", as: Left.self), .elicit("Right?", as: Right.self))
        return "\(left.content?.left ?? "") \(right.content?.right ?? "")"
    }
    app.tool("step_once", "Do something once, then ask") { (_: NoArguments, context) in
        let number = try await context.step("reserve") { await reservations.next() }
        let answer = try await context.elicit("Confirm?", as: Confirmation.self)
        return "reservation \(number): \(answer.content.map { "\($0.confirm)" } ?? answer.action.rawValue)"
    }
}
