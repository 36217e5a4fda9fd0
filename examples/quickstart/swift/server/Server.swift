// A first server. Run it with `swift run quickstart-server`, with `--http 127.0.0.1:8000` behind it over HTTP.
import Tricorn

struct Add: Codable {
    var a: Int32
    var b: Int32
}

@main struct Demo {
    static func main() async throws {
        let app = Server("demo")
        app.tool("add", "Add two numbers") { (input: Add, _) in Int(input.a) + Int(input.b) }
        try await app.run()
    }
}
