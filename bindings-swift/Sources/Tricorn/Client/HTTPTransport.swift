#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Carries the HTTP of clients in place of the library's own connections: `ClientOptions.httpTransport`.
///
/// `URLSessionTransport` of the module `TricornURLSession` is one. Over another HTTP library it is
///
/// ```swift
/// struct Transport: HTTPTransport {
///     let library: Library
///
///     func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
///         let response = try await library.execute(request.method, request.url, request.headers, request.body)
///         return HTTPTransportResponse(status: response.status, headers: response.headers, body: response.chunks)
///     }
/// }
/// ```
/// It is used by several tasks at once, and by several clients if they are given the same one.
public protocol HTTPTransport: Sendable {
    /// Sends a request, and returns the response as soon as its head is there.
    ///
    /// Redirects are not to be followed: the client does that, within the origin. Streams may be silent for as long as their
    /// server likes: the client has timeouts of its own. When it gives up the task is cancelled, and the body is read no
    /// further. Any error, thrown here or by the body, reaches the caller as `TricornError.transport` with the same text: the
    /// message of a `TricornError`, the `errorDescription` of a `LocalizedError`, else the error's description.
    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse
}

/// A request of a client, for an `HTTPTransport`. It is printed without headers and body, where tokens are.
public struct HTTPTransportRequest: Sendable {
    /// `POST`, `GET` or `DELETE`.
    public var method: String
    /// The whole URL, `http` or `https`.
    public var url: URL
    /// Names in lower case, in order; without `content-length`, and `host` only where it is not the URL's.
    public var headers: [(name: String, value: String)]
    /// UTF-8; nil when there is none.
    public var body: Data?

    /// A request as a client makes it.
    public init(method: String, url: URL, headers: [(name: String, value: String)] = [], body: Data? = nil) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

extension HTTPTransportRequest: Guarded {
    var shown: KeyValuePairs<String, Any> { ["method": method, "host": url.host as Any] }
}

/// The response of an `HTTPTransport`.
public struct HTTPTransportResponse: Sendable {
    /// Such as 200.
    public var status: Int
    /// Names in any case; one that comes several times is there several times.
    public var headers: [(name: String, value: String)]
    /// UTF-8 without a content encoding, in pieces of any size as they come. The next piece is asked for when the client needs
    /// it; a body that it does not need to the end is let go, and if that waits for a piece, in a task that is cancelled.
    public var body: AsyncThrowingStream<Data, any Error>

    /// A response whose body comes in pieces; without one it has none.
    public init(
        status: Int, headers: [(name: String, value: String)] = [],
        body: AsyncThrowingStream<Data, any Error> = AsyncThrowingStream { $0.finish() }
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A response whose body is there as a whole.
    public init(status: Int, headers: [(name: String, value: String)] = [], body: Data) {
        let pieces = AsyncThrowingStream<Data, any Error> { pieces in
            pieces.yield(body)
            pieces.finish()
        }
        self.init(status: status, headers: headers, body: pieces)
    }
}
