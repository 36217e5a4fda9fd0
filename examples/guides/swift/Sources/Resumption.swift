// Resumption: a stream ends early, and nothing is lost.
import Tricorn

private func server() -> Server {
    let app = Server("long")
    app.tool("work", "Work long, without a connection all the time") { (_: NoArguments, context) in
        context.progress(1, total: 2, message: "on the first stream")
        context.closeStream()
        context.progress(2, total: 2, message: "after the client came back")
        return "all there"
    }
    return app
}

enum ResumptionExample {
    static func main() async throws {
        let app = server()
        var http = HTTPOptions(port: 0)
        http.sseRetry = .milliseconds(100)
        let serving = try await app.start(http)

        let client = try await connect(serving.url, ClientOptions(revision: .v20251125))
        let options = RequestOptions(onProgress: { progress in
            print("\(Int(progress.progress)) of \(Int(progress.total ?? 0)): \(progress.message ?? "")")
        })
        print("result:", try await client.callTool("work", [:], options).text)
        await client.close()
        await serving.stop()
    }
}
