// Standard streams: a client launches its server, here this program with the argument `serve`.
import Foundation
import Tricorn

private struct Add: Codable { var a: Int32, b: Int32 }

private func server() -> Server {
    let app = Server("stdio")
    app.tool("add", "Add two numbers") { (input: Add) in Int(input.a) + Int(input.b) }
    return app
}

enum StdioExample {
    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.contains("serve") {
            FileHandle.standardError.write(Data("server started\n".utf8))
            return try await server().run()
        }

        let (lines, heard) = AsyncStream.makeStream(of: String.self)
        var options = ClientOptions()
        // What the server writes to standard error is for people: here it is heard line by line.
        options.onStderr = { heard.yield($0) }
        let client = try await connect(
            .command(arguments[0], arguments: arguments.dropFirst() + ["serve"]), options)
        print("transport:", client.transport)
        var line = lines.makeAsyncIterator()
        print("heard:", await line.next() ?? "")
        print("add:", try await client.callTool("add", ["a": 1, "b": 2]).text)
        await client.close()  // ends the server: its standard input is closed
    }
}
