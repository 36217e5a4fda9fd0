// The server mounted in somebody else's HTTP server: a small one, with a thread and one request for each connection.
import Foundation
import Tricorn

#if canImport(Glibc)
import Glibc
#endif

/// Why there is no request.
private struct Malformed: Error {}

/// Serves there, at every path.
func serveMounted(_ app: Server, _ options: HTTPOptions) async throws {
    let endpoint = try app.httpEndpoint(options)
    let listening = try listen(options.host ?? "127.0.0.1", UInt16(options.port ?? 0))
    FileHandle.standardError.write(Data("ready http://127.0.0.1:\(listening.port)/mcp\n".utf8))
    signal(SIGPIPE, SIG_IGN)
    Thread.detachNewThread {
        while true {
            let socket = accept(listening.socket, nil, nil)
            if socket >= 0 { Thread.detachNewThread { converse(socket, endpoint) } }
        }
    }
    while true { try await Task.sleep(for: .seconds(3600)) }
}

private func listen(_ host: String, _ port: UInt16) throws -> (socket: Int32, port: UInt16) {
    #if canImport(Glibc)
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    let socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr(host)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
            bind(socket, address, size) == 0 && listen(socket, 128) == 0 && getsockname(socket, address, &size) == 0
        }
    }
    guard isBound else { throw ToolError("cannot listen on \(host):\(port)") }
    return (socket, UInt16(bigEndian: address.sin_port))
}

private func converse(_ socket: Int32, _ endpoint: HTTPEndpoint) {
    defer { close(socket) }
    var reader = RequestReader(socket: socket)
    guard let request = try? reader.request() else {
        write(socket, "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        return
    }
    let ended = DispatchSemaphore(value: 0)
    let answering = Task {
        defer {
            shutdown(socket, Int32(SHUT_RDWR))
            ended.signal()
        }
        guard let response = try? await endpoint.handle(request) else { return }
        let headers = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        write(socket, "HTTP/1.1 \(response.status) \r\n\(headers)connection: close\r\n\r\n")
        do {
            for try await part in response.body { write(socket, part) }
        } catch {
            return
        }
    }
    // What follows the request is nothing but the end of the connection: the client has gone away, or was answered.
    while reader.receive() {}
    answering.cancel()
    ended.wait()
}

private func write(_ socket: Int32, _ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let sent = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, 0) }
        guard sent > 0 else { return }
        bytes = bytes.dropFirst(sent)
    }
}

/// Reads one request, and takes nothing that could be read in two ways.
private struct RequestReader {
    let socket: Int32
    private var bytes: [UInt8] = []

    init(socket: Int32) { self.socket = socket }

    /// Whether more has come.
    mutating func receive() -> Bool {
        var part = [UInt8](repeating: 0, count: 16384)
        let count = recv(socket, &part, part.count, 0)
        if count > 0 { bytes += part[..<count] }
        return count > 0
    }

    mutating func request() throws -> HTTPRequest {
        let head = try line(until: "\r\n\r\n").components(separatedBy: "\r\n")
        let first = head[0].components(separatedBy: " ")
        guard first.count == 3, first[2] == "HTTP/1.1" else { throw Malformed() }
        var request = HTTPRequest(
            method: first[0], target: first[1], headers: try head.dropFirst().map(RequestReader.field))
        request.body = try body(request.headers)
        return request
    }

    private static func field(_ line: String) throws -> (name: String, value: String) {
        guard let colon = line.firstIndex(of: ":") else { throw Malformed() }
        let name = line[..<colon]
        let isToken =
            !name.isEmpty && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
        let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        let isText = value.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F || $0 == "\t" }
        guard isToken, isText else { throw Malformed() }
        return (String(name), value)
    }

    private mutating func body(_ headers: [(name: String, value: String)]) throws -> [UInt8] {
        let lengths = headers.filter { $0.name.lowercased() == "content-length" }.map(\.value)
        let codings = headers.filter { $0.name.lowercased() == "transfer-encoding" }.map(\.value)
        guard lengths.count + codings.count <= 1 else { throw Malformed() }
        if let length = lengths.first {
            guard let length = Int(length), length >= 0, length <= 8 << 20 else { throw Malformed() }
            return try take(length)
        }
        guard let coding = codings.first else { return [] }
        guard coding == "chunked" else { throw Malformed() }
        var body: [UInt8] = []
        while true {
            guard let size = Int(try line(until: "\r\n"), radix: 16), size >= 0, size <= 8 << 20 else {
                throw Malformed()
            }
            if size == 0 { break }
            body += try take(size)
            guard try line(until: "\r\n").isEmpty else { throw Malformed() }
        }
        // Trailers are no headers.
        while !(try line(until: "\r\n").isEmpty) {}
        return body
    }

    /// What comes before that, each byte a character.
    private mutating func line(until end: String) throws -> String {
        let end = Array(end.utf8)
        while true {
            if let at = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) {
                let line = bytes[..<at]
                bytes.removeFirst(at + end.count)
                return String(String.UnicodeScalarView(line.map { Unicode.Scalar($0) }))
            }
            guard bytes.count <= 64 << 10, receive() else { throw Malformed() }
        }
    }

    private mutating func take(_ count: Int) throws -> [UInt8] {
        while bytes.count < count { guard receive() else { throw Malformed() } }
        defer { bytes.removeFirst(count) }
        return Array(bytes[..<count])
    }
}
