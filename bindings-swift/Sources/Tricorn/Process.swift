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
    /// What is printed is passed on when its line ends: it must not wait in a buffer.
    static func bufferLines() { setvbuf(stdout, nil, _IOLBF, 0) }

    /// Gives the standard streams back to the program, when what was printed has been passed on.
    static func giveBack() {
        fflush(stdout)
        try? coreGiveBackStreams()
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

/// Where the signal handler writes; a handler may do little else.
nonisolated(unsafe) private var signalPipe: Int32 = -1

private typealias SignalHandler = @convention(c) (Int32) -> Void

/// What the program itself does about a signal, by its number: called, too, when one comes.
nonisolated(unsafe) private var ownHandlers = [SignalHandler?](repeating: nil, count: 32)

/// SIGINT was ignored before.
nonisolated(unsafe) private var ignoredInterrupts = false

/// SIGTERM, SIGINT and SIGHUP as a request to stop; the second one does what it did before.
///
/// A handler of the program's own is called as well. SIGTERM and SIGHUP stay ignored where they are: the program was started
/// that way (`nohup`), or hears of them by a `DispatchSourceSignal`. SIGINT counts all the same, as shells start what runs in
/// the background with that one ignored. This is no such source itself: child processes would inherit what is ignored.
final class Signals: Sendable {
    /// The end that the signal's number comes out of.
    let descriptor: Int32
    private let source: any DispatchSourceRead
    private let received = Locked(UInt8(0))
    /// The signals that are caught.
    private let caught = Locked([Int32]())

    init(_ stop: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (read, write) = (ends[0], ends[1])
        signalPipe = write
        descriptor = read
        source = DispatchSource.makeReadSource(fileDescriptor: read, queue: .global())
        source.setEventHandler { [received, caught] in
            var number: UInt8 = 0
            // Left in the pipe, it would call this again for ever.
            guard unistdRead(read, &number) == 1 else { return }
            received.with { $0 = number }
            Self.restore(caught)
            stop()
        }
        source.setCancelHandler {
            close(read)
            close(write)
        }
        source.resume()
        for number in [SIGTERM, SIGINT, SIGHUP] where catches(number) { caught.with { $0.append(number) } }
    }

    /// Ends the process after SIGINT or SIGHUP, with the status that shells expect then.
    func exitIfInterrupted() {
        let number = received.with { Int32($0) }
        if number == SIGINT || number == SIGHUP { exit(128 + number) }
    }

    private static func restore(_ caught: Locked<[Int32]>) {
        let numbers = caught.with { numbers in
            defer { numbers = [] }
            return numbers
        }
        for number in numbers {
            signal(number, ownHandlers[Int(number)] ?? (number == SIGINT && ignoredInterrupts ? SIG_IGN : SIG_DFL))
        }
    }

    func stop() {
        Self.restore(caught)
        source.cancel()
    }
}

/// Catches a signal, unless it is ignored.
private func catches(_ number: Int32) -> Bool {
    ownHandlers[Int(number)] = nil
    let before = signal(number) { number in
        var byte = UInt8(truncatingIfNeeded: number)
        _ = unistdWrite(signalPipe, &byte, 1)
        ownHandlers[Int(number)]?(number)
    }
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
    default:
        ownHandlers[Int(number)] = before
        return true
    }
}
