// A server in a web program: a store in the lifespan, checked arguments, a login in front of it, tests, an orderly end.
import Foundation
import Tricorn

/// What the login of the web program knows.
private struct User: Sendable {
    var name: String
    var mayWrite: Bool
}

/// Task-local values reach handlers: those of the caller in memory, those of the web program's request.
private enum Request { @TaskLocal static var id = "none" }

private enum Priority: String, Codable, CaseIterable, Sendable { case low, normal, high }

/// A text with limits: its schema says them to clients, and arguments are checked by it.
private struct Title: Codable, Sendable, SchemaProviding {
    static let jsonSchema: JSONValue = ["type": "string", "minLength": 1, "maxLength": 20]
    var text: String

    init(_ text: String) { self.text = text }
    init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }
    func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(text)
    }
}

private struct NewNote: Codable, Sendable, DescribedProperties {
    var title: Title
    var priority: Priority?
    var parts: [NewNote]?

    static let propertyDescriptions = ["title": "A few words", "parts": "What it consists of"]
}

private struct Note: Codable, Sendable {
    var id: Int
    var title: Title
    var priority: Priority
    var parts: [Note]
}

private enum Query: Codable, Sendable {
    case all
    case priority(Priority)
    case title(contains: String)
}

private actor Store {
    private var notes: [String: [Note]] = [:]
    private var last = 0

    static func open() async throws -> Store {
        print("store: open")
        return Store()
    }

    func close() { print("store: closed,", notes.values.joined().count, "notes") }

    func add(_ note: NewNote, of user: String) -> Note {
        let added = made(note)
        notes[user, default: []].append(added)
        return added
    }

    private func made(_ note: NewNote) -> Note {
        last += 1
        let id = last
        return Note(
            id: id, title: note.title, priority: note.priority ?? .normal, parts: (note.parts ?? []).map { made($0) })
    }

    func find(_ query: Query, of user: String) -> [Note] {
        (notes[user] ?? []).filter { note in
            switch query {
            case .all: true
            case .priority(let priority): note.priority == priority
            case .title(let part): note.title.text.contains(part)
            }
        }
    }
}

/// Who is not logged in by the web program is a tester.
private func user(_ context: Context) -> User {
    context.host(as: User.self) ?? User(name: "tester", mayWrite: true)
}

private func notebook() -> Server {
    let lifespan = Lifespan {
        try await Store.open()
    } stop: { (store: Store) in
        await store.close()
    }
    let app = Server("notebook", lifespan: lifespan)
    app.middleware { request, context, next in
        print("request \(Request.id): \(request.method) of \(user(context).name)")
        return try await next(request, context)
    }
    app.tool("add_note", "Write something down") { (note: NewNote, context) in
        guard user(context).mayWrite else { throw ToolError("\(user(context).name) may only read") }
        return try await context.state(Store.self).add(note, of: user(context).name)
    }
    app.tool("find_notes", "Look through the notes", annotations: .init(readOnlyHint: true)) {
        (query: Query, context) in
        try await context.state(Store.self).find(query, of: user(context).name)
    }
    return app
}

/// The web program: who has no token gets no further.
private func site(_ endpoint: HTTPEndpoint) throws -> SmallSite {
    let users = ["Bearer 1": User(name: "ada", mayWrite: true), "Bearer 2": User(name: "bob", mayWrite: false)]
    return try SmallSite { request in
        let token = request.headers.first { $0.name == "authorization" }?.value ?? ""
        guard let user = users[token] else {
            return HTTPResponse(status: 401, headers: [("content-length", "0")])
        }
        var request = request
        request.host = user
        return try await Request.$id.withValue("of the site") { [request] in try await endpoint.handle(request) }
    }
}

enum WebFrameworksExample {
    static func main() async throws {
        print("-- in memory")
        try await withClient(of: notebook()) { client in
            let note: JSONValue = [
                "title": "Move", "priority": nil, "parts": [["title": "Pack", "parts": [["title": "Books"]]]],
            ]
            let made: Note = try await Request.$id.withValue("of the test") {
                try await client.callTool("add_note", note).decode()
            }
            print("added:", made.title.text, made.priority, made.parts[0].parts[0].title.text)
            print("too long:", try await client.callTool("add_note", ["title": "A title of many words"]).text)
            let found: [Note] = try await client.callTool("find_notes", Query.title(contains: "ov")).decode()
            print("found:", found.map(\.title.text))
        }

        print("-- mounted")
        let app = notebook()
        let endpoint = try app.httpEndpoint(HTTPOptions(allowedHosts: ["127.0.0.1"]))
        let web = try site(endpoint)
        for token in ["1", "2", "3"] {
            var options = ClientOptions(revision: .v20260728)
            options.headers = ["Authorization": "Bearer \(token)"]
            do {
                let client = try await Client.connect(to: "\(web.url)/mcp", options)
                let added = try await client.callTool("add_note", ["title": "Rest", "priority": "high"])
                print(added.isError ? "refused: \(added.text)" : "added", "for \(token)")
                let found: [Note] = try await client.callTool("find_notes", Query.priority(.high)).decode()
                print("found:", found.map(\.title.text))
                await client.close()
            } catch let error as TricornError {
                print("\(token): \(error.kind)")
            }
        }
        web.close()
        await endpoint.shutdown()
        print("-- over")
    }
}
