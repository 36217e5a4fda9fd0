// Completion: how the value of an argument may go on.
import Tricorn

private let cities = ["france": ["paris", "pau", "lyon"], "england": ["plymouth", "london"]]

private enum Tone: String, Codable, CaseIterable { case kindly, strictly }

private struct Review: Codable {
    var code: String
    var language: String
    var tone: Tone?
}

private struct Place: Codable { var country: String, city: String }
private struct Count: Codable { var number: String }

private func server() -> Server {
    let app = Server("completion")
    // The choices of `tone` complete themselves.
    app.prompt(
        "review", "Review code",
        complete: ["language": { value, _ in ["python", "pypy", "rust"].filter { $0.hasPrefix(value) } }]
    ) { (input: Review) in
        "Review this \(input.language) \((input.tone ?? .kindly).rawValue): \(input.code)"
    }
    app.resource(
        "weather://{country}/{city}", "The weather of a city",
        complete: [
            "country": { value, _ in cities.keys.sorted().filter { $0.hasPrefix(value) } },
            // What is known already decides what is suggested.
            "city": { value, query in
                (cities[query.arguments["country"] ?? ""] ?? []).filter { $0.hasPrefix(value) }
            },
        ]
    ) { (place: Place) in "Rain in \(place.city), \(place.country)" }
    app.prompt(
        "count", "Count to a number",
        complete: [
            // Too many: the first hundred are sent.
            "number": { value, _ in
                let values = (0..<1000).map(String.init).filter { $0.hasPrefix(value) }
                return Completion(values: values, total: values.count)
            }
        ]
    ) { (input: Count) in "Count to \(input.number)." }
    return app
}

enum CompletionExample {
    static func main() async throws {
        let client = try await connect(to: server())

        var found = try await client.complete(.prompt("review"), argument: "language", value: "py")
        print("language \"py\":", found.values.joined(separator: ", "))
        found = try await client.complete(.prompt("review"), argument: "tone", value: "")
        print("tone \"\":", found.values.joined(separator: ", "))
        for country in ["france", "england"] {
            found = try await client.complete(
                .resource("weather://{country}/{city}"), argument: "city", value: "p", arguments: ["country": country])
            print("city \"p\" in \(country):", found.values.joined(separator: ", "))
        }
        found = try await client.complete(.prompt("count"), argument: "number", value: "1")
        print("number \"1\": \(found.values.count) of \(found.total ?? 0), more: \(found.hasMore ?? false)")
        await client.close()
    }
}
