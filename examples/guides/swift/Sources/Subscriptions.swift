// Subscriptions: what has changed, heard one change after the other or by a function, the same in every revision.
import Tricorn

private struct Word: Codable { var word: String }

private actor Score {
    private(set) var text = "0:0"

    func change(_ text: String) { self.text = text }
}

private func server(_ score: Score, _ hooked: AsyncStream<String>.Continuation) -> Server {
    let app = Server("news")
    app.resource("news://sport", "How it stands") { await score.text }
    app.tool("headlines", "What is new") { "It rains." }
    app.tool("search", "What was new", enabled: false) { (input: Word, _) in input.word }
    app.onSubscribe { uri, subscribed in
        if subscribed { hooked.yield("server: \(uri) is listened to") }  // else somebody has left
    }
    return app
}

enum SubscriptionsExample {
    static func main() async throws {
        let score = Score()
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        var hooked = stream.makeAsyncIterator()
        let app = server(score, continuation)
        var clients: [Client] = []
        for revision in ["2025-11-25", "2026-07-28"] {
            print(revision)

            // One change after the other.
            let client = try await connect(to: app, ClientOptions(revision: revision))
            let changes = try await client.listen(tools: true, uris: ["news://sport"])
            print(await hooked.next() ?? "")
            let tools = changes.honoured.tools ? "tools, " : ""
            print("listening to \(tools)\(changes.honoured.uris.joined(separator: " "))")
            await score.change("1:0")
            app.notifyResourceUpdated("news://sport")
            loop: for try await change in changes {
                switch change {
                case .resourceUpdated(let uri):
                    print("changed: \(uri):", try await client.readResource(uri).text)
                    app.setEnabled(.tool, named: "search", to: true)
                case .toolsListChanged:
                    let names = try await client.listTools().map(\.name)
                    print("changed: tools:", names.joined(separator: ", "))
                    break loop
                default: break
                }
            }
            app.setEnabled(.tool, named: "search", to: false)

            // By a function.
            let (heard, told) = AsyncStream.makeStream(of: String.self)
            var updates = heard.makeAsyncIterator()
            var options = ClientOptions(revision: revision)
            options.onResourceUpdated = { told.yield($0) }
            let other = try await connect(to: app, options)
            try await other.subscribe("news://sport")
            print(await hooked.next() ?? "")
            app.notifyResourceUpdated("news://sport")
            print("told:", await updates.next() ?? "")
            try await other.unsubscribe("news://sport")
            clients += [client, other]
        }
        for client in clients { await client.close() }
    }
}
