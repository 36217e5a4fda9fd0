// Pagination: long lists come in pages.
import Tricorn

private func server() -> Server {
    let app = Server("shelf", pageSize: 2)
    for name in ["one", "two", "three", "four", "five"] {
        app.resource("book://\(name)", name: name, value: "Book \(name).")
    }
    return app
}

enum PaginationExample {
    static func main() async throws {
        let client = try await connect(to: server())

        var cursor: String?
        repeat {
            let page = try await client.listResourcesPage(cursor: cursor)
            print("page:", page.resources.map(\.name).joined(separator: ", "))
            cursor = page.nextCursor
        } while cursor != nil

        var seen: [String] = []
        // Asks for a page when the loop gets there.
        for try await resource in client.resources() {
            seen.append(resource.name)
            if resource.name == "three" { break }
        }
        print("lazily:", seen.joined(separator: " "))

        print("all:", try await client.listResources().count)

        do {
            _ = try await client.listResourcesPage(cursor: "nonsense")
        } catch TricornError.rpc(let code, _, _) {
            print("bad cursor: error \(code)")
        }
        await client.close()
    }
}
