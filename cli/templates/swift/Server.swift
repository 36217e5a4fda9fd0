// {{name}}, a server of the Model Context Protocol: standard streams, or HTTP with --http 127.0.0.1:8000.
import Tricorn

struct Add: Codable {
    var a: Int32
    var b: Int32
}

func server() -> Server {
    let app = Server("{{name}}", version: "0.1.0")
    app.tool("add", "Add two numbers") { (input: Add, _) in Int(input.a) + Int(input.b) }
    return app
}

@main struct Program {
    static func main() async throws {
        try await server().run()
    }
}
