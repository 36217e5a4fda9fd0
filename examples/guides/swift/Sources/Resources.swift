// Resources: listed, read, templated, watched.
import Foundation
import Tricorn

private struct Month: Codable { var year: Int, month: Int }

private actor Notes {
    private(set) var today = "Buy milk."

    func change(_ text: String) { today = text }
}

private func server(_ notes: Notes) -> Server {
    let app = Server("resources")
    app.resource("notes://today", "What to do today", mimeType: "text/plain") { await notes.today }
    app.resource("logo://dot", mimeType: "image/png", value: Data([0x89, 0x50, 0x4E, 0x47]))
    app.resource("notes://{year}/{month}", "The notes of a month", mimeType: "text/plain") { (input: Month) in
        if input.year < 2000 { throw TricornError.resourceNotFound("notes://\(input.year)/\(input.month)") }
        return "Notes of \(input.month)/\(input.year)"
    }
    return app
}

enum ResourcesExample {
    static func main() async throws {
        let notes = Notes()
        let app = server(notes)
        let (changes, heard) = AsyncStream.makeStream(of: String.self)
        var options = ClientOptions(revision: .v20251125)
        options.onResourceUpdated = { heard.yield($0) }
        let client = try await connect(to: app, options)

        for resource in try await client.listResources() { print(resource.uri, resource.mimeType ?? "") }
        for template in try await client.listResourceTemplates() { print(template.uriTemplate) }

        print("notes://today:", try await client.readResource("notes://today").text)
        print("logo://dot:", try await client.readResource("logo://dot").data?.count ?? 0, "bytes")
        print("notes://2026/11:", try await client.readResource("notes://2026/11").text)
        for uri in ["notes://2026/May", "notes://1999/1"] {
            do {
                _ = try await client.readResource(uri)
            } catch TricornError.rpc(let code, let message, _) {
                print("\(uri): error \(code), \(message)")
            }
        }

        try await client.subscribe("notes://today")
        await notes.change("Buy milk and bread.")
        app.notifyResourceUpdated("notes://today")
        var told = changes.makeAsyncIterator()
        print("changed:", await told.next() ?? "")
        print("notes://today:", try await client.readResource("notes://today").text)

        try await client.unsubscribe("notes://today")
        app.notifyResourceUpdated("notes://today")
        await client.close()
        heard.finish()
        var times = 1
        while await told.next() != nil { times += 1 }
        print("told", times, "time")
    }
}
