import Foundation
import Testing

@testable import Tricorn

/// Logging in: what is the library's own of it. What it does besides is the core's, and tested there.
@Suite(.serialized) struct ClientAuthTests {
    private func options(_ auth: ClientAuth, _ revision: String? = nil) -> ClientOptions {
        var options = ClientOptions(revision: revision)
        options.auth = auth
        return options
    }

    @Test(arguments: eras) func aUserLogsInAndStepsUp(revision: String) async throws {
        let authority = try Authority()
        try await listening(protected(authority)) { url in
            let auth = login()
            let client = try await connect(url, options(auth, revision))
            #expect(try await client.callTool("whoami").text == "ada blue")
            #expect(authority.world.with { $0.opened.map { $0["scope"] } } == ["read"])
            #expect(authority.world.with { $0.opened[0]["resource"] } == url)
            #expect(authority.world.with { $0.registered[0]["application_type"] } == "native")
            // Of what needs more, nothing is listed; what is used nevertheless asks for more.
            #expect(try await client.listTools().map(\.name) == ["whoami"])
            #expect(try await client.listResources().isEmpty)
            #expect(try await client.listResourceTemplates().isEmpty)
            #expect(try await client.listPrompts().isEmpty)
            #expect(try await client.callTool("write").text == "written")
            let scopes = authority.world.with { $0.opened.map { Set(($0["scope"] ?? "").split(separator: " ")) } }
            #expect(scopes == [["read"], ["read", "write"]])
            #expect(try await client.listTools().map(\.name) == ["whoami", "write"])
            #expect(try await client.readResource("notes://secret").text == "secret")
            #expect(try await client.readResource("notes://7").text == "7")
            #expect(try await client.getPrompt("secret").messages.first?.text == "secret")
            #expect(authority.opened == 2)

            let steps = client.authTrace
            #expect(steps.prefix(2).map(\.step) == ["challenge", "resource metadata"] && steps.last?.step == "token")
            #expect(steps.contains { $0.url == "\(authority.issuer)/token" && $0.status == 200 })
            #expect(auth.trace == steps)
            #expect(!"\(steps)".contains("token-1") && !"\(steps)".contains("code-1"))
            await client.close()
        }
    }

