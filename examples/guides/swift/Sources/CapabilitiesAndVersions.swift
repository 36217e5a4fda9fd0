// What both sides can do, and which revision of the protocol they speak.
import Tricorn

private struct Borrow: Codable { var title: String }

private func server() -> Server {
    let app = Server(
        "library", version: "1.2.0", title: "The library", instructions: "Ask for a book by its title.")
    app.prompt("borrow", "Borrow a book") { (input: Borrow) in "I would like to read \(input.title)." }
    app.tool("caller", "Say who calls") { (_: NoArguments, context) in
        guard let request = context.request else { return "somebody" }
        let who = name(request.clientInfo)
        return "\(who), \(request.protocolVersion), sampling: \(request.clientCapabilities.sampling != nil)"
    }
    return app
}

private func name(_ info: Types.Implementation?) -> String { "\(info?.name ?? "") \(info?.version ?? "")" }

enum CapabilitiesAndVersionsExample {
    static func main() async throws {
        let app = server()
        let revisions: [ProtocolRevision] = [.v20241105, .v20250326, .v20250618, .v20251125, .v20260728]
        for revision in revisions {
            let client = try await connect(to: app, ClientOptions(revision: revision))
            let names = (client.capabilities.json.objectValue ?? [:]).map { name, _ in name }.sorted()
            print("\(client.protocolVersion) \(client.era):", names.joined(separator: ", "))
            await client.close()
        }

        var options = ClientOptions()
        options.name = "reader"
        options.version = "0.3.0"
        let client = try await connect(to: app, options)  // the newest that both speak
        print("negotiated:", client.protocolVersion)
        print("server: \(name(client.serverInfo)), \(client.instructions ?? "")")
        print("client:", try await client.callTool("caller").text)
        do {
            _ = try await client.listResources()
        } catch let error as TricornError {
            print("not offered:", error.kind)
        }
        await client.close()

        options.revision = .v20251125
        options.sampling = { _, _ in "hello" }
        let sampler = try await connect(to: app, options)
        print("client:", try await sampler.callTool("caller").text)
        await sampler.close()

        do {
            _ = try await connect(to: app, ClientOptions(revision: "2020-01-01"))
        } catch let error as TricornError {
            print("unknown revision:", error.kind)
        }
    }
}
