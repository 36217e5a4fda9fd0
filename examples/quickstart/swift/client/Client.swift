// A first client: `swift run quickstart-client TARGET [--revision R]`, where TARGET is a URL or a command line.
// Prints one line of JSON: what was negotiated, what 1 + 2 is, and how long the call took.
import Tricorn

@main struct Demo {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let target = arguments.first else {
            throw TricornError.misuse("usage: quickstart-client TARGET [--revision R]")
        }
        let pinned = arguments.dropFirst().first == "--revision" ? arguments.dropFirst(2).first : nil

        let client = try await connect(target, ClientOptions(revision: pinned))
        _ = try await client.callTool("add", ["a": 1, "b": 2])  // the first call of a program costs more
        let started = ContinuousClock.now
        let sum = try await client.callTool("add", ["a": 1, "b": 2])
        let ms = (ContinuousClock.now - started) / .milliseconds(1)

        let line: JSONValue = [
            "protocolVersion": .string(client.protocolVersion.rawValue), "era": .string(client.era.rawValue),
            "transport": .string(client.transport.rawValue), "result": .int(try sum.decode()),
            "ms": .double((ms * 1000).rounded() / 1000),
        ]
        print(line)
        await client.close()
    }
}