    @Test func aStoreOfOnesOwnSurvivesARestart() async throws {
        let authority = try Authority(), shelf = Shelf()
        try await listening(protected(authority)) { url in
            var client = try await connect(url, options(login(.custom(shelf))))
            await client.close()
            #expect(await shelf.told.first == "find")
            let key = TokenKey(issuer: authority.issuer, server: url)
            #expect(await shelf.logins[key]?.contains("refresh-1") == true)

            // As a new process would.
            await shelf.forget()
            client = try await connect(url, options(login(.custom(shelf))))
            #expect(await shelf.told == ["find"])
            authority.revokeTokens()
            // Many calls are one refresh.
            let called = client
            let texts = try await withThrowingTaskGroup(of: String.self) { calls in
                for _ in 1...20 { calls.addTask { try await called.callTool("whoami").text } }
                return try await calls.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(texts == ["ada blue"])
            #expect(authority.opened == 1)
            #expect(authority.grants == ["authorization_code", "refresh_token"])
            #expect(await shelf.logins[key]?.contains("refresh-2") == true)
            await client.close()
            #expect(await told(shelf, 4) == ["find", "reserve", "save", "release"])
        }
    }

    /// Requests that a store was sent, once there are so many.
    private func told(_ shelf: Shelf, _ count: Int) async -> [String] {
        for _ in 0..<1000 {
            let told = await shelf.told
            if told.count >= count { return told }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return await shelf.told
    }

    @Test func aDirectoryKeepsLogins() async throws {
        let authority = try Authority()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tricorn-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await listening(protected(authority)) { url in
            for _ in 1...2 {
                let client = try await connect(url, options(login(.directory(folder.path))))
                #expect(try await client.callTool("whoami").text == "ada blue")
                await client.close()
            }
            #expect(authority.opened == 1)
            #expect(try !FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
        }
    }

    @Test func theBrowserComesBackToTheProgram() async throws {
        let authority = try Authority()
        let (came, back) = AsyncStream.makeStream(of: String.self)
        let port = try Port { request in
            back.yield("\(request.path)?\(request.query)")
            return Exchanged.Answer(body: "Thank you.")
        }
        let uri = "\(port.origin)/back"
        for whole in [true, false] {
            try await listening(protected(authority)) { url in
                var auth = login()
                auth.redirectURI = uri
                auth.callback = { redirectURI in
                    expect(redirectURI, uri)
                    for await url in came {
                        return whole ? "\(port.origin)\(url)" : String(url.split(separator: "?")[1])
                    }
                    throw CancellationError()
                }
                let client = try await connect(url, options(auth))
                #expect(try await client.callTool("whoami").text == "ada blue")
                await client.close()
            }
        }
        #expect(authority.world.with { $0.opened.map { $0["redirect_uri"] } } == [uri, uri])
    }

    @Test func tokensOfTheProgramsOwn() async throws {
        let authority = try Authority()
        authority.world.with { $0.tokens = ["mine": "read", "second": "read"] }
        try await listening(protected(authority)) { url in
            var client = try await connect(url, options(.bearer("mine")))
            #expect(try await client.callTool("whoami").text == "ada blue")
            await client.close()
            // A function is asked again when the server refuses one.
            let given = Locked(["second", "first"]), wanted = Locked([ClientAuth.Wanted]())
            client = try await connect(
                url,
                options(
                    .bearer { asked in
                        wanted.with { $0.append(asked) }
                        return given.with { $0.removeLast() }
                    }))
            #expect(try await client.callTool("whoami").text == "ada blue")
            #expect(wanted.with { $0.map(\.resource) } == [url, url] && wanted.with { $0[0].issuer } == "")
            await client.close()
        }
    }

    @Test func programsAndWorkloadsAreLetIn() async throws {
        let authority = try Authority()
        try await listening(protected(authority)) { url in
            let asked = Locked([ClientAuth.Wanted]())
            let workload = ClientAuth.workload("w") { wanted in
                asked.with { $0.append(wanted) }
                return "a-jwt"
            }
            let identity = ClientAuth.Identity(
                tokenEndpoint: "\(authority.issuer)/token", clientID: "idp", token: "an-id-token")
            let ways: [ClientAuth] = [
                .clientCredentials("c", "s"), workload, .identityAssertion(identity, clientID: "c", clientSecret: "s"),
            ]
            for var auth in ways {
                auth.store = .memory
                let client = try await connect(url, options(auth))
                #expect(try await client.callTool("whoami").text == "ada blue")
                await client.close()
            }
            #expect(authority.grants == ["client_credentials", "jwt-bearer", "token-exchange", "jwt-bearer"])
            let forms = authority.world.with { $0.forms }
            #expect(forms[0]["basic"] == "Basic \(Data("c:s".utf8).base64EncodedString())")
            #expect(forms[1]["assertion"] == "a-jwt" && forms[3]["assertion"] == "an-id-jag")
            #expect(forms[2]["subject_token"] == "an-id-token")
            #expect(asked.with { $0 }.map(\.issuer) == [authority.issuer])
            #expect(asked.with { $0 }.map(\.resource) == [url])
        }
    }

    @Test func whatAFunctionThrowsIsToldAndTraced() async throws {
        struct NoBrowser: Error {}
        let authority = try Authority()
        try await listening(protected(authority)) { url in
            var auth = login()
            auth.browser = { _ in throw NoBrowser() }
            #expect(auth.trace.isEmpty)
            let error = await failure { try await connect(url, options(auth)) }
            #expect(
                error?.kind == "auth" && error?.message.contains("NoBrowser") == true, "\(String(describing: error))")
            // Also of a client that there never was.
            #expect(auth.trace.prefix(2).map(\.step) == ["challenge", "resource metadata"])
            #expect(auth.trace.contains { $0.decision.contains("NoBrowser") }, "\(auth.trace)")
            #expect("\(auth.trace[1])".contains("/.well-known/oauth-protected-resource/mcp → 200: "))

            for (thrown, kind) in [
                (TricornError.timeout("late"), "timeout"), (.transport("down"), "transport"), (.auth("no"), "auth"),
            ] {
                let bearer = ClientAuth.bearer { _ in throw thrown }
                let error = await failure { try await connect(url, options(bearer)) }
                #expect(error?.kind.rawValue == kind, "\(String(describing: error))")
            }
        }
    }

    @Test func whatAFunctionThrowsIsForTheOperatorToRead() async throws {
        struct Leak: Error { var text = "hidden-1" }
        let away = NSError(
            domain: "NSURLErrorDomain", code: -1004, userInfo: [NSLocalizedDescriptionKey: "https://as/?key=hidden-2"])
        let misuse = TricornError.misuse("hidden-no-more")
        let authority = try Authority()
        try await listening(protected(authority)) { url in
            let cases: [(any Error, String, String?)] = [
                (Leak(), "auth", "auth: token failed: Leak: Leak(text: \"hidden-1\")"),
                (away, "transport", "NSURLErrorDomain"),
                (misuse, "misuse", "hidden-no-more"), (TricornError.auth("no"), "auth", nil),
            ]
            for (thrown, kind, said) in cases {
                let heard = Locked([String]()), auth = ClientAuth.bearer { _ in throw thrown }
                var options = options(auth)
                options.onWarning = { line in heard.with { $0.append(line) } }
                let error = try #require(await failure { try await connect(url, options) })
                #expect(error.kind.rawValue == kind && !"\(error) \(auth.trace)".contains("hidden-1"), "\(error)")
                #expect(!"\(error) \(auth.trace)".contains("hidden-2"), "\(error)")
                let lines = heard.with { $0 }
                if let said { #expect(lines.contains { $0.contains(said) }, "\(lines)") } else { #expect(lines == []) }
            }
        }
    }

    @Test func aLoginThatNobodyWaitsForIsCancelled() async throws {
        let authority = try Authority(), begun = Event(), cancelled = Event()
        try await listening(protected(authority)) { url in
            var auth = login()
            auth.browser = { _ in
                await begun.set()
                await withTaskCancellationHandler {
                    _ = await Event().value(within: .seconds(60))
                } onCancel: {
                    Task { await cancelled.set("yes") }
                }
            }
            auth.loginTimeout = .milliseconds(200)
            let error = await failure { try await connect(url, options(auth)) }
            // Whoever notices first says how long it was in its own way.
            #expect(error?.message.contains(" within ") == true, "\(String(describing: error))")
            #expect(await cancelled.value() == "yes")
        }
    }

    @Test func aGroupLogsInAtEachServer() async throws {
        let (one, other) = (try Authority(), try Authority())
        try await listening(protected(one)) { first in
            try await listening(protected(other)) { second in
                let auth = login()
                let group = try await connectMany(
                    ["one": .url(first), "other": .url(second)], GroupOptions(client: options(auth)))
                #expect(group.failures.isEmpty, "\(group.failures)")
                #expect(try await group.callTool("one_whoami").text == "ada blue")
                #expect(one.opened == 1 && other.opened == 1)
                #expect(auth.trace.filter { $0.step == "token" }.count == 2)
                #expect(group.client("one")?.authTrace == auth.trace)
                // Who joins later logs in the same way.
                let later = try await group.add("later", .url(first))
                #expect(try await later.callTool("whoami").text == "ada blue")
                #expect(one.opened == 1)
                await group.close()
            }
        }
    }

    @Test func functionsAreLetGo() async throws {
        final class Held: Sendable {}
        let authority = try Authority()
        try await listening(protected(authority)) { url in
            weak var browser: Held?
            weak var shelf: Shelf?
            do {
                let held = Held(), own = Shelf()
                (browser, shelf) = (held, own)
                var auth = login(.custom(own))
                auth.browser = { url in
                    _ = held
                    try await browse(url)
                }
                let client = try await connect(url, options(auth))
                await client.close()
            }
            for _ in 0..<1000 where browser != nil || shelf != nil { try await Task.sleep(for: .milliseconds(10)) }
            #expect(browser == nil && shelf == nil)
        }
    }

    @Test func whatIsReservedIsReleased() async throws {
        struct Full: Error {}
        struct Closed: TokenStore {
            let shelf: Shelf
            func load(_ key: TokenKey) async -> String? { nil }
            func find(server: String) async -> [(issuer: String, login: String)] { [] }
            func save(_ key: TokenKey, login: String) async throws { throw Full() }
            func remove(_ key: TokenKey) async {}
            func reserve(_ key: TokenKey, wait: Duration) async throws { throw Full() }
            func release(_ key: TokenKey) async throws { try await (shelf as any TokenStore).release(key) }
        }
        let key: JSONValue = ["issuer": "i", "server": "s", "wait": 60]
        func asked(_ op: String) -> JSONValue {
            var asked = key
            asked["op"] = .string(op)
            return asked
        }
        let shelf = Shelf(), free = Locked(0)
        let keeper = StoreKeeper(shelf, of: AuthTrace())
        _ = try await keeper.perform(asked("reserve"))
        keeper.whenFree { free.with { $0 += 1 } }
        #expect(free.with { $0 } == 0)
        _ = try await keeper.perform(asked("release"))
        #expect(free.with { $0 } == 1)
        #expect(await shelf.told == ["reserve", "release"])
        // One that was over before it began.
        _ = try await keeper.perform(asked("release"))
        await #expect(throws: CancellationError.self) { _ = try await keeper.perform(asked("reserve")) }
        #expect(await shelf.told == ["reserve", "release"])

        // What could not be reserved needs no release.
        let unwilling = StoreKeeper(Closed(shelf: shelf), of: AuthTrace())
        await #expect(throws: Full.self) { _ = try await unwilling.perform(asked("reserve")) }
        _ = try await unwilling.perform(asked("release"))
        #expect(await shelf.told.count == 2)
        unwilling.whenFree { free.with { $0 += 1 } }
        #expect(free.with { $0 } == 2)
        await #expect(throws: TricornError.self) { _ = try await keeper.perform(asked("burn")) }
    }

    @Test func everyOptionCrosses() throws {
        var auth = ClientAuth(
            clientID: "id", clientSecret: "secret", issuer: "https://as", clientMetadataURL: "https://c/d",
            scopes: ["a"], store: .directory("/srv/logins"))
        auth.grant = .idJAG
        auth.privateKey = "PEM"
        auth.signingAlgorithm = "EdDSA"
        auth.keyID = "kid"
        auth.clientName = "name"
        auth.clientURI = "https://c"
        auth.applicationType = .web
        auth.user = "ada"
        auth.dpop = false
        auth.identity = .init(
            tokenEndpoint: "https://idp/t", clientID: "i", clientSecret: "is", token: "it", tokenType: "itt")
        auth.assertion = "assertion"
        auth.token = "token"
        auth.loginTimeout = .milliseconds(1500)
        auth.noBrowser = true
        auth.redirectPort = 7777
        auth.redirectURI = "https://c/back"
        #expect(
            auth.text.json == [
                "grant": "id_jag", "client_id": "id", "client_secret": "secret", "private_key": "PEM",
                "signing_algorithm": "EdDSA", "key_id": "kid", "issuer": "https://as",
                "client_metadata_url": "https://c/d", "client_name": "name", "client_uri": "https://c",
                "application_type": "web", "user": "ada", "scopes": ["a"], "dpop": false,
                "identity": [
                    "token_endpoint": "https://idp/t", "client_id": "i", "client_secret": "is", "token": "it",
                    "token_type": "itt",
                ],
                "assertion": "assertion", "token": "token", "login_timeout": 1.5, "no_browser": true,
                "redirect_port": 7777, "redirect_uri": "https://c/back", "store": ["directory": "/srv/logins"],
            ])
        #expect(ClientAuth().text.json == [:])
        let stores: [(ClientAuth.Store, JSONValue)] = [(.file, "file"), (.memory, "memory"), (.keychain, "keychain")]
        for (store, name) in stores { #expect(ClientAuth(store: store).text.json == ["store": name]) }
        let key = ClientAuth.privateKeyJWT("id", "PEM").text.json
        #expect(key["grant"] == "client_credentials" && key["signing_algorithm"] == "ES256")
    }

    @Test func whatIsWrongIsNamed() async {
        var noCallback = ClientAuth(store: .memory)
        noCallback.redirectURI = "http://127.0.0.1:1/back"
        let wrong: [(ClientAuth, String)] = [
            (ClientAuth(clientSecret: "s"), "clientID"), (noCallback, "go together"),
            (ClientAuth(clientMetadataURL: "x"), "clientMetadataURL"), (.bearer("a b"), "token"),
        ]
        for (auth, why) in wrong {
            let error = await failure {
                try await connect("http://127.0.0.1:1/mcp", options(auth))
            }
            #expect(error?.kind == "misuse" && error?.message.contains(why) == true, "\(String(describing: error))")
        }
        // Tokens are not sent in the clear.
        let clear = await failure {
            try await connect("http://mcp.example.com/mcp", options(.bearer("t")))
        }
        #expect(clear?.kind == "misuse" && clear?.message.contains("not https") == true)
    }

    @Test func secretsAreNotShown() async throws {
        var auth = ClientAuth(clientID: "the-id", clientSecret: "hidden-1", store: .custom(Shelf()))
        auth.privateKey = "hidden-2"
        auth.token = "hidden-3"
        auth.assertion = "hidden-4"
        auth.identity = .init(
            tokenEndpoint: "https://idp?key=hidden-9", clientID: "i", clientSecret: "hidden-5", token: "hidden-6")
        var dumped = ""
        dump(auth, to: &dumped)
        dump(options(auth), to: &dumped)
        // What has it does not show it either.
        let app = Server(
            "test",
            auth: .introspection(
                "https://as/check", clientID: "i", clientSecret: "hidden-7", authorizationServers: ["https://as"],
                resource: "https://mcp"))
        let client = try await connect(to: app, options(.clientCredentials("the-id", "hidden-8")))
        dump(client, to: &dumped)
        dump(app, to: &dumped)
        await client.close()
        let shown = "\(auth) \(String(reflecting: auth)) \(options(auth)) \(auth.token!) \(auth.identity!) \(dumped)"
        #expect(!shown.contains("hidden"), "\(shown)")
        #expect("\(auth)".hasPrefix("ClientAuth(clientID: \"the-id\", scopes: []"), "\(auth)")
    }
}
