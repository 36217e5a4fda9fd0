// Caching: a server says how long its answers keep, and its client asks no sooner than that.
import Tricorn

private struct Fruit: Codable { var fruit: String }

private actor Prices {
    private var lookedUp = 0

    func lookUp() -> String {
        lookedUp += 1
        return "look-up \(lookedUp)"
    }
}

private func server() -> Server {
    let prices = Prices()
    let app = Server("prices", cache: ServerCache(tools: CacheHints(ttl: .seconds(60), scope: .public)))
    // Private, as it may depend on who asks.
    app.resource("price://apple", "What an apple costs", cache: CacheHints(ttl: .seconds(3600))) {
        await prices.lookUp()
    }
    // Calls of tools are never kept.
    app.tool("buy", "Buy fruit") { (input: Fruit, _) in input.fruit }
    return app
}

enum CachingExample {
    static func main() async throws {
        let app = server()
        let client = try await connect(to: app, ClientOptions(revision: .v20260728))
        let tools = try await client.request("tools/list")
        print("tools: \(tools["ttlMs"]?.intValue ?? 0) ms, \(tools["cacheScope"]?.stringValue ?? "")")

        try await read(client, "first")
        try await read(client, "again")
        try await read(client, "past it", .bypass)  // neither looks at what is kept nor changes it
        try await read(client, "again")
        try await read(client, "anew", .refresh)  // asks, and keeps the answer
        try await read(client, "again")
        let usage = client.metrics["cache"]
        print("hits \(usage?["hits"]?.intValue ?? 0), misses \(usage?["misses"]?.intValue ?? 0)")

        // What is listened to is dropped as soon as it changes.
        let changes = try await client.listen(uris: ["price://apple"])
        app.notifyResourceUpdated("price://apple")
        for try await change in changes {
            print("changed:", change.uri ?? "")
            break
        }
        try await read(client, "again")
        await client.close()

        var without = ClientOptions()
        without.cache = .off
        for (how, options) in [("no cache", without), ("2025-11-25", ClientOptions(revision: .v20251125))] {
            let client = try await connect(to: app, options)
            let first = try await client.readResource("price://apple").text
            print("\(how): \(first), \(try await client.readResource("price://apple").text)")
            await client.close()
        }
    }

    private static func read(_ client: Client, _ how: String, _ mode: CacheMode = .default) async throws {
        print("\(how):", try await client.readResource("price://apple", RequestOptions(cache: mode)).text)
    }
}
