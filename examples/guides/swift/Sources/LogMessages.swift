// Log messages: what a server tells its client besides answers.
import Tricorn

private func server() -> Server {
    let app = Server("logging")
    app.tool("backup", "Copy everything") { (_: NoArguments, context) in
        context.log(.debug, "looking for files", logger: "backup")
        context.log(.info, "copying", logger: "backup")
        context.log(.warning, ["free": 3], logger: "disk")
        return "backup done"
    }
    return app
}

enum LogMessagesExample {
    static func main() async throws {
        let app = server()
        let (messages, heard) = AsyncStream.makeStream(of: String.self)
        var message = messages.makeAsyncIterator()
        var options = ClientOptions(revision: .v20251125)
        // Called in a thread of its own: the stream brings the messages here.
        options.onLog = { level, logger, data in heard.yield("\(level): \(logger ?? ""), \(data)") }
        let client = try await connect(to: app, options)
        var result = try await client.callTool("backup")
        for _ in 1...2 { print(await message.next() ?? "") }
        print("no level:", result.text)
        try await client.setLogLevel(.warning)
        result = try await client.callTool("backup")
        print(await message.next() ?? "")
        print("level warning:", result.text)
        await client.close()

        // Newer revisions ask with each call: for the level that was set, or one of its own.
        options.revision = nil
        let newer = try await connect(to: app, options)
        try await newer.setLogLevel(.warning)
        result = try await newer.callTool("backup")
        print(await message.next() ?? "")
        print("newer, level warning:", result.text)
        result = try await newer.callTool("backup", meta: ["io.modelcontextprotocol/logLevel": "info"])
        for _ in 1...2 { print(await message.next() ?? "") }
        print("one call:", result.text)
        await newer.close()
    }
}
