#if canImport(Darwin)
@preconcurrency import Darwin
#elseif canImport(Glibc)
@preconcurrency import Glibc
#elseif canImport(Musl)
@preconcurrency import Musl
#endif
@preconcurrency import Dispatch
internal import TricornCore

/// The process's standard error, line by line.
@usableFromInline enum StandardError {
    /// Writes `text` as it is. Nobody waits for who reads it: what is not taken is dropped, and counted.
    @usableFromInline static func write(_ text: String) { try? coreWriteStderr(text: text) }
}

/// The process's standard output, while it belongs to the protocol.
enum StandardOutput {
    /// Servers that have taken it: one speaks, and those that are refused meanwhile give nothing back.
    private static let users = Locked(0)

    /// Takes it for a server. Lines are passed on as they end: they must not wait in a buffer.
    static func take() {
        users.with { $0 += 1 }
        setvbuf(stdout, nil, _IOLBF, 0)
    }

    /// Gives the standard streams back to the program, when all that was printed has been passed on. False while another
    /// server has them.
    @discardableResult static func giveBack() -> Bool {
        let isLast = users.with { (users: inout Int) -> Bool in
            users -= 1
            return users == 0
        }
        guard isLast else { return false }
        fflush(stdout)
        try? coreGiveBackStreams()
        return true
    }
}

private func unistdRead(_ descriptor: Int32, _ byte: inout UInt8) -> Int { read(descriptor, &byte, 1) }

private func unistdWrite(_ descriptor: Int32, _ base: UnsafePointer<UInt8>, _ count: Int) -> Int {
    write(descriptor, base, count)
}

/// Makes writing to a peer that is gone an error like others, not the end of the process.
///
/// With a handler, unless the program has its own: SIG_IGN would be inherited by child processes.
func outliveBrokenPipes() {
    if let own = signal(SIGPIPE, { _ in }) { signal(SIGPIPE, own) }
}

/// The descriptor that the signal handler writes to; a handler may do little else.
nonisolated(unsafe) private var signalPipe: Int32 = -1

private typealias SignalHandler = @convention(c) (Int32) -> Void

/// The program's own handlers of signals, by their numbers: called, too, when one comes.
nonisolated(unsafe) private var ownHandlers = [SignalHandler?](repeating: nil, count: 32)

/// SIGINT was ignored before.
nonisolated(unsafe) private var ignoredInterrupts = false

/// SIGTERM, SIGINT and SIGHUP as a request to stop; the second one does what it did before.
///
/// A handler of the program's own is called as well. SIGTERM and SIGHUP stay ignored where they are: the program was started
/// that way (`nohup`), or hears of them by a `DispatchSourceSignal`. SIGINT counts all the same, as shells start what runs in
/// the background with that one ignored. This is no such source itself: child processes would inherit what is ignored.
///
/// A process has one handler of a signal, so all that are there share it, and all hear of it.
final class Signals: Sendable {
    private struct Shared {
        var stops: [Int: @Sendable (Bool) -> Void] = [:]
        var last = 0
        /// The signals that are caught.
        var caught: [Int32] = []
        /// The signal that has come.
        var received: Int32 = 0
        /// The end of the pipe that signals' numbers come out of, and what reads it.
        var descriptor: Int32 = -1
        var source: (any DispatchSourceRead)?

        mutating func begin() {
            var ends: [Int32] = [-1, -1]
            pipe(&ends)
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            let (read, write) = (ends[0], ends[1])
            let source = DispatchSource.makeReadSource(fileDescriptor: read, queue: .global())
            source.setEventHandler { Signals.heard(read) }
            source.setCancelHandler {
                close(read)
                close(write)
            }
            source.resume()
            signalPipe = write
            (self.source, descriptor, received) = (source, read, 0)
        }

        /// Catches them anew, too, after the last ones have done what they did before.
        mutating func catchAll() {
            for number in [SIGTERM, SIGINT, SIGHUP] where catches(number) { caught.append(number) }
        }

        mutating func restore() {
            for number in caught {
                signal(number, ownHandlers[Int(number)] ?? (number == SIGINT && ignoredInterrupts ? SIG_IGN : SIG_DFL))
            }
            caught = []
        }

        mutating func end() {
            restore()
            signalPipe = -1
            source?.cancel()
            (source, descriptor) = (nil, -1)
        }
    }

    private static let shared = Locked(Shared())

    /// The end that the signal's number comes out of.
    let descriptor: Int32
    private let number: Int

    /// `stop` is given true for SIGTERM, after which running calls have time to be answered.
    init(_ stop: @escaping @Sendable (Bool) -> Void) {
        (number, descriptor) = Signals.shared.with { shared -> (Int, Int32) in
            if shared.stops.isEmpty { shared.begin() }
            if shared.caught.isEmpty { shared.catchAll() }
            shared.last += 1
            shared.stops[shared.last] = stop
            return (shared.last, shared.descriptor)
        }
    }

    private static func heard(_ descriptor: Int32) {
        var number: UInt8 = 0
        // Left in the pipe, it would call this again for ever.
        guard unistdRead(descriptor, &number) == 1 else { return }
        let received = Int32(number)
        let stops = shared.with { shared in
            shared.received = received
            shared.restore()
            return Array(shared.stops.values)
        }
        for stop in stops { stop(received == SIGTERM) }
    }

    /// Lets the signals go. Gives the one that has come to the last that is there.
    @discardableResult
    func stop() -> Int32? {
        // Let go outside of the lock: it may hold a server.
        let (before, received) = Self.shared.with { shared -> ((@Sendable (Bool) -> Void)?, Int32?) in
            guard let before = shared.stops.removeValue(forKey: number) else { return (nil, nil) }
            guard shared.stops.isEmpty else { return (before, nil) }
            shared.end()
            return (before, shared.received)
        }
        _ = before
        return received
    }

    /// Ends the process after SIGINT or SIGHUP, with the status that shells expect then: once all have stopped.
    func stopAndExitIfInterrupted() {
        let number = stop()
        if let number, number == SIGINT || number == SIGHUP { exit(128 + number) }
    }
}

/// The handler.
private func signalled(_ number: Int32) {
    var byte = UInt8(truncatingIfNeeded: number)
    _ = unistdWrite(signalPipe, &byte, 1)
    ownHandlers[Int(number)]?(number)
}

/// Catches a signal, unless it is ignored.
private func catches(_ number: Int32) -> Bool {
    let handler: SignalHandler? = signalled
    ownHandlers[Int(number)] = nil
    if number == SIGINT { ignoredInterrupts = false }
    let before = signal(number, handler)
    // The constants are numbers and no functions.
    switch unsafeBitCast(before, to: Int.self) {
    case unsafeBitCast(SIG_DFL, to: Int.self): return true
    case unsafeBitCast(SIG_IGN, to: Int.self):
        if number == SIGINT {
            ignoredInterrupts = true
            return true
        }
        signal(number, SIG_IGN)
        return false
    case unsafeBitCast(handler, to: Int.self):
        // Somebody has kept it and put it back: it would call itself for ever.
        return true
    default:
        ownHandlers[Int(number)] = before
        return true
    }
}
