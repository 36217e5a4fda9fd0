#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// A client's HTTP transport, in the table of handlers for as long as it is needed.
final class TransportFunctions: Sendable {
    /// The core's option `http_transport`.
    let json: JSONValue
    private let number: UInt32
    private let exchanges: HTTPExchanges

    init(_ transport: any HTTPTransport) {
        exchanges = HTTPExchanges(transport)
        number = Host.shared.add(exchanges)
        json = ["handler": .int(Int(number))]
    }

    deinit {
        // Exchanges end after their client: a refresh, whose token is used up by being used, and the end of a stream.
        exchanges.whenFree { [number] in Host.shared.removeHandlers([number]) }
    }
}

extension Host {
    /// Adds what the core asks of an HTTP transport. Its errors reach the caller, and nobody else.
    fileprivate func add(_ exchanges: HTTPExchanges) -> UInt32 {
        let subject = Subject(name: "http", text: "the HTTP transport", report: { _, _, _ in })
        return add { key, params, _, host in
            let call = Call(key: key, side: .client, subject: subject, around: nil, host: host)
            do {
                let asked = JSONValue(try JSONText(params), 0)
                call.answer(with: try .of(result: await exchanges.perform(asked, call)))
            } catch {
                call.answer(with: .error(.ofTransport(error)))
            }
        }
    }
}

extension TricornError {
    /// The error that says what an HTTP transport has thrown.
    static func ofTransport(_ error: any Error) -> TricornError {
        switch error {
        case let error as TricornError: .transport(error.message)
        case is CancellationError: .transport("the request was cancelled")
        case let error as any LocalizedError: .transport(error.errorDescription ?? "\(error)")
        default: .transport("\(error)")
        }
    }
}

/// Carries out what the core wants of an HTTP transport. An exchange is known from the head of its response until its end, an
/// error or `close`, by the number that the core gave it; its pieces are asked for one after the other.
private final class HTTPExchanges: Sendable {
    private struct Response: Sendable {
        let body: AsyncThrowingStream<Data, any Error>
        var text = TextPieces()
    }

    private struct State {
        /// Requests whose responses are waited for.
        var requests = 0
        var responses: [Int: Response] = [:]
        var whenFree: (@Sendable () -> Void)?

        var isFree: Bool { requests == 0 && responses.isEmpty }
    }

    private let transport: any HTTPTransport
    private let state = Locked(State())

    init(_ transport: any HTTPTransport) { self.transport = transport }

    /// Runs `body` once nothing is under way any more.
    func whenFree(_ body: @escaping @Sendable () -> Void) {
        let isFree = state.with { state in
            state.whenFree = body
            return state.isFree
        }
        if isFree { body() }
    }

    func perform(_ asked: JSONValue, _ call: Call) async throws -> JSONValue {
        let number = asked["exchange"]?.intValue ?? 0
        switch asked["op"]?.stringValue {
        case "request": return try await request(number, asked, call)
        case "read": return try await read(number)
        case "close":
            forget(number)
            return [:]
        default: throw TricornError.misuse("an HTTP transport can not \(asked["op"] ?? .null)")
        }
    }

    private func request(_ number: Int, _ asked: JSONValue, _ call: Call) async throws -> JSONValue {
        try Task.checkCancellation()
        let text = asked["url"]?.stringValue ?? ""
        guard let url = URL(string: text) else { throw TricornError.transport("it is no URL: \(text)") }
        let request = HTTPTransportRequest(
            method: asked["method"]?.stringValue ?? "GET", url: url,
            headers: (asked["headers"]?.arrayValue ?? []).map { pair in
                (name: pair[0]?.stringValue ?? "", value: pair[1]?.stringValue ?? "")
            },
            body: asked["body"]?.stringValue.map { Data($0.utf8) })
        change { $0.requests += 1 }
        defer { change { $0.requests -= 1 } }
        let response = try await transport.send(request)
        change { $0.responses[number] = Response(body: response.body) }
        // The `close` of a request that was given up may have come before.
        if Task.isCancelled || call.isOver {
            forget(number)
            throw CancellationError()
        }
        return [
            "status": .int(response.status),
            "headers": .array(response.headers.map { [.string($0.name), .string($0.value)] }),
        ]
    }

    private func read(_ number: Int) async throws -> JSONValue {
        guard let body = state.with({ $0.responses[number]?.body }) else {
            throw TricornError.closed("the exchange is over")
        }
        do {
            var pieces = body.makeAsyncIterator()
            while let piece = try await pieces.next() {
                guard let text = state.with({ $0.responses[number]?.text.append(piece) }) else { return [:] }
                if !text.isEmpty { return ["text": .string(text)] }
            }
        } catch {
            forget(number)
            throw error
        }
        let rest = state.with { $0.responses[number]?.text.finish() } ?? ""
        forget(number)
        return rest.isEmpty ? [:] : ["text": .string(rest), "end": true]
    }

    /// Lets a response go, outside of the lock: with it, what is left of its body.
    private func forget(_ number: Int) { _ = change { $0.responses.removeValue(forKey: number) } }

    @discardableResult
    private func change<Value>(_ body: (inout State) -> Value) -> Value {
        let (value, free) = state.with { state -> (Value, (@Sendable () -> Void)?) in
            let value = body(&state)
            return (value, state.isFree ? state.whenFree : nil)
        }
        free?()
        return value
    }
}

/// A text whose bytes come in pieces: a character that is cut waits for its rest. What is not UTF-8 becomes U+FFFD.
struct TextPieces: Sendable {
    private var cut: [UInt8] = []

    /// The text as far as its characters are whole.
    mutating func append(_ piece: some Collection<UInt8>) -> String {
        var bytes = cut
        bytes.append(contentsOf: piece)
        let whole = bytes.count - Self.cut(bytes)
        cut = Array(bytes[whole...])
        return String(decoding: bytes[..<whole], as: UTF8.self)
    }

    /// The character that was cut by the end.
    mutating func finish() -> String {
        defer { cut = [] }
        return String(decoding: cut, as: UTF8.self)
    }

    /// The number of bytes at the end that begin a character and are not all of it.
    private static func cut(_ bytes: [UInt8]) -> Int {
        for count in 1...3 where count <= bytes.count {
            let first = bytes[bytes.count - count]
            // Inside of a character.
            if (0x80..<0xC0).contains(first) { continue }
            let length =
                switch first {
                case 0xC2..<0xE0: 2
                case 0xE0..<0xF0: 3
                case 0xF0..<0xF5: 4
                default: 0
                }
            guard count < length else { return 0 }
            return count == 1 || second(after: first).contains(bytes[bytes.count - count + 1]) ? count : 0
        }
        return 0
    }

    /// The bytes that may follow the first one of a character.
    private static func second(after first: UInt8) -> ClosedRange<UInt8> {
        switch first {
        case 0xE0: 0xA0...0xBF
        case 0xED: 0x80...0x9F
        case 0xF0: 0x90...0xBF
        case 0xF4: 0x80...0x8F
        default: 0x80...0xBF
        }
    }
}
