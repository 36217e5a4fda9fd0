import Foundation
import Testing
import TricornURLSession

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import Tricorn

/// Counts what another transport carries: the requests, the bodies that somebody may still read, and its own end.
private final class Recorder: HTTPTransport {
    final class Counts: Sendable {
        let requests = Locked([HTTPTransportRequest]())
        let open = Locked(0)
        let isGone = Locked(false)

        /// Nothing is carried any more, and the transport is let go.
        func isQuiet() async -> Bool { await eventually { self.open.with { $0 } == 0 && self.isGone.with { $0 } } }
    }

    private final class Open: Sendable {
        let counts: Counts

        init(_ counts: Counts) {
            self.counts = counts
            counts.open.with { $0 += 1 }
        }

        deinit { counts.open.with { $0 -= 1 } }
    }

    private let inner: any HTTPTransport
    private let counts: Counts

    init(_ inner: any HTTPTransport, _ counts: Counts) {
        self.inner = inner
        self.counts = counts
    }

    deinit { counts.isGone.with { $0 = true } }

    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
        counts.requests.with { $0.append(request) }
        let open = Open(counts)
        var response = try await inner.send(request)
        let body = response.body
        response.body = AsyncThrowingStream(unfolding: {
            _ = open
            var pieces = body.makeAsyncIterator()
            return try await pieces.next()
        })
        return response
    }
}

/// Carries HTTP to a server of this process. Bodies come in pieces of three bytes, which cut characters and events.
private struct Mounted: HTTPTransport {
    let endpoint: HTTPEndpoint

    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
        let response = try await endpoint.handle(
            HTTPRequest(
                method: request.method, target: request.url.path,
                headers: request.headers + [(name: "host", value: "localhost")], body: Array(request.body ?? Data())))
        let body = response.body, waiting = Locked([UInt8]())
        @Sendable func taken() -> Data? {
            waiting.with { bytes in
                guard !bytes.isEmpty else { return nil }
                defer { bytes.removeFirst(min(3, bytes.count)) }
                return Data(bytes.prefix(3))
            }
        }
        return HTTPTransportResponse(
            status: response.status, headers: response.headers,
            body: AsyncThrowingStream(unfolding: {
                if let piece = taken() { return piece }
                var parts = body.makeAsyncIterator()
                while let part = try await parts.next() {
                    waiting.with { $0 += part.utf8 }
                    if let piece = taken() { return piece }
                }
                return nil
            }))
    }
}

/// A server that is made up, of revision 2025-11-25: `call` answers the calls of tools.
private struct MadeUp: HTTPTransport {
    let call: @Sendable (_ id: JSONValue) async throws -> HTTPTransportResponse

    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
        guard request.method == "POST", let body = request.body else { return HTTPTransportResponse(status: 405) }
        let asked = try JSONValue(parsing: String(decoding: body, as: UTF8.self))
        let id = asked["id"] ?? .null
        switch asked["method"]?.stringValue {
        case "initialize":
            return Self.answer(
                id,
                [
                    "protocolVersion": "2025-11-25", "capabilities": ["tools": [:]],
                    "serverInfo": ["name": "made up", "version": "1"],
                ])
        case "tools/call": return try await call(id)
        default: return HTTPTransportResponse(status: 202)
        }
    }

    static func answer(_ id: JSONValue, _ result: JSONValue) -> HTTPTransportResponse {
        HTTPTransportResponse(
            status: 200, headers: [(name: "Content-Type", value: "application/json")],
            body: Data(message(id, result).description.utf8))
    }

    static func message(_ id: JSONValue, _ result: JSONValue) -> JSONValue {
        ["jsonrpc": "2.0", "id": id, "result": result]
    }

    static func text(_ text: String) -> JSONValue { ["content": [["type": "text", "text": .string(text)]]] }
}

