import Foundation
import Testing

@testable import Tricorn

private let revisions = ["2025-11-25", "2026-07-28"]
private let view = "ui://weather/map"
private let page = "<!DOCTYPE html><title>Map</title>"

private func weather(offers: [ServerExtension] = [.ui]) throws -> Server {
    let app = Server("weather", extensions: offers)
    app.tool("forecast", meta: try ToolUI(view).meta) { (_: NoArguments, context) in
        context.supportsUI() ? "shown" : "told"
    }
    app.tool("refresh", meta: try ToolUI(view, visibility: [.app]).meta) { "fresh" }
    app.tool("hidden", meta: try ToolUI(visibility: [.model]).meta) { "hidden" }
    app.tool("old", meta: ["ui/resourceUri": .string(view)]) { "old" }
    app.tool("odd", meta: ["ui": ["resourceUri": "https://example.com", "visibility": ["model", "robot"]]]) { "odd" }
    app.tool("plain") { "plain" }
    let ui = ResourceUI(
        csp: .init(
            connectDomains: ["https://api.example.com"], resourceDomains: ["https://cdn.example.com"],
            frameDomains: ["https://video.example.com"], baseURIDomains: ["https://example.com"]),
        permissions: [.clipboardWrite, .camera, .geolocation, .microphone], domain: "map.example.com",
        prefersBorder: false)
    app.uiResource(view, "A map", html: page, ui: ui, title: "Map")
    app.uiResource("ui://made") { "<p>made</p>" }
    return app
}

private func showing(_ revision: String, _ settings: JSONObject = Apps.uiClientSettings()) -> ClientOptions {
    var options = ClientOptions(revision: revision)
    options.extensions = [Apps.uiExtension: settings]
    return options
}

@Suite(.timeLimit(.minutes(1))) struct AppsTests {
    @Test(arguments: revisions, Way.allCases)
    func toolsSayWhichUserInterfaceTheyHave(revision: String, way: Way) async throws {
        try await serve(try weather(), way, showing(revision)) { client in
            #expect(client.capabilities["extensions"]?[Apps.uiExtension] == [:])
            let listed = try await client.listTools()
            let tools = Dictionary(uniqueKeysWithValues: listed.map { ($0.name, $0) })
            #expect(tools["forecast"]?.meta?["ui"] == ["resourceUri": .string(view)])
            #expect(tools["refresh"]?.meta?["ui"] == ["resourceUri": .string(view), "visibility": ["app"]])
            #expect(tools["hidden"]?.meta?["ui"] == ["visibility": ["model"]])
            let both = try ToolUI(view), app = try ToolUI(view, visibility: [.app])
            let model = try ToolUI(visibility: [.model])
            #expect(tools["forecast"]?.ui == both && tools["refresh"]?.ui == app && tools["old"]?.ui == both)
            #expect(tools["hidden"]?.ui == model)
            #expect(tools["plain"]?.ui == nil && tools["odd"]?.ui == nil)
            #expect(listed.filter { !$0.isVisibleToModel }.map(\.name) == ["refresh"])
            #expect(listed.filter { !$0.isCallableByApp }.map(\.name).sorted() == ["hidden", "odd"])
        }
    }

    @Test func whatOthersListIsReadWithCare() throws {
        let cases = try JSONValue(parsing: CorpusTests.read("tests/apps.json")).arrayValue ?? []
        #expect(!cases.isEmpty)
        for each in cases {
            let tool = Tool(json: ["name": "t", "inputSchema": [:], "_meta": each["meta"] ?? [:]])
            let visibility = Set((each["ui"]?["visibility"]?.arrayValue ?? []).compactMap { $0.stringValue })
            #expect(tool.ui?.resourceURI == each["ui"]?["resourceUri"]?.stringValue, "\(each)")
            #expect((tool.ui == nil) == (each["ui"] == .null), "\(each)")
            let seen = tool.ui.map { ui in Set(ui.visibility.map { who in who.rawValue }) } ?? []
            #expect(seen == visibility, "\(each)")
            #expect(.bool(tool.isVisibleToModel) == each["model"], "\(each)")
            #expect(.bool(tool.isCallableByApp) == each["app"], "\(each)")
        }
    }

    @Test(arguments: revisions, Way.allCases)
    func userInterfacesAreResources(revision: String, way: Way) async throws {
        try await serve(try weather(), way, showing(revision)) { client in
            let resources = try await client.listResources()
            #expect(resources.map(\.uri) == [view, "ui://made"])
            #expect(resources.map(\.name) == ["weather/map", "made"])
            #expect(resources.map(\.mimeType) == [Apps.uiMIMEType, Apps.uiMIMEType])
            #expect(resources[0].title == "Map" && resources[0].description == "A map")
            let contents = try await client.readResource(view).json["contents"]
            let wanted: JSONValue = [
                "uri": .string(view), "mimeType": "text/html;profile=mcp-app", "text": .string(page),
                "_meta": [
                    "ui": [
                        "csp": [
                            "connectDomains": ["https://api.example.com"],
                            "resourceDomains": ["https://cdn.example.com"],
                            "frameDomains": ["https://video.example.com"],
                            "baseUriDomains": ["https://example.com"],
                        ],
                        "permissions": ["camera": [:], "microphone": [:], "geolocation": [:], "clipboardWrite": [:]],
                        "domain": "map.example.com", "prefersBorder": false,
                    ]
                ],
            ]
            #expect(contents == [wanted])
            let made = try await client.readResource("ui://made").json["contents"]
            #expect(made == [["uri": "ui://made", "mimeType": "text/html;profile=mcp-app", "text": "<p>made</p>"]])
        }
    }

    @Test(arguments: revisions)
    func textHasToDoForThoseWhoShowNone(revision: String) async throws {
        func answer(_ options: ClientOptions, _ app: Server) async throws -> String {
            try await withClient(of: app, options) { try await $0.callTool("forecast").text }
        }
        let app = try weather()
        #expect(try await answer(showing(revision), app) == "shown")
        let more = Apps.uiClientSettings(mimeTypes: ["text/x", Apps.uiMIMEType])
        #expect(try await answer(showing(revision, more), app) == "shown")
        let other = Apps.uiClientSettings(mimeTypes: ["text/x"])
        #expect(try await answer(showing(revision, other), app) == "told")
        #expect(try await answer(showing(revision, [:]), app) == "told")
        #expect(try await answer(ClientOptions(revision: revision), app) == "told")
        #expect(try await answer(showing(revision), try weather(offers: [])) == "told")
    }

    @Test func whatIsLeftOutIsNotSent() throws {
        #expect(ResourceUI().meta == ["ui": [:]])
        #expect(ResourceUI(csp: .init(), prefersBorder: true).meta == ["ui": ["csp": [:], "prefersBorder": true]])
        #expect(try ToolUI().meta == ["ui": [:]])
        #expect(try ToolUI(visibility: []).meta == ["ui": ["visibility": []]])
    }

    @Test func otherURIsAreRefused() async throws {
        let message = #"expected a URI that begins with ui://, got "https://example.com""#
        #expect(throws: TricornError.misuse("resourceURI: \(message)")) { try ToolUI("https://example.com") }
        for (uri, why) in [("https://example.com", message), ("ui://{x}", "expected a URI without variables")] {
            let app = Server("test")
            app.uiResource(uri, html: page)
            do {
                _ = try await connect(to: app)
                Issue.record("\(uri) was taken")
            } catch TricornError.misuse(let message) {
                #expect(message.hasPrefix("resource \"\(uri)\": uri: \(why)"), "\(message)")
            }
        }
    }
}
