// Many servers: used as if they were one.
import Tricorn

private struct Find: Codable { var name: String }

private func mapServer() -> Server {
    let app = Server("maps")
    app.tool("find", "Find a city") { (input: Find) in "the map of \(input.name)" }
    app.tool("zoom", "Look closer") { "closer" }
    return app
}

private func fileServer() -> Server {
    let app = Server("files")
    app.tool("find", "Find a file") { (input: Find) in "file:///\(input.name).txt" }
    app.resource("file:///Rome.txt", value: "Not built in a day.")
    return app
}

enum ManyServersExample {
    static func main() async throws {
        let maps = mapServer()
        let (lists, heard) = AsyncStream.makeStream(of: String.self)
        var news = lists.makeAsyncIterator()
        var options = GroupOptions(client: ClientOptions(revision: .v20251125))
        options.forServer = { name, options in
            options.onListChanged = { heard.yield("\(name) \($0.rawValue)") }
        }
        let group = try await connectMany(
            ["broken": .command("/no/such/program"), "maps": .server(maps), "files": .server(fileServer())], options)
        print("servers:", group.names.joined(separator: ", "))
        for (name, failure) in group.failures { print("failed: \(name), \(failure.kind)") }

        for tool in try await group.listTools() { print("\(tool.name) of \(tool.server)") }
        print("maps_find:", try await group.callTool("maps_find", ["name": "Rome"]).text)
        print("files_find:", try await group.callTool("files_find", ["name": "Rome"]).text)
        print("zoom:", try await group.callTool("zoom").text)
        print("file:///Rome.txt:", try await group.readResource("file:///Rome.txt").text)
        do {
            _ = try await group.callTool("zooom")
        } catch let error as TricornError {
            print("zooom:", error.kind)
        }

        // One of them, with its own names.
        let alone = try await group.client("maps")?.listTools() ?? []
        print("maps alone:", alone.map(\.name).joined(separator: ", "))

        maps.tool("turn") { "north" }
        print("changed:", await news.next() ?? "")
        print("turn:", try await group.callTool("turn").text)

        try await group.remove("files")
        print("without files:", try await group.listTools().map(\.name).joined(separator: ", "))
        await group.close()
    }
}
