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

/// SIGTERM and SIGINT as a request to stop; the second one ends the process as if nothing caught it.
///
/// Not a `DispatchSourceSignal`: that needs the signals to be ignored, and child processes would inherit that.
final class Signals: Sendable {
    /// The end that the signal's number comes out of.
    let descriptor: Int32
    private let source: any DispatchSourceRead
    private let received = Locked(UInt8(0))

    init(_ stop: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (read, write) = (ends[0], ends[1])
        signalPipe = write
        descriptor = read
        source = DispatchSource.makeReadSource(fileDescriptor: read, queue: .global())
        source.setEventHandler { [received] in
            var number: UInt8 = 0
            // Left in the pipe, it would call this again for ever.
            guard unistdRead(read, &number) == 1 else { return }
            received.with { $0 = number }
            Self.restore()
            stop()
        }
        source.setCancelHandler {
            close(read)
            close(write)
        }
        source.resume()
        for number in [SIGTERM, SIGINT] {
            signal(number) { number in
                var byte = UInt8(truncatingIfNeeded: number)
                _ = unistdWrite(signalPipe, &byte, 1)
            }
        }
    }

    /// Ends the process after SIGINT, with the status that shells expect then.
    func exitIfInterrupted() { if received.with({ $0 == UInt8(SIGINT) }) { exit(130) } }

    private static func restore() {
        signal(SIGTERM, SIG_DFL)
        signal(SIGINT, SIG_DFL)
    }

    func stop() {
        Self.restore()
        source.cancel()
    }
}
