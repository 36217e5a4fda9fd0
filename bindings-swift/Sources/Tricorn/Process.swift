#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif
@preconcurrency import Dispatch

/// The process's standard error, line by line.
public enum StandardError {
    /// Writes `text` as it is.
    public static func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = bytes[...]
            while let base = UnsafeBufferPointer(rebasing: rest).baseAddress {
                let count = unistdWrite(2, base, rest.count)
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
                if rest.isEmpty { return }
            }
        }
    }
}

private func unistdWrite(_ descriptor: Int32, _ base: UnsafePointer<UInt8>, _ count: Int) -> Int {
    write(descriptor, base, count)
}

/// Where the signal handler writes; a handler may do little else.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// SIGTERM and SIGINT as a request to stop; the second one ends the process as if nothing caught it.
///
/// Not a `DispatchSourceSignal`: that needs the signals to be ignored, and child processes would inherit that.
final class Signals: Sendable {
    private let source: any DispatchSourceRead

    init(_ stop: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let (read, write) = (ends[0], ends[1])
        signalPipe = write
        source = DispatchSource.makeReadSource(fileDescriptor: read, queue: .global())
        source.setEventHandler {
            Self.restore()
            stop()
        }
        source.setCancelHandler {
            close(read)
            close(write)
        }
        source.resume()
        for number in [SIGTERM, SIGINT] {
            signal(number) { _ in
                var byte: UInt8 = 0
                _ = unistdWrite(signalPipe, &byte, 1)
            }
        }
    }

    private static func restore() {
        signal(SIGTERM, SIG_DFL)
        signal(SIGINT, SIG_DFL)
    }

    func stop() {
        Self.restore()
        source.cancel()
    }
}
