import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import Tricorn

/// The names and values of a query or a form.
func pairs(_ text: String) -> [String: String] {
    let items = URLComponents(string: "?" + text)?.percentEncodedQueryItems ?? []
    func decoded(_ text: String) -> String {
        text.replacingOccurrences(of: "+", with: " ").removingPercentEncoding ?? ""
    }
    return Dictionary(items.map { (decoded($0.name), decoded($0.value ?? "")) }) { $1 }
}

/// One request at a port of this machine, and its answer: as much of HTTP as the tests need.
struct Exchanged: Sendable {
    var method: String
    var path: String
    var query: String
    var headers: [String: String]
    var body: String

    struct Answer: Sendable {
        var status = 200
        var headers: [String: String] = [:]
        var body = ""

        static func json(_ value: JSONValue, status: Int = 200) -> Answer {
            Answer(status: status, headers: ["Content-Type": "application/json"], body: value.description)
        }
    }
}

/// A port of this machine that answers, each request on a thread of its own.
final class Port: Sendable {
    let origin: String
    private let listener: Int32

    init(_ answer: @escaping @Sendable (Exchanged) -> Exchanged.Answer) throws {
        #if os(Linux)
        let stream = Int32(SOCK_STREAM.rawValue)
        #else
        let stream = SOCK_STREAM
        #endif
        let listener = socket(AF_INET, stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port: UInt16 = try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(bind(listener, address, length) == 0 && listen(listener, 64) == 0)
                try #require(getsockname(listener, address, &length) == 0)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        self.listener = listener
        origin = "http://127.0.0.1:\(port)"
        Thread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    close(listener)
                    return
                }
                Thread { Self.serve(connection, answer) }.start()
            }
        }.start()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32, _ answer: (Exchanged) -> Exchanged.Answer) {
        defer { close(connection) }
        var text = [UInt8](), buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            if let request = parsed(text) {
                let answer = answer(request)
                var head = "HTTP/1.1 \(answer.status) Answer\r\nConnection: close\r\n"
                head += "Content-Length: \(answer.body.utf8.count)\r\n"
                for (name, value) in answer.headers { head += "\(name): \(value)\r\n" }
                let bytes = Array((head + "\r\n" + answer.body).utf8)
                _ = send(connection, bytes, bytes.count, 0)
                return
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            text += buffer[..<count]
        }
    }

    private static func parsed(_ bytes: [UInt8]) -> Exchanged? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        let first = lines[0].split(separator: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        }
        let body = String(text[end.upperBound...])
        guard body.utf8.count >= Int(headers["content-length"] ?? "0") ?? 0 else { return nil }
        let target = first[1].split(separator: "?", maxSplits: 1)
        return Exchanged(
            method: String(first[0]), path: String(target[0]), query: target.count > 1 ? String(target[1]) : "",
            headers: headers, body: body)
    }
}

/// An authorization server, whose users say yes at once. Codes and refresh tokens are good for one use.
final class Authority: Sendable {
    struct World: Sendable {
        var registered: [JSONValue] = []
        /// The queries with which users were sent here.
        var opened: [[String: String]] = []
        /// Forms that were posted to the token endpoint, with the `Authorization` header as `basic`.
        var forms: [[String: String]] = []
        /// The scopes of what has not been used yet.
        var codes: [String: String] = [:]
        var refresh: [String: String] = [:]
        /// The scopes of access tokens that are good.
        var tokens: [String: String] = [:]
        var issued = 0
        /// The answer of the token endpoint instead of a token, once.
        var refusal: (status: Int, error: String)?
        /// Runs before the token endpoint answers, and may block.
        var beforeToken: (@Sendable () -> Void)?
    }

    let world: Locked<World>
    private let port: Port

    var issuer: String { port.origin }

    init() throws {
        let world = Locked(World())
        let own = Locked("")
        self.world = world
        port = try Port { request in Authority.answer(request, own.with { $0 }, world) }
        own.with { $0 = port.origin }
    }

    private static func answer(
        _ request: Exchanged, _ issuer: String, _ world: Locked<World>
    ) -> Exchanged.Answer {
        switch request.path {
        case "/.well-known/oauth-authorization-server":
            return .json([
                "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                "token_endpoint": .string("\(issuer)/token"), "registration_endpoint": .string("\(issuer)/register"),
                "code_challenge_methods_supported": ["S256"],
                "grant_types_supported": [
                    "authorization_code", "refresh_token", "client_credentials",
                    "urn:ietf:params:oauth:grant-type:jwt-bearer",
                ],
                "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
                "authorization_response_iss_parameter_supported": true,
            ])
        case "/register":
            let asked = (try? JSONValue(parsing: request.body)) ?? .null
            let number = world.with {
                $0.registered.append(asked)
                return $0.registered.count
            }
            return .json(["client_id": .string("client-\(number)")], status: 201)
        case "/authorize":
            let asked = pairs(request.query)
            let code = world.with {
                $0.opened.append(asked)
                $0.codes["code-\($0.opened.count)"] = asked["scope"] ?? ""
                return "code-\($0.opened.count)"
            }
            var back = URLComponents(string: asked["redirect_uri"] ?? "")
            back?.queryItems = [
                URLQueryItem(name: "code", value: code), URLQueryItem(name: "state", value: asked["state"]),
                URLQueryItem(name: "iss", value: issuer),
            ]
            return Exchanged.Answer(status: 302, headers: ["Location": back?.string ?? ""])
        case "/token": return token(request, world)
        default: return Exchanged.Answer(status: 404)
        }
    }

