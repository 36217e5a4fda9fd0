// A shared cache: clients of several programs keep answers in one store, and what has changed is dropped for all.
import Tricorn

private actor Prices {
    private var lookedUp = 0

    func lookUp() -> String {
        lookedUp += 1
        return "look-up \(lookedUp)"
    }
}

/// A store; a client of Redis has `mget`, `setex` and `del` for it.
private actor Store: CacheStore {
    private(set) var kept: [String: String] = [:]

    func get(_ keys: [String]) -> [String?] { keys.map { kept[$0] } }
    func set(_ key: String, _ text: String, ttl: Duration) { kept[key] = text }
    func delete(_ key: String) { kept[key] = nil }
}

enum SharedCacheExample {
    static func main() async throws {
        let app = Server("prices"), prices = Prices()
        let forAll = CacheHints(ttl: .seconds(3600), scope: .public)
        app.resource("price://apple", "What an apple costs", cache: forAll) { await prices.lookUp() }
        let serving = try await app.start(port: 0)

        // Each would be in a program of its own, with a store that both reach.
        let store = Store()
        var options = ClientOptions()
        options.cache = ClientCache(store: store)
        let one = try await connect(serving.url, options), another = try await connect(serving.url, options)
        print("one program:", try await price(one))
        print("another:", try await price(another))
        let usage = another.metrics["cache"]
        print("hits \(usage?["hits"]?.intValue ?? 0), failures \(usage?["failures"]?.intValue ?? 0)")

        // What one of them hears of is dropped for all.
        let changes = try await one.listen(uris: ["price://apple"])
        app.notifyResourceUpdated("price://apple")
        for try await change in changes {
            print("changed:", change.uri ?? "")
            break
        }
        print("one program:", try await price(one))
        print("another:", try await price(another))
        await one.close()
        await another.close()

        let kept = await store.kept
        let marks = kept.keys.filter { $0.contains(":resources/read:mark:") }
        let answers = kept.values.filter { $0.contains("look-up 2") }
        print("the store has marks and one answer:", !marks.isEmpty && answers.count == 1)
        await serving.stop()
    }

    private static func price(_ client: Client) async throws -> String {
        try await client.readResource("price://apple").text
    }
}
