// The benchmark client; see the load generator for its protocol: READY, a line on stdin, DONE.
import Tricorn

import Foundation

struct Add: Encodable {
    var a: Int
    var b: Int
}

struct Echo: Encodable { var text: String }
struct Sum: Decodable { var sum: Int }

let unit = "The quick brown fox jumps over the lazy dog; \"quoted\" text, caf\u{e9} cr\u{e8}me.\n"

func payload(_ bytes: Int) -> String {
    let repeated = String(repeating: unit, count: bytes / unit.utf8.count)
    return repeated + String(repeating: "x", count: bytes - repeated.utf8.count)
}

actor Counter {
    private var next = 0
    private let total: Int
    private(set) var ok = 0
    private(set) var failed = 0

    init(total: Int) { self.total = total }

    func take() -> Int? {
        guard next < total else { return nil }
        defer { next += 1 }
        return next
    }

    func count(_ good: Bool) { if good { ok += 1 } else { failed += 1 } }
}

@main struct BenchClient {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        func number(_ name: String) -> Int { environment["BENCH_\(name)"].flatMap { Int($0) } ?? 0 }
        let scenario = environment["BENCH_SCENARIO"] ?? ""
        let target = environment[environment["BENCH_TRANSPORT"] == "http" ? "BENCH_URL" : "BENCH_SERVER_CMD"] ?? ""
        let tools = number("TOOLS")
        let text = payload(["echo-1k": 1 << 10, "echo-64k": 1 << 16, "echo-1m": 1 << 20][scenario] ?? 0)

        var options = ClientOptions(revision: environment["BENCH_PROTO"])
        options.maxMessageBytes = 64 << 20
        let client = try await connect(target, options)

        @Sendable func step(_ i: Int) async throws -> Bool {
            switch scenario {
            case "call-add": try await client.callTool("add", Add(a: i, b: 7)).decode(as: Sum.self).sum == i + 7
            case "list": try await client.listTools().count == tools
            default: try await client.callTool("echo", Echo(text: text)).text == text
            }
        }

        func phase(_ total: Int) async -> (ok: Int, failed: Int) {
            let counter = Counter(total: total)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<number("CONCURRENCY") {
                    group.addTask {
                        while let i = await counter.take() {
                            do {
                                await counter.count(try await step(i))
                            } catch {
                                FileHandle.standardError.write(Data("\(error)\n".utf8))
                                await counter.count(false)
                            }
                        }
                    }
                }
            }
            return (await counter.ok, await counter.failed)
        }

        _ = await phase(number("WARMUP"))
        say("READY tricorn \(client.era)")
        _ = readLine()
        let (ok, failed) = await phase(number("N"))
        say("DONE \(ok) \(failed)")
        while readLine() != nil {}
        await client.close()
    }

    static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}
