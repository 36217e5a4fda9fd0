import Foundation
import Tricorn

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension HTTPTransport where Self == URLSessionTransport {
    /// Carries the HTTP of clients over a `URLSession`, by default the shared one: `options.httpTransport = .urlSession(session)`.
    public static func urlSession(_ session: URLSession = .shared) -> URLSessionTransport {
        URLSessionTransport(session: session)
    }
}

/// Carries the HTTP of clients over a `URLSession`: with its proxies, cookies, protocol classes and additional headers. Its
/// caches and its timeout between packets are left out: clients have their own.
///
/// Each call and each stream that is listened to needs a connection for as long as it lasts, unless the server speaks HTTP/2:
/// `httpMaximumConnectionsPerHost` of the session's configuration (6) says how many there are at once, and more wait.
///
/// On Apple's platforms the session is asked itself, and its delegate hears of everything but redirects and the data, such as of
/// challenges; a response of which 1 MiB waits to be read is suspended. Elsewhere a session of the same configuration is made:
/// no delegate is asked, and a response of which 64 MiB wait to be read fails, as none can be suspended.
///
/// The session is left open. A background session carries nothing. A failure of the session reaches the caller as
/// `TricornError.transport` with its `localizedDescription` and the code of the `URLError`.
public final class URLSessionTransport: HTTPTransport {
    private let session: URLSession
    #if canImport(FoundationNetworking)
    private let router = Router()
    #endif

    /// Carries HTTP over this session, the shared one by default.
    public init(session: URLSession = .shared) {
        #if canImport(FoundationNetworking)
        // Of a data task only the delegate of its session hears.
        let configuration = session.configuration.copy() as? URLSessionConfiguration ?? .default
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        self.session = URLSession(configuration: configuration, delegate: router, delegateQueue: nil)
        #else
        self.session = session
        #endif
    }

    deinit {
        #if canImport(FoundationNetworking)
        // It holds its delegate until then.
        session.finishTasksAndInvalidate()
        #endif
    }

    /// Sends a request over the session. Throws `TricornError.transport`, also for a `Host` of the client's own, which a
    /// session does not send, or `CancellationError` when the task is cancelled.
    public func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
        if let host = request.headers.first(where: { $0.name.lowercased() == "host" })?.value {
            throw TricornError.transport("a URLSession sends the URL's host alone, and not the header Host: \(host)")
        }
        let exchange = Exchange(session.dataTask(with: Self.made(of: request)))
        #if canImport(FoundationNetworking)
        router.add(exchange)
        #else
        exchange.task.delegate = exchange
        #endif
        let head = try await exchange.head()
        let body = Body(exchange)
        return HTTPTransportResponse(
            status: head.status, headers: head.headers, body: AsyncThrowingStream(unfolding: { try await body.next() }))
    }

    /// Headers that the session writes itself.
    private static let ownHeaders: Set = ["connection", "content-length", "transfer-encoding"]

    private static func made(of request: HTTPTransportRequest) -> URLRequest {
        var made = URLRequest(url: request.url)
        made.httpMethod = request.method
        made.httpBody = request.body
        for (name, value) in request.headers where !ownHeaders.contains(name.lowercased()) {
            made.addValue(value, forHTTPHeaderField: name)
        }
        made.cachePolicy = .reloadIgnoringLocalCacheData
        // A stream may be silent for a week.
        made.timeoutInterval = 7 * 24 * 60 * 60
        return made
    }
}

/// The body of a response. An exchange ends when nobody can read it any more.
private final class Body: Sendable {
    private let exchange: Exchange

    init(_ exchange: Exchange) { self.exchange = exchange }

    deinit { exchange.cancel() }

    func next() async throws -> Data? { try await exchange.next() }
}

/// The status and the headers of a response.
private struct Head: Sendable {
    var status: Int
    var headers: [(name: String, value: String)] = []

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        // The session has decoded the body.
        let isDecoded = response.value(forHTTPHeaderField: "Content-Encoding") != nil
        for (name, value) in response.allHeaderFields {
            guard let name = name as? String, let value = value as? String else { continue }
            if isDecoded, ["content-encoding", "content-length"].contains(name.lowercased()) { continue }
            headers.append((name: name, value: value))
        }
    }
}

