// Errors: whose fault it was decides what becomes of it.
import Tricorn

/// Something that went wrong inside.
private struct JamError: Error, CustomStringConvertible {
    var description = "secret detail"
}

private func server() -> Server {
    let app = Server(
        "printer",
        onError: { error, name in
            print("log: \(name): \(error)")
        })
    app.tool("empty", "Fail, and say why") { () -> String in throw ToolError("out of paper") }
    app.tool("crash", "Fail by accident") { () -> String in throw JamError() }
    app.tool("refuse", "Refuse the request") { () -> String in
        throw TricornError.rpc(code: 4242, message: "no such tray", data: ["tray": 9])
    }
    app.tool("stuck", "Never answer") {
        try await Task.sleep(for: .seconds(3600))
        return ""
    }
    return app
}

enum ErrorsExample {
    static func main() async throws {
        let app = server()
        let client = try await connect(to: app)
        for name in ["empty", "crash"] {
            let result = try await client.callTool(name)
            print("failed: is_error=\(result.isError), \(result.text)")
        }
        do {
            _ = try await client.callTool("refuse")
        } catch TricornError.rpc(let code, let message, let data) {
            print("rpc: \(code), \(message), \(data ?? .null)")
        }
        do {
            _ = try await client.callTool("stuck", [:], RequestOptions(timeout: .milliseconds(100)))
        } catch TricornError.timeout(let message) {
            print("timeout: \(message)")
        }
        do {
            _ = try await client.listPrompts()
        } catch let error as TricornError {
            print("\(error.kind): nothing was sent")
        }
        await client.close()

        do {
            _ = try await connect("http://127.0.0.1:9/mcp")
        } catch let error as TricornError {
            print("\(error.kind): nobody listens")
        }
        do {
            _ = try await connect(to: app, ClientOptions(revision: "2020-01-01"))
        } catch let error as TricornError {
            let known = error.message.contains("expected one of")
            print("\(error.kind):", known ? "expected one of" : error.message)
        }
    }
}