/// Texts in UTF-8, and bytes that are none.
private let texts: [[UInt8]] = [
    Array("aé€🦀\u{FFFD}z".utf8), [0xE0, 0x80, 0x41], [0xF0, 0x9F, 0x41, 0xFF, 0xC3], [0xED, 0xA0, 0x80, 0xF4, 0x90],
    [0x80, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0xA6], [0xC0, 0xAF, 0xE2, 0x82], [],
]

private struct Cut: Error, CustomStringConvertible {
    var description: String { "the line is cut" }
}

private func connected(
    _ transport: any HTTPTransport, _ revision: String = "2025-11-25",
    _ change: (inout ClientOptions) -> Void = { _ in }
) async throws -> Client {
    var options = ClientOptions(revision: revision)
    options.httpTransport = transport
    change(&options)
    return try await bounded { [options] in try await connect("http://localhost/mcp", options) }
}

/// A server whose tool `wait` says when it has begun and how it ended.
private func server(_ started: Event = Event(), _ ended: Event = Event()) -> Server {
    let app = Server("test", onError: { _, _ in })
    app.tool("add") { (input: Add) in input.a + input.b }
    app.tool("greet") { "grüße 🦀 €" }
    app.tool("wait") { () async throws -> String in
        await started.set()
        do {
            try await Task.sleep(for: .seconds(60))
        } catch {
            await ended.set("cancelled")
            throw error
        }
        return "waited"
    }
    return app
}