/// A task of a session and what has come of its response, of which it is the delegate.
private final class Exchange: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private struct State {
        var head: CheckedContinuation<Head, any Error>?
        var reader: CheckedContinuation<Data?, any Error>?
        /// The bytes that nobody has read.
        var bytes = Data()
        var isOver = false
        /// The reason for an end before the end of the response.
        var error: (any Error)?
        var isSuspended = false
    }

    #if canImport(FoundationNetworking)
    private static let most = 64 << 20
    #else
    private static let most = 1 << 20
    #endif

    let task: URLSessionDataTask
    private let lock = NSLock()
    private var state = State()

    init(_ task: URLSessionDataTask) {
        self.task = task
        super.init()
    }

    // MARK: - the reader

    /// Begins, and waits for the head of the response.
    func head() async throws -> Head {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let error = lock.withLock { () -> (any Error)? in
                    if !state.isOver { state.head = continuation }
                    return state.isOver ? state.error ?? Self.unanswered : nil
                }
                if let error { continuation.resume(throwing: error) } else { task.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// The bytes that have come, waiting for some when there are none; nil at the end.
    func next() async throws -> Data? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = lock.withLock { () -> Result<Data?, any Error>? in
                    let taken = take()
                    if taken == nil { state.reader = continuation }
                    return taken
                }
                if let ready { continuation.resume(with: ready) }
            }
        } onCancel: {
            cancel()
        }
    }

    /// The bytes that nobody has read, or the end; nil when neither is there. With the lock held.
    private func take() -> Result<Data?, any Error>? {
        if !state.bytes.isEmpty {
            let bytes = state.bytes
            state.bytes = Data()
            if state.isSuspended {
                state.isSuspended = false
                task.resume()
            }
            return .success(bytes)
        }
        guard state.isOver else { return nil }
        if let error = state.error { return .failure(error) }
        return .success(nil)
    }

    /// Nobody needs the rest.
    func cancel() { end(CancellationError(), cancelling: true) }

    // MARK: - the session

    private static let unanswered = TricornError.transport("there is no HTTP response")

    private static func failure(_ error: any Error) -> TricornError {
        guard let error = error as? URLError else { return .transport(error.localizedDescription) }
        return .transport("\(error.localizedDescription) (URLError \(error.code.rawValue))")
    }

    private func begin(_ response: URLResponse?) {
        // The server may say something of its own before it answers.
        guard let response = response as? HTTPURLResponse, response.statusCode >= 200 else { return }
        let head = lock.withLock {
            defer { state.head = nil }
            return state.head
        }
        head?.resume(returning: Head(response))
    }

    private func end(_ error: (any Error)?, cancelling: Bool = false) {
        let (head, reader) = lock.withLock {
            () -> (CheckedContinuation<Head, any Error>?, CheckedContinuation<Data?, any Error>?) in
            guard !state.isOver else { return (nil, nil) }
            defer {
                state.head = nil
                state.reader = nil
            }
            state.isOver = true
            state.error = error
            if cancelling {
                state.bytes = Data()
                // Under the lock because of redirects, see there.
                task.cancel()
            }
            return (state.head, state.reader)
        }
        head?.resume(throwing: error ?? Self.unanswered)
        if let error { reader?.resume(throwing: error) } else { reader?.resume(returning: nil) }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        begin(response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let (reader, bytes, isFull) = lock.withLock { () -> (CheckedContinuation<Data?, any Error>?, Data, Bool) in
            guard !state.isOver else { return (nil, Data(), false) }
            state.bytes.append(data)
            if let reader = state.reader {
                let bytes = state.bytes
                state.reader = nil
                state.bytes = Data()
                return (reader, bytes, false)
            }
            return (nil, Data(), state.bytes.count > Self.most && !suspend())
        }
        reader?.resume(returning: bytes)
        if isFull {
            end(TricornError.transport("more than \(Self.most >> 20) MiB of it wait to be read"), cancelling: true)
        }
    }

    /// Lets nothing more come until what is there is read; false where that is not possible. With the lock held.
    private func suspend() -> Bool {
        #if canImport(FoundationNetworking)
        // It would begin anew when it is resumed: the request would be sent twice.
        return false
        #else
        if !state.isSuspended {
            state.isSuspended = true
            task.suspend()
        }
        return true
        #endif
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        // Of a redirect that leads nowhere, FoundationNetworking tells only now.
        if error == nil { begin(task.response) }
        end(error.map { Self.failure($0) })
    }

    /// Leaves redirects to the client.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // It ends the process when this is answered for a task that was cancelled meanwhile.
        lock.withLock { if !state.isOver { completionHandler(nil) } }
        #else
        completionHandler(nil)
        #endif
    }

    #if canImport(FoundationNetworking)
    /// Leaves logins to the client. Asked behind the end of a response with the status 401, which would never be told of
    /// without credentials.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        begin(task.response)
        end(nil)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
    #endif
}

#if canImport(FoundationNetworking)
/// The delegate of a session, which hands on what is told of a task to its exchange.
private final class Router: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var exchanges: [Int: Exchange] = [:]

    func add(_ exchange: Exchange) { lock.withLock { exchanges[exchange.task.taskIdentifier] = exchange } }

    private func exchange(_ task: URLSessionTask) -> Exchange? { lock.withLock { exchanges[task.taskIdentifier] } }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        exchange(dataTask)?
            .urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(dataTask)?.urlSession(session, dataTask: dataTask, didReceive: data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let ended = lock.withLock { exchanges.removeValue(forKey: task.taskIdentifier) }
        ended?.urlSession(session, task: task, didCompleteWithError: error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        exchange(task)?
            .urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request,
                completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        exchange(task)?.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }
}
#endif
