// A stand-in for a web framework: one request for each connection, as `HTTPRequest` and `HTTPResponse`.
import Foundation
import Tricorn

#if canImport(Glibc)
import Glibc
#endif

struct SmallSite: Sendable {
    typealias Handler = @Sendable (HTTPRequest) async throws -> HTTPResponse

    let url: String
    private let socket: Int32

    init(_ handle: @escaping Handler) throws {
        #if canImport(Glibc)
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let socket = Darwin.socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) == 0 && listen(socket, 128) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        guard isBound else { throw CocoaError(.fileWriteUnknown) }
        signal(SIGPIPE, SIG_IGN)
        self.socket = socket
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
        Thread.detachNewThread {
            while case let connection = accept(socket, nil, nil), connection >= 0 {
                Thread.detachNewThread { Self.converse(connection, handle) }
            }
        }
    }

    func close() { shutdown(socket, Int32(SHUT_RDWR)) }

    private static func converse(_ socket: Int32, _ handle: @escaping Handler) {
        guard let request = request(socket) else {
            _ = closeSocket(socket)
            return
        }
        Task {
            if let response = try? await handle(request) {
                let headers = response.headers.map { "\($0.name): \($0.value)\r\n" }.joined()
                send(socket, "HTTP/1.1 \(response.status) \r\n\(headers)connection: close\r\n\r\n")
                do { for try await part in response.body { send(socket, part) } } catch {}
            }
            shutdown(socket, Int32(SHUT_RDWR))
            _ = closeSocket(socket)
        }
    }

    /// Good enough for the client of an example, and for nobody else.
    private static func request(_ socket: Int32) -> HTTPRequest? {
        var bytes: [UInt8] = [], part = [UInt8](repeating: 0, count: 16384)
        let end = Array("\r\n\r\n".utf8)
        while true {
            let count = recv(socket, &part, part.count, 0)
            guard count > 0 else { return nil }
            bytes += part[..<count]
            guard let at = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { continue }
            let lines = String(decoding: bytes[..<at], as: UTF8.self).components(separatedBy: "\r\n")
            let first = lines[0].components(separatedBy: " ")
            let headers = lines.dropFirst().map { line in
                let colon = line.firstIndex(of: ":") ?? line.endIndex
                let value = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
                return (name: String(line[..<colon]).lowercased(), value: value)
            }
            let length = headers.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
            let body = bytes[(at + end.count)...]
            guard body.count >= length else { continue }
            return HTTPRequest(method: first[0], target: first[1], headers: headers, body: Array(body.prefix(length)))
        }
    }

    private static func send(_ socket: Int32, _ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let sent = bytes.withUnsafeBytes { sendSocket(socket, $0.baseAddress, $0.count, 0) }
            guard sent > 0 else { return }
            bytes = bytes.dropFirst(sent)
        }
    }
}

// The names of this file's own functions hide those of the system.
private func closeSocket(_ socket: Int32) -> Int32 { close(socket) }
private func sendSocket(_ socket: Int32, _ base: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
    send(socket, base, count, flags)
}