    private static func token(_ request: Exchanged, _ world: Locked<World>) -> Exchanged.Answer {
        var form = pairs(request.body)
        form["basic"] = request.headers["authorization"]
        world.with { $0.beforeToken }?()
        return world.with { world in
            world.forms.append(form)
            if let (status, error) = world.refusal {
                world.refusal = nil
                return .json(["error": .string(error)], status: status)
            }
            let scope: String?
            switch form["grant_type"] {
            case "authorization_code": scope = world.codes.removeValue(forKey: form["code"] ?? "")
            case "refresh_token": scope = world.refresh.removeValue(forKey: form["refresh_token"] ?? "")
            case "urn:ietf:params:oauth:grant-type:token-exchange":
                return .json([
                    "access_token": "an-id-jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
                    "token_type": "N_A",
                ])
            default: scope = form["scope"] ?? "read"
            }
            guard let scope else { return .json(["error": "invalid_grant"], status: 400) }
            world.issued += 1
            let (token, refresh) = ("token-\(world.issued)", "refresh-\(world.issued)")
            world.tokens[token] = scope
            var answer: JSONValue = [
                "access_token": .string(token), "token_type": "Bearer", "expires_in": 3600, "scope": .string(scope),
            ]
            if form["grant_type"] == "authorization_code" || form["grant_type"] == "refresh_token" {
                world.refresh[refresh] = scope
                answer["refresh_token"] = .string(refresh)
            }
            return .json(answer)
        }
    }

    /// The principal of a token.
    func principal(_ token: String) -> Principal? {
        guard let scope = world.with({ $0.tokens[token] }) else { return nil }
        let scopes = scope.split(separator: " ").map(String.init)
        return Principal(
            subject: "ada", issuer: issuer, clientID: "client-1", scopes: scopes, claims: ["team": "blue"],
            expiresAt: Date.now + 3600)
    }

    /// No token is good any more.
    func revokeTokens() { world.with { $0.tokens = [:] } }

    /// As often as users were sent here.
    var opened: Int { world.with { $0.opened.count } }

    /// The grants of all requests for tokens.
    var grants: [String] {
        world.with { $0.forms.map { $0["grant_type"]?.split(separator: ":").last.map(String.init) ?? "" } }
    }
}

/// The error that `body` throws.
func failure<Value>(_ body: () async throws -> Value) async -> TricornError? {
    do {
        _ = try await body()
        Issue.record("no error")
        return nil
    } catch {
        return error as? TricornError
    }
}

/// Opens a page and follows it to its end.
@Sendable func browse(_ url: String) async throws {
    let page = try #require(URL(string: url))
    // In a task of its own: on Linux, one that is cancelled as it ends may hang.
    _ = try await Task { try await URLSession.shared.data(from: page) }.value
}

/// Logs in with a browser, and keeps the login for the test alone.
func login(_ store: ClientAuth.Store = .memory) -> ClientAuth {
    var auth = ClientAuth(store: store)
    auth.browser = browse
    return auth
}

/// A server that an authority protects.
func protected(_ authority: Authority, requiredScopes: [String] = ["read"]) -> Server {
    var auth = ServerAuth.verifier(authorizationServers: [authority.issuer], requiredScopes: requiredScopes) {
        authority.principal($0)
    }
    auth.scopeImplies = ["admin": ["read", "write"]]
    let app = Server("protected", auth: auth)
    app.tool("whoami") { (_: NoArguments, context) in
        let principal = context.principal
        return "\(principal?.subject ?? "nobody") \(principal?.claims["team"]?.stringValue ?? "")"
    }
    app.tool("write", scopes: ["write"]) { "written" }
    app.resource("notes://secret", scopes: ["write"]) { "secret" }
    app.resource("notes://{n}", scopes: ["write"]) { (variables: [String: String]) in variables["n"] ?? "" }
    app.prompt("secret", scopes: ["write"]) { "secret" }
    return app
}

/// Runs `body` with the URL of the server.
func listening(_ app: Server, _ body: (String) async throws -> Void) async throws {
    let listening = Event()
    let serving = Task { try await app.serveHTTP(port: 0) { url in Task { await listening.set(url) } } }
    try await body(try #require(await listening.value()))
    app.close()
    try await bounded { try await serving.value }
}

/// A store of the program's own, which tells what it was asked.
actor Shelf: TokenStore {
    private(set) var logins: [TokenKey: String] = [:]
    private(set) var told: [String] = []

    func load(_ key: TokenKey) -> String? { logins[key] }

    func find(server: String) -> [(issuer: String, login: String)] {
        told.append("find")
        return logins.filter { $0.key.server == server }.map { ($0.key.issuer, $0.value) }
    }

    func save(_ key: TokenKey, login: String) {
        told.append("save")
        logins[key] = login
    }

    func remove(_ key: TokenKey) { logins[key] = nil }

    func reserve(_ key: TokenKey, wait: Duration) { told.append("reserve") }

    func release(_ key: TokenKey) { told.append("release") }

    func forget() { told = [] }
}
