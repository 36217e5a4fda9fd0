import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import Tricorn

/// A server that takes access tokens: what is the library's own of it.
@Suite struct ServerAuthTests {
    private let resource = "https://mcp.example.com/mcp"

    private func mounted(
        onError: (@Sendable (any Error, String) -> Void)? = nil,
        _ verify: @escaping ServerAuth.Verifier
    ) throws -> HTTPEndpoint {
        let auth = ServerAuth.verifier(authorizationServers: ["https://as.example.com"], resource: resource, verify)
        let app = Server("mounted", auth: auth, onError: onError)
        app.tool("whoami") { (_: NoArguments, context) in context.principal?.subject ?? "nobody" }
        return try app.httpEndpoint(HTTPOptions(allowedHosts: ["mcp.example.com"]))
    }

    private func request(
        _ token: String?, _ method: String = "POST", _ target: String = "/mcp", call: Bool = true
    ) -> HTTPRequest {
        var headers = [
            (name: "Host", value: "mcp.example.com"), (name: "Content-Type", value: "application/json"),
            (name: "Accept", value: "application/json, text/event-stream"),
            (name: "MCP-Protocol-Version", value: "2026-07-28"), (name: "Mcp-Method", value: "tools/call"),
            (name: "Mcp-Name", value: "whoami"),
        ]
        if let token { headers.append((name: "Authorization", value: "Bearer \(token)")) }
        let body: JSONValue = [
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": [
                "name": "whoami", "arguments": [:],
                "_meta": [
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": ["name": "test", "version": "1"],
                    "io.modelcontextprotocol/clientCapabilities": [:],
                ],
            ],
        ]
        return HTTPRequest(
            method: method, target: target, headers: headers, body: call ? Array(body.description.utf8) : [])
    }

    private func text(_ response: HTTPResponse) async throws -> String {
        var text = ""
        for try await part in response.body { text += part }
        return text
    }

    private func header(_ response: HTTPResponse, _ name: String) -> String? {
        response.headers.first { $0.name == name }?.value
    }

    @Test func whatAVerifierSaysCounts() async throws {
        struct Odd: Error {}
        let heard = Locked([String]())
        let endpoint = try mounted(onError: { error, name in heard.with { $0.append("\(name): \(type(of: error))") } })
        {
            switch $0 {
            case "ada": return Principal(subject: "ada", expiresAt: Date.now + 60)
            case "old": return Principal(subject: "ada", expiresAt: Date.now - 3600)
            case "auth": throw TricornError.auth("secret words")
            case "late": throw TricornError.timeout("secret words")
            case "down": throw TricornError.transport("secret words")
            case "url": throw URLError(.cannotConnectToHost)
            case "odd": throw Odd()
            default: return nil
            }
        }
        for (token, status) in [
            ("ada", 200), ("old", 401), ("unknown", 401), ("auth", 401), ("odd", 401), ("late", 503), ("down", 503),
            ("url", 503),
        ] {
            let response = try await endpoint.handle(request(token))
            let body = try await text(response)
            #expect(response.status == status, "\(token): \(body)")
            #expect(!body.contains("secret words") && !"\(response.headers)".contains("secret words"))
            if status == 200 { #expect(body.contains("ada")) }
        }
        #expect(heard.with { $0 } == ["auth: Odd", "auth: URLError"])
        let none = try await endpoint.handle(request(nil))
        #expect(none.status == 401)
        let challenge = header(none, "www-authenticate") ?? ""
        let metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
        #expect(challenge.contains("resource_metadata=\"\(metadata)\""), "\(challenge)")
        // A token in the query is no token, and refused.
        let query = try await endpoint.handle(request(nil, "POST", "/mcp?access_token=ada"))
        #expect(query.status == 400)
    }

    @Test func aMountTellsItsMetadata() async throws {
        let endpoint = try mounted { _ in nil }
        let metadata = try #require(endpoint.resourceMetadata)
        #expect(metadata.path == "/.well-known/oauth-protected-resource/mcp")
        let document = try JSONValue(parsing: metadata.text)
        #expect(document["resource"]?.stringValue == resource)
        #expect(document["authorization_servers"] == ["https://as.example.com"])
        let response = try await endpoint.handle(request(nil, "GET", metadata.path, call: false))
        #expect(response.status == 200 && header(response, "content-type") == "application/json")
        #expect(try JSONValue(parsing: try await text(response)) == document)
        #expect(try Server("open").httpEndpoint().resourceMetadata == nil)
    }

    @Test func aPrincipalIsAllThatTheTokenSays() async throws {
        let until = Date(timeIntervalSince1970: 4_102_444_800), seen = Locked<Principal?>(nil)
        let principal = Principal(
            subject: "ada", issuer: "https://as", clientID: "app", scopes: ["admin"],
            claims: ["team": "blue", "groups": [1, nil]], expiresAt: until)
        let sent = Locked<RequestInfo?>(nil)
        var auth = ServerAuth.verifier(authorizationServers: ["https://as.example.com"], resource: resource) { _ in
            principal
        }
        auth.scopeImplies = ["admin": ["read"]]
        let app = Server("notes", auth: auth)
        app.tool("whoami", scopes: ["read"]) { (_: NoArguments, context) in
            seen.with { $0 = context.principal }
            sent.with { $0 = context.request }
            return "ok"
        }
        let endpoint = try app.httpEndpoint(HTTPOptions(allowedHosts: ["mcp.example.com"]))
        #expect(try await endpoint.handle(request("t")).status == 200)
        let found = try #require(seen.with { $0 })
        #expect(found.subject == "ada" && found.issuer == "https://as" && found.clientID == "app")
        #expect(found.scopes == ["admin"] && found.claims == principal.claims && found.expiresAt == until)
        #expect(found.hasScope("admin") && found.hasScope("read") && !found.hasScope("write"))
        var dumped = ""
        dump(found, to: &dumped)
        #expect(!"\(found) \(String(reflecting: found)) \(dumped)".contains("blue"))
        // Nor is it shown with the request.
        let info = try #require(sent.with { $0 })
        dump(info, to: &dumped)
        #expect(info.principal == found && "\(info)".contains("tools/call") && "\(info)".contains("ada"), "\(info)")
        #expect(!"\(info) \(String(reflecting: info)) \(dumped)".contains("blue"))
        #expect("\(Principal(subject: "x"))" == "Principal(subject: \"x\", scopes: [])")
    }

    @Test func inMemoryThereIsNobody() async throws {
        let authority = try Authority()
        try await withClient(of: protected(authority)) { client in
            expect(try await client.callTool("whoami").text, "nobody ")
        }
    }

    @Test func whatASessionIsGivenHasScopes() async throws {
        let authority = try Authority()
        let app = protected(authority)
        app.tool("open") { (_: NoArguments, context) in
            try context.addToSession { session in
                session.tool("shut", scopes: ["write"]) { "shut" }
                session.tool("free") { "free" }
            }
            return "opened"
        }
        try await listening(app) { url in
            var options = ClientOptions(revision: "2025-11-25")
            options.auth = login()
            let client = try await connect(url, options)
            _ = try await client.callTool("open")
            #expect(try await client.listTools().map(\.name).contains("free"))
            #expect(try await !client.listTools().map(\.name).contains("shut"))
            #expect(try await client.callTool("shut").text == "shut")
            #expect(authority.opened == 2)
            await client.close()
        }
    }

    @Test func everyOptionCrosses() {
        var auth = ServerAuth.issuer("https://as", resource: "https://h/mcp", requiredScopes: ["a"])
        auth.jwksURI = "https://as/keys"
        auth.audiences = ["aud"]
        auth.scopesSupported = ["a", "b"]
        auth.scopeImplies = ["b": ["a"]]
        auth.authorizationServers = ["https://other"]
        auth.resourceName = "Notes"
        auth.resourceDocumentation = "https://h/docs"
        auth.clockSkew = .seconds(5)
        auth.timeout = .milliseconds(1500)
        #expect(
            auth.json(nil) == [
                "issuer": "https://as", "jwks_uri": "https://as/keys", "resource": "https://h/mcp",
                "audiences": ["aud"], "required_scopes": ["a"], "scopes_supported": ["a", "b"],
                "scope_implies": ["b": ["a"]], "authorization_servers": ["https://other"], "resource_name": "Notes",
                "resource_documentation": "https://h/docs", "clock_skew": 5.0, "timeout": 1.5,
            ])
        let asked = ServerAuth.introspection(
            "https://as/introspect", clientID: "c", clientSecret: "s", authorizationServers: ["https://as"])
        #expect(asked.verifier == nil)
        #expect(
            asked.json(nil)["introspection"] == [
                "url": "https://as/introspect", "client_id": "c", "client_secret": "s",
            ])
    }

    @Test func whatIsWrongIsThrownWhenServingStarts() async {
        for (auth, why) in [
            (ServerAuth.issuer("https://as"), "\"resource\""),
            (.issuer("as", resource: "https://h/mcp"), "\"issuer\""),
            (.verifier(authorizationServers: [], resource: "https://h/mcp") { _ in nil }, "\"authorizationServers\""),
        ] {
            let error = await failure { try Server("x", auth: auth).httpEndpoint() }
            #expect(error?.kind == "misuse" && error?.message.contains(why) == true, "\(String(describing: error))")
        }
    }

    @Test func secretsAreNotShown() {
        let auth = ServerAuth.introspection(
            "https://as/introspect?key=hidden-1", clientID: "c", clientSecret: "hidden-2", authorizationServers: [])
        var dumped = ""
        dump(auth, to: &dumped)
        #expect(!"\(auth) \(String(reflecting: auth)) \(dumped)".contains("hidden"))
        #expect("\(ServerAuth.issuer("https://as"))" == "ServerAuth(source: \"issuer https://as\", requiredScopes: [])")
    }

    @Test func aVerifierIsLetGo() async throws {
        final class Held: Sendable {}
        weak var verifier: Held?
        do {
            let held = Held()
            verifier = held
            let endpoint = try mounted { _ in
                _ = held
                return nil
            }
            #expect(try await endpoint.handle(request("t")).status == 401)
        }
        for _ in 0..<1000 where verifier != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(verifier == nil)
    }
}
