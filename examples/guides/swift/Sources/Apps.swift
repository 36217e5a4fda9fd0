// MCP Apps: a tool with a user interface, a host that shows it, and a client that shows none.
import Tricorn

private let map = "ui://weather/map"

private struct Place: Codable { var city: String }

private func server() throws -> Server {
    let app = Server("weather", extensions: [.ui])
    app.tool("forecast", "The weather of the coming days", meta: try ToolUI(map).meta) { (place: Place, context) in
        context.supportsUI()
            ? "\(place.city): sunny. The map is on the screen."
            : "\(place.city): sunny from Monday to Sunday, 21 to 25 degrees."
    }
    let forApp = try ToolUI(map, visibility: [.app]).meta
    app.tool("refresh", "What it is like now, for the map", meta: forApp) { (place: Place) in
        "\(place.city): 22 degrees"
    }
    app.tool("alerts", "Warnings of storms", meta: try ToolUI(map, visibility: [.model]).meta) { "none" }
    let ui = ResourceUI(csp: .init(connectDomains: ["https://tiles.example.com"]), permissions: [.geolocation])
    app.uiResource(map, html: "<h1>Weather</h1>", ui: ui)
    return app
}

enum AppsExample {
    static func main() async throws {
        let app = try server()
        print("with user interfaces")
        var options = ClientOptions()
        options.extensions[Apps.uiExtension] = Apps.uiClientSettings()
        let shows = try await connect(to: app, options)
        try await host(shows)
        await shows.close()

        print("without")
        let plain = try await connect(to: app)
        print("forecast:", try await plain.callTool("forecast", Place(city: "Rome")).text)
        await plain.close()
    }

    private static func host(_ client: Client) async throws {
        let tools = try await client.listTools()
        print("the model may call:", names(tools.filter(\.isVisibleToModel)))
        print("the page may call:", names(tools.filter(\.isCallableByApp)))
        let called = tools[0]  // by the model
        print("\(called.name):", try await client.callTool(called.name, Place(city: "Rome")).text)
        if let uri = called.ui?.resourceURI { try await show(client, uri) }
    }

    /// In a sandboxed frame, which may do what the contents ask for and the host allows.
    private static func show(_ client: Client, _ uri: String) async throws {
        let page = try await client.readResource(uri).json["contents"]?[0]
        print("page: \(uri), \(page?["mimeType"]?.stringValue ?? ""), \(page?["text"]?.stringValue ?? "")")
        let wanted = page?["_meta"]?["ui"]
        let domains = wanted?["csp"]?["connectDomains"]?.arrayValue ?? []
        print("requests:", domains.compactMap(\.stringValue).joined(separator: ", "))
        let permissions = wanted?["permissions"]?.objectValue ?? [:]
        print("permissions:", permissions.map { name, _ in name }.joined(separator: ", "))
        // What the page calls goes through the host.
        print("refresh:", try await client.callTool("refresh", Place(city: "Rome")).text)
    }

    private static func names(_ tools: [Tool]) -> String { tools.map(\.name).joined(separator: ", ") }
}
