// Lifespan: what a server starts with its first use and stops with its last.
import Tricorn

private actor Database {
    private(set) var rows: [String] = []

    func add(_ row: String) -> Int {
        rows.append(row)
        return rows.count
    }
}

private struct Note: Codable { var text: String }

private func notes() -> Server {
    let lifespan = Lifespan {
        print("open")
        return Database()
    } stop: { (database: Database) in
        print("close, rows:", await database.rows.count)
    }
    let app = Server("notes", lifespan: lifespan)
    app.tool("note", "Write something down") { (input: Note, context) in
        try await context.state(Database.self).add(input.text)
    }
    return app
}

private struct Settings { var greeting: String }

private func polite() -> Server {
    let app = Server("polite", state: Settings(greeting: "Good morning"))
    app.tool("greet", "Greet") { (_: NoArguments, context) in try context.state(Settings.self).greeting }
    return app
}

enum LifespanExample {
    static func main() async throws {
        let app = notes()
        let one = try await connect(to: app)
        let two = try await connect(to: app)
        print("one: row", try await one.callTool("note", ["text": "Buy milk."]).text)
        print("two: row", try await two.callTool("note", ["text": "Buy bread."]).text)
        await two.close()
        print("one is still there")
        print("one: row", try await one.callTool("note", ["text": "Bake."]).text)
        await one.close()

        let again = try await connect(to: app)
        print("again: row", try await again.callTool("note", ["text": "Eat."]).text)
        await again.close()

        let client = try await connect(to: polite())
        print("greet:", try await client.callTool("greet").text)
        await client.close()
    }
}
