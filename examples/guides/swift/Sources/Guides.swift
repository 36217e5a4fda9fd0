// The programs of the guides: `guides TOPIC`. Each file is a program of its own; put `@main` before its `enum`.
import Tricorn

@main struct Guides {
    static func main() async throws {
        switch CommandLine.arguments.dropFirst().first {
        case "completion": try await CompletionExample.main()
        case "prompts": try await PromptsExample.main()
        case "resources": try await ResourcesExample.main()
        case "tools": try await ToolsExample.main()
        case let other: throw TricornError.misuse("no topic \(other ?? "")")
        }
    }
}
