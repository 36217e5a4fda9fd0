// Elicitation: a tool asks the user, by a form or a page.
import Foundation
import Tricorn

private struct Booking: Codable {
    var name: String
    var seats: Int
    var meal: Meal

    enum Meal: String, Codable, CaseIterable { case fish, vegetables }

    /// Types have no defaults that a schema could say: this one says them.
    static let form: JSONValue = [
        "type": "object",
        "properties": [
            "name": ["type": "string"],
            "seats": ["type": "integer", "default": 2],
            "meal": ["type": "string", "enum": ["fish", "vegetables"], "default": "fish"],
        ],
        "required": ["name"],
    ]
}

private func server() -> Server {
    let app = Server("restaurant")
    app.tool("book", "Book a table") { (_: NoArguments, context) in
        let answer = try await context.elicit("A table?", as: Booking.self, schema: Booking.form)
        guard let booking = answer.content else { return answer.action == .decline ? "declined" : "cancelled" }
        return "\(booking.seats) for \(booking.name), \(booking.meal.rawValue)"
    }
    app.tool("sign_in", "Sign in at a page that the client does not see") { (_: NoArguments, context) in
        let answer = try await context.elicitURL(
            "Please sign in", url: "https://example.com/login?id=7", elicitationID: "7")
        // As a rule later, when the page says so.
        try context.completeElicitation("7")
        return answer.action.rawValue
    }
    app.tool("pay", "Needs a visit before it can even begin") { () -> String in
        throw TricornError.urlElicitationRequired([
            URLElicitation(url: "https://example.com/pay", elicitationID: "8", message: "Please pay")
        ])
    }
    return app
}

private actor User {
    private var answers: [ElicitationAnswer] = [
        .accept(["name": "Ada"]), .decline, .accept(["name": "Ada", "seats": "many"]),
    ]

    /// Stands for a dialog, and for the question whether to visit a page.
    func ask(_ question: ElicitationQuestion) -> ElicitationAnswer {
        if question.mode == .url {
            print("visit:", question.url ?? "")
            return .accept()
        }
        let answer = answers.removeFirst()
        if answer == .decline { return answer }
        let fields = (question.schema?["properties"]?.objectValue ?? [:]).map { name, field in
            let choices = field["enum"]?.arrayValue?.compactMap(\.stringValue).joined(separator: "|")
            let preset = field["default"].map { " (\($0.stringValue ?? $0.description))" }
            return name + (choices.map { " \($0)" } ?? "") + (preset ?? "")
        }
        print("asked: \(question.message) \(fields.joined(separator: ", "))")
        return answer
    }
}

enum ElicitationExample {
    static func main() async throws {
        let user = User()
        let (visits, heard) = AsyncStream.makeStream(of: String.self)
        var options = ClientOptions(revision: .v20251125)
        options.elicitation = { question, _ in await user.ask(question) }
        options.elicitationModes = [.form, .url]
        options.onNotification = { note in
            if note.method == "notifications/elicitation/complete" {
                heard.yield(note.params?["elicitationId"]?.stringValue ?? "")
            }
        }
        let app = server()
        let client = try await connect(to: app, options)

        print("book:", try await client.callTool("book").text)
        print("book:", try await client.callTool("book").text)
        if try await client.callTool("book").isError { print("book: the answer did not fit") }
        print("sign_in:", try await client.callTool("sign_in").text)
        var completed = visits.makeAsyncIterator()
        print("complete:", await completed.next() ?? "")
        do {
            _ = try await client.callTool("pay")
        } catch let error as TricornError where !error.urlElicitations.isEmpty {
            print("pay: error \(error.code ?? 0), \(error.urlElicitations[0].url)")
        }
        app.completeElicitation("8")  // the page was visited
        print("complete:", await completed.next() ?? "")
        await client.close()
    }
}
