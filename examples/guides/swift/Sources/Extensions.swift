// Extensions: settings, requests and notifications of one's own, for the clients that declare them.
import Tricorn

private let search = "com.example/search"
private let reserve = "com.example/reserve"
private let ordered = "notifications/com.example/ordered"
private let subjects = "com.example/subjects"
private let books = ["Tea at Five", "Tea at Six", "Coffee at Ten"]

private struct Query: Codable { var query: String }
private struct Book: Codable { var title: String }
private struct Found: Codable { var found: [String] }

private func server() -> Server {
    var offered = ServerExtension(search, settings: ["languages": ["en", "de"]])
    offered.method(search, idempotent: true) { (input: Query, context: Context) -> Found in
        let limit = context.extension(search)?["limit"]?.intValue ?? books.count
        return Found(found: Array(books.filter { $0.contains(input.query) }.prefix(limit)))
    }
    offered.method(reserve) { (book: Book) -> JSONValue in
        ["resultType": "com.example/ticket", "title": .string(book.title), "number": 7]
    }
    // Who listens asks for it by this member of the filter.
    offered.notification(ordered, member: subjects)

    let app = Server("library", extensions: [offered])
    app.tool("limit", "How much this client takes") { (_: NoArguments, context) in
        context.extension(search)?["limit"]?.intValue.map { "at most \($0)" } ?? "no search"
    }
    return app
}

enum ExtensionsExample {
    static func main() async throws {
        let app = server()
        for revision in ["2025-11-25", "2026-07-28"] {
            print(revision)
            let client = try await connect(to: app, declaring(revision))
            let offered = client.capabilities["extensions"]?[search]?["languages"]?.arrayValue ?? []
            print("languages:", offered.compactMap(\.stringValue).joined(separator: ", "))
            let found: Found = try await client.request(search, ["query": "Tea"]).decode()
            print("found:", found.found.joined(separator: ", "))
            print("tool:", try await client.callTool("limit").text)
            print("wrong:", try await refusal(client, ["query": 7]))
            try await hear(app, client)
            await client.close()

            let other = try await connect(to: app, ClientOptions(revision: revision))  // declares nothing
            let said = try await other.callTool("limit").text
            print("undeclared: \(said),", try await refusal(other, ["query": "Tea"]))
            await other.close()
        }

        let client = try await connect(to: app, declaring("2026-07-28"))
        do {
            _ = try await client.request(reserve, ["title": "Tea at Six"])
        } catch let error as TricornError {
            print("unasked:", error.kind)
        }
        let ticket = try await client.request(reserve, ["title": "Tea at Six"], RequestOptions(anyResult: true))
        print("reserved:", ticket["resultType"]?.stringValue ?? "", ticket["number"]?.intValue ?? 0)
        await client.close()
    }

    private static func declaring(_ revision: String) -> ClientOptions {
        var options = ClientOptions(revision: revision)
        options.extensions = [search: ["limit": 1]]
        return options
    }

    private static func hear(_ app: Server, _ client: Client) async throws {
        let changes = try await client.listen(extensions: [subjects: ["tea"]])
        let patience = Task {
            try await Task.sleep(for: .seconds(10))
            changes.close()
        }
        defer { patience.cancel() }
        try app.notify(ordered, ["title": "Coffee at Eleven"], key: "coffee")
        try app.notify(ordered, ["title": "Tea at Seven"], key: "tea")
        for try await change in changes {
            guard case .extensionNotification(_, let book) = change, let title = book["title"]?.stringValue else {
                continue
            }
            print("ordered:", title)
            if title == "Tea at Seven" { break }
        }
    }

    private static func refusal(_ client: Client, _ params: JSONValue) async throws -> String {
        do {
            let result: Found = try await client.request(search, params).decode()
            return "found \(result.found)"
        } catch TricornError.rpc(let code, _, _) {
            return "error \(code)"
        }
    }
}
