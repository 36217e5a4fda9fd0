import AppNames
import Testing
import Tricorn

/// A name that both modules export does not compile here.
@Suite struct NamesTests {
    @Test func appsImportOtherModulesToo() throws {
        let others: [Any] = [
            Form(), Content(), Extension(), Target(), Root(), Change(), StandardError(), OfferPlace(), WireFields(),
            Transport(), Metrics(), Icon(), Implementation(),
        ]
        #expect(others.count == 13)
        _ = try ElicitationForm(Add.self)
        let block: ContentBlock = .text("x"), target: ConnectionTarget = .parse("x"), root: ClientRoot = "/srv"
        let change: ServerChange = .toolsListChanged
        #expect("\(block) \(target) \(root) \(change)".isEmpty == false)
        #expect(ServerExtension("com.example/search").id == "com.example/search")
    }

    @Test func whatHasAFewValuesHasAType() async throws {
        let app = Server("named", version: "2", icons: [.init(src: "https://example.com/i.png")], revision: .v20251125)
        app.tool("who") { (_: NoArguments, context) in
            let request = context.request
            return "\(request?.clientInfo?.name ?? "") \(request?.era == .legacy) \(request?.transport == .memory)"
        }
        var options = ClientOptions(revision: .v20251125)
        options.name = "app"
        let client = try await Client.connect(to: app, options)
        #expect(client.protocolVersion == .v20251125 && client.era == .legacy && client.transport == .memory)
        #expect("\(client.protocolVersion) \(client.era) \(client.transport)" == "2025-11-25 legacy memory")
        #expect(client.serverInfo?.name == "named" && client.serverInfo?.version == "2")
        #expect(client.serverInfo?.icons?.first?.src == "https://example.com/i.png")
        #expect(client.capabilities.tools != nil && client.capabilities.prompts == nil)
        #expect(try await client.callTool("who").text == "app true true")
        #expect(client.metrics.awaited == 0 && app.metrics.connections == 1)
        do {
            _ = try await client.readResource("none://here")
            Issue.record("there is no such resource")
        } catch let error as TricornError {
            #expect(error.kind == .unsupported || error.kind == .rpc)
        }
        #expect(ProtocolRevision(rawValue: "2031-01-01").rawValue == "2031-01-01", "unknown values are kept")
        await client.close()
    }
}
