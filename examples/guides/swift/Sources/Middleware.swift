// Middleware: what stands around every request, of a server and of a client.
import Foundation
import Tricorn

private struct Greet: Codable { var name: String }

/// Who asks.
private struct User: Sendable { var name: String }

private func server() -> Server {
    let app = Server("signed")
    app.middleware(.timing)  // the first one is the outermost

    // Refuses whoever does not say who they are, and tells the others' names to what comes after.
    app.middleware { request, context, next in
        guard let user = request.params["_meta"]?["com.example/user"]?.stringValue else {
            throw TricornError.rpc(code: -32001, message: "who are you?")
        }
        context.values[User.self] = User(name: user)
        print("> \(request.method) of \(user)")
        let result = try await next(request, context)
        print("< \(request.method)")
        return result
    }

    // Changes parameters on their way.
    app.middleware { request, context, next in
        guard request.method == "tools/call" else { return try await next(request, context) }
        var request = request
        let name = request.params["arguments"]?["name"]?.stringValue ?? ""
        request.params["arguments"] = ["name": .string(name.trimmingCharacters(in: .whitespaces))]
        return try await next(request, context)
    }

    app.tool("greet", "Greet somebody") { (input: Greet, context) in
        "Hello \(input.name), from \(context.values[User.self]?.name ?? "")!"
    }
    return app
}

private func limited(_ green: AsyncStream<Void>) -> Server {
    let app = Server("limited")
    app.middleware(.rateLimit(perSecond: 1.0 / 3600, burst: 2))
    app.tool("wait", "Wait for the green light") {
        for await _ in green {}
        return "done"
    }
    return app
}

enum MiddlewareExample {
    static func main() async throws {
        let app = server()
        var options = ClientOptions()
        // A client's: signs whatever it sends.
        options.middleware = [
            .init { request, context, next in
                var request = request
                var meta = request.params["_meta"] ?? [:]
                meta["com.example/user"] = "Ada"
                request.params["_meta"] = meta
                return try await next(request, context)
            }
        ]
        let client = try await connect(to: app, options)
        print("greet:", try await client.callTool("greet", ["name": " Bob "]).text)
        await client.close()

        let (records, written) = AsyncStream.makeStream(of: String.self)
        var record = records.makeAsyncIterator()
        options.middleware = [
            .logging { written.yield("\($0.method) \($0.name ?? "") \($0.error == nil ? "ok" : "failed")") }
        ]
        let unsigned = try await connect(to: app, options)
        do {
            _ = try await unsigned.callTool("greet", ["name": "Bob"])
        } catch TricornError.rpc(let code, let message, _) {
            print("unsigned: error \(code), \(message)")
        }
        await unsigned.close()
        print("logged:", await record.next() ?? "")
        let calls = app.metrics["timing"]?["tools/call"]
        print("timing: \(calls?["count"]?.intValue ?? 0) calls, \(calls?["failed"]?.intValue ?? 0) failed")

        // One at a time, nobody waits. The limit is the client's own: the second is not even sent.
        let (green, light) = AsyncStream.makeStream(of: Void.self)
        options.middleware = [.concurrencyLimit(1, maxWaiting: 0)]
        let busy = try await connect(to: limited(green), options)
        try await withThrowingTaskGroup(of: String.self) { both in
            for _ in 1...2 { both.addTask { try await busy.callTool("wait").text } }
            do {
                _ = try await both.next()
            } catch TricornError.rpc(let code, _, _) {
                print("one too many: error \(code)")
            }
            light.finish()
            print("the other:", try await both.next() ?? "")
        }
        print("once more:", try await busy.callTool("wait").text)
        do {
            _ = try await busy.callTool("wait")
        } catch TricornError.rpc(let code, _, let data) {
            let minutes = (data?["retryAfter"]?.doubleValue ?? 0) / 60
            print("too often: error \(code), again in \(Int(minutes.rounded())) minutes")
        }
        await busy.close()
    }
}