/// The HTTP of clients over transports of the program's own.
@Suite(.timeLimit(.minutes(1))) struct HTTPTransportTests {
    // MARK: - without a network

    @Test func aServerCanBeMadeUp() async throws {
        let counts = Recorder.Counts()
        let transport = Recorder(MadeUp { MadeUp.answer($0, MadeUp.text("made up")) }, counts)
        let client = try await connected(transport) { $0.headers = ["X-User": "ada"] }
        #expect(client.transport == .http && client.serverInfo?.name == "made up")
        #expect(try await bounded { try await client.callTool("any").text } == "made up")
        await client.close()
        let requests = counts.requests.with { $0 }
        #expect(requests.filter { $0.method == "POST" }.count >= 3)
        for request in requests {
            #expect(request.url.absoluteString == "http://localhost/mcp")
            let names = Set(request.headers.map(\.name))
            #expect(names.contains("x-user") && !names.contains("host") && !names.contains("content-length"))
            var dumped = ""
            dump(request, to: &dumped)
            #expect(!"\(request) \(String(reflecting: request)) \(dumped)".contains("ada"))
            #expect((request.body != nil) == (request.method == "POST"))
        }
    }

    @Test(arguments: eras) func aServerOfThisProcessCanBeMounted(revision: String) async throws {
        let app = server(), counts = Recorder.Counts()
        do {
            let client = try await connected(Recorder(Mounted(endpoint: try app.httpEndpoint()), counts), revision)
            #expect(client.protocolVersion.rawValue == revision)
            let answers = try await bounded {
                [try await client.callTool("add", Add(a: 1, b: 2)).text, try await client.callTool("greet").text]
            }
            #expect(answers == ["3", "grüße 🦀 €"])
            await client.close()
        }
        app.close()
        #expect(await counts.isQuiet())
    }

    @Test func anEventMayCutItsCharacters() async throws {
        let client = try await connected(
            MadeUp { id in
                let event = "event: message\ndata: \(MadeUp.message(id, MadeUp.text("grüße 🦀 €")))\n\n"
                let body = AsyncThrowingStream<Data, any Error> { pieces in
                    for byte in event.utf8 { pieces.yield(Data([byte])) }
                    pieces.finish()
                }
                let headers = [(name: "content-type", value: "text/event-stream")]
                return HTTPTransportResponse(status: 200, headers: headers, body: body)
            })
        #expect(try await bounded { try await client.callTool("any").text } == "grüße 🦀 €")
        await client.close()
    }

    @Test(arguments: texts) func aTextIsTheSameHoweverItIsCut(bytes: [UInt8]) {
        let whole = String(decoding: bytes, as: UTF8.self)
        for at in 0...bytes.count {
            var pieces = TextPieces()
            expect(pieces.append(bytes[..<at]) + pieces.append(bytes[at...]) + pieces.finish(), whole)
        }
        var pieces = TextPieces()
        expect(bytes.map { pieces.append([$0]) }.joined() + pieces.finish(), whole)
    }

    @Test func notificationsComeOverItsStreams() async throws {
        let app = server(), counts = Recorder.Counts()
        do {
            let client = try await connected(Recorder(Mounted(endpoint: try app.httpEndpoint()), counts))
            let heard = Locked([String]()), notifications = client.notifications()
            let loop = Task { for await told in notifications { heard.with { $0.append(told.method) } } }
            #expect(
                await eventually {
                    app.notifyListChanged(.tool)
                    return heard.with { $0.first } == "notifications/tools/list_changed"
                })
            #expect(counts.requests.with { $0.contains { $0.method == "GET" } })
            await client.close()
            await loop.value
        }
        app.close()
        #expect(await counts.isQuiet())
    }

    // MARK: - giving up

    @Test func aCallThatIsCancelledCancelsItsRequest() async throws {
        let asked = Event(), ended = Event()
        let client = try await connected(
            MadeUp { id in
                await asked.set()
                do {
                    try await Task.sleep(for: .seconds(60))
                } catch {
                    await ended.set("\(type(of: error))")
                    throw error
                }
                return MadeUp.answer(id, MadeUp.text("late"))
            })
        let call = Task { try await client.callTool("any") }
        #expect(await asked.value() != nil)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await bounded { try await call.value } }
        #expect(await ended.value() == "CancellationError")
        await client.close()
    }

    @Test func aCallThatIsCancelledLetsItsBodyGo() async throws {
        let asked = Event(), ended = Event()
        let client = try await connected(
            MadeUp { _ in
                let (body, pieces) = AsyncThrowingStream.makeStream(of: Data.self)
                pieces.onTermination = { _ in Task { await ended.set("let go") } }
                pieces.yield(Data(": nothing yet\n\n".utf8))
                await asked.set()
                let headers = [(name: "content-type", value: "text/event-stream")]
                return HTTPTransportResponse(status: 200, headers: headers, body: body)
            })
        let call = Task { try await client.callTool("any") }
        #expect(await asked.value() != nil)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await bounded { try await call.value } }
        #expect(await ended.value() == "let go")
        await client.close()
    }

    @Test func aRequestWithoutAResponseHasALimit() async throws {
        let ended = Event()
        let transport = MadeUp { id in
            do {
                try await Task.sleep(for: .seconds(60))
            } catch {
                await ended.set("\(type(of: error))")
                throw error
            }
            return MadeUp.answer(id, MadeUp.text("late"))
        }
        let client = try await connected(transport) { $0.requestTimeout = .seconds(1) }
        let error = await failure { try await bounded { try await client.callTool("any") } }
        #expect(error?.kind == .timeout, "\(String(describing: error))")
        #expect(await ended.value() == "CancellationError")
        await client.close()
    }

    @Test(arguments: eras) func manyThatAreGivenUpLeaveNothing(revision: String) async throws {
        let app = server(), counts = Recorder.Counts()
        do {
            let client = try await connected(Recorder(Mounted(endpoint: try app.httpEndpoint()), counts), revision)
            try await bounded {
                await withTaskGroup(of: Void.self) { group in
                    for worker in 0..<8 {
                        group.addTask {
                            for round in 0..<10 {
                                let call = Task { try await client.callTool("greet").text }
                                if (worker + round) % 2 == 0 { call.cancel() }
                                _ = try? await call.value
                            }
                        }
                    }
                }
            }
            #expect(try await bounded { try await client.callTool("greet").text } == "grüße 🦀 €")
            #expect(await eventually { client.metrics["awaited"] == 0 })
            await client.close()
        }
        app.close()
        #expect(await counts.isQuiet())
    }

    // MARK: - errors

    @Test func whatItThrowsReachesTheCaller() async throws {
        let client = try await connected(MadeUp { _ in throw Cut() })
        let error = await failure { try await bounded { try await client.callTool("any") } }
        #expect(error?.kind == .transport && error?.message.contains("the line is cut") == true)
        await client.close()
        // Of whatever kind, and also of connecting.
        for thrown in [Cut(), TricornError.auth("the line is cut"), ToolError("the line is cut")] as [any Error] {
            struct Broken: HTTPTransport {
                let error: any Error
                func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse { throw error }
            }
            let error = await failure { try await connected(Broken(error: thrown)) }
            #expect(error?.kind == .transport, "\(String(describing: error))")
            #expect(error?.message.contains("the line is cut") == true, "\(String(describing: error))")
        }
    }

    @Test func whatABodyThrowsReachesTheCaller() async throws {
        let client = try await connected(
            MadeUp { _ in
                let body = AsyncThrowingStream<Data, any Error> { pieces in
                    pieces.yield(Data(#"{"jsonrpc""#.utf8))
                    pieces.finish(throwing: Cut())
                }
                let headers = [(name: "content-type", value: "application/json")]
                return HTTPTransportResponse(status: 200, headers: headers, body: body)
            })
        let error = await failure { try await bounded { try await client.callTool("any") } }
        #expect(error?.kind == .transport && error?.message.contains("the line is cut") == true)
        await client.close()
    }

    @Test func optionsOfConnectionsAreRefusedBesideIt() async throws {
        let transport = MadeUp { MadeUp.answer($0, MadeUp.text("made up")) }
        let error = await failure { try await connected(transport) { $0.proxy = "http://127.0.0.1:1" } }
        #expect(error?.kind == .misuse && error?.message.contains(#""proxy""#) == true)
    }
}

/// The HTTP of clients over sessions of Foundation.
@Suite(.timeLimit(.minutes(1))) struct URLSessionTransportTests {
    private var session: URLSession { URLSession(configuration: .ephemeral) }

    private func response(_ address: String) async throws -> (status: Int, headers: [String: String], body: String) {
        let url = try #require(URL(string: address)), transport = URLSessionTransport(session: session)
        return try await bounded {
            let response = try await transport.send(HTTPTransportRequest(method: "GET", url: url))
            var body = Data()
            for try await piece in response.body { body.append(piece) }
            let headers = Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { $1 }
            return (status: response.status, headers: headers, body: String(decoding: body, as: UTF8.self))
        }
    }

    @Test(arguments: eras) func callsGoOverASession(revision: String) async throws {
        let started = Event(), ended = Event(), counts = Recorder.Counts()
        try await listening(server(started, ended)) { url in
            var options = ClientOptions(revision: revision)
            options.httpTransport = .urlSession(session)
            let own = try await connect(url, options)
            expect(try await own.callTool("add", Add(a: 1, b: 2)).text, "3")
            await own.close()
            options.httpTransport = Recorder(URLSessionTransport(session: session), counts)
            let client = try await connect(url, options)
            options.httpTransport = nil
            expect(try await client.callTool("greet").text, "grüße 🦀 €")
            let call = Task { try await client.callTool("wait") }
            #expect(await started.value() != nil)
            call.cancel()
            await #expect(throws: CancellationError.self) { try await bounded { try await call.value } }
            #expect(await ended.value() == "cancelled")
            expect(try await client.callTool("greet").text, "grüße 🦀 €")
            await client.close()
        }
        #expect(await counts.isQuiet())
    }

    @Test func anotherHostThanTheURLsIsRefused() async throws {
        var options = ClientOptions(revision: "2025-11-25")
        options.httpTransport = .urlSession(session)
        options.headers = ["Host": "mcp.internal"]
        do {
            _ = try await connect("http://127.0.0.1:9/mcp", options)
            Issue.record("connected")
        } catch {
            #expect("\(error)".contains("mcp.internal"))
        }
    }

    @Test func notificationsComeOverASession() async throws {
        let app = server(), heard = Locked([String]())
        try await listening(app) { url in
            var options = ClientOptions(revision: "2025-11-25")
            options.httpTransport = .urlSession(session)
            let client = try await connect(url, options)
            let notifications = client.notifications()
            let loop = Task { for await told in notifications { heard.with { $0.append(told.method) } } }
            #expect(
                await eventually {
                    app.notifyListChanged(.tool)
                    return heard.with { $0.first } == "notifications/tools/list_changed"
                })
            await client.close()
            await loop.value
        }
    }

    @Test func loginsGoOverIt() async throws {
        let authority = try Authority(), counts = Recorder.Counts()
        try await listening(protected(authority)) { url in
            var options = ClientOptions()
            options.auth = login()
            options.httpTransport = Recorder(URLSessionTransport(session: session), counts)
            let client = try await connect(url, options)
            expect(try await client.callTool("whoami").text, "ada blue")
            await client.close()
        }
        let paths = counts.requests.with { $0.map(\.url.path) }
        #expect(paths.contains("/register") && paths.contains("/token"), "\(paths)")
    }

    @Test func groupsShareIt() async throws {
        let counts = Recorder.Counts()
        try await listening(server()) { one in
            try await listening(server()) { two in
                var options = ClientOptions()
                options.httpTransport = Recorder(URLSessionTransport(session: session), counts)
                let group = try await connectMany(
                    ["one": .url(one), "two": .url(two)], GroupOptions(client: options))
                #expect(group.failures.isEmpty)
                for name in ["one", "two"] {
                    let client = try #require(group.client(name))
                    expect(try await client.callTool("greet").text, "grüße 🦀 €")
                }
                await group.close()
            }
        }
        #expect(await counts.isQuiet())
        #expect(Set(counts.requests.with { $0.map(\.url.port) }).count == 2)
    }

    @Test func responsesComeAsTheyAre() async throws {
        let asked = Locked([String]())
        let port = try Port { request in
            asked.with { $0.append(request.path) }
            switch request.path {
            case "/moved": return .init(status: 307, headers: ["Location": "/elsewhere"], body: "moved")
            case "/lost": return .init(status: 302, body: "")
            case "/login":
                return .init(status: 401, headers: ["WWW-Authenticate": #"Basic realm="here""#], body: "who?")
            case "/long": return .init(body: String(repeating: "ä", count: 2 << 20))
            default: return .init(status: 204)
            }
        }
        let moved = try await response("\(port.origin)/moved")
        #expect(moved.status == 307 && moved.headers["location"] == "/elsewhere" && moved.body == "moved")
        #expect(try await response("\(port.origin)/lost").status == 302)
        let login = try await response("\(port.origin)/login")
        #expect(login.status == 401 && login.headers["www-authenticate"]?.hasPrefix("Basic") == true)
        #expect(login.body == "who?")
        let long = try await response("\(port.origin)/long")
        #expect(long.status == 200 && long.body.utf8.count == 4 << 20)
        #expect(asked.with { $0 } == ["/moved", "/lost", "/login", "/long"])
    }

    @Test func failuresHaveTheirCode() async throws {
        var options = ClientOptions(revision: "2025-11-25")
        options.httpTransport = .urlSession(session)
        let error = await failure { [options] in
            try await bounded { try await connect("http://127.0.0.1:1/mcp", options) }
        }
        #expect(error?.kind == .transport, "\(String(describing: error))")
        #expect(error?.message.contains("(URLError -") == true, "\(String(describing: error))")
    }
}
