// An extension of the protocol: requests, a type of results and a notification of its own.
import Tricorn

private let id = "com.example/search"
private let found = "notifications/com.example/found"

private struct Query: Codable { var query: String }

func addSearch(to app: Server) throws {
    var search = ServerExtension(id, settings: ["languages": ["en"]])
    search.method(id, idempotent: true) { (asked: Query, context: Context) -> JSONValue in
        ["found": [.string(asked.query)], "wanted": context.extension(id).map(JSONValue.object) ?? .null]
    }
    search.method("com.example/later") { () -> JSONValue in ["resultType": "com.example/later", "at": 7] }
    search.method("com.example/fails") { () -> JSONValue in
        throw TricornError.rpc(code: -31050, message: "no such index")
    }
    search.method("com.example/announce") { [weak app] (asked: Query, _: Context) in
        try app?.notify(found, ["query": .string(asked.query)], key: asked.query)
    }
    search.notification(found, member: "com.example/queries")
    try app.addExtension(search)
}
