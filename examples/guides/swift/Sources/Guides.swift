// The programs of the guides: `guides TOPIC`. Each file is a program of its own; put `@main` before its `enum`.
import Tricorn

@main struct Guides {
    static func main() async throws {
        switch CommandLine.arguments.dropFirst().first {
        case "apps": try await AppsExample.main()
        case "authorization": try await AuthorizationExample.main()
        case "caching": try await CachingExample.main()
        case "capabilities-and-versions": try await CapabilitiesAndVersionsExample.main()
        case "completion": try await CompletionExample.main()
        case "dynamic-servers": try await DynamicServersExample.main()
        case "elicitation": try await ElicitationExample.main()
        case "errors": try await ErrorsExample.main()
        case "extensions": try await ExtensionsExample.main()
        case "http-sse": try await HttpSseExample.main()
        case "json-schema": try await JsonSchemaExample.main()
        case "lifespan": try await LifespanExample.main()
        case "log-in": try await LogInExample.main()
        case "log-messages": try await LogMessagesExample.main()
        case "many-servers": try await ManyServersExample.main()
        case "middleware": try await MiddlewareExample.main()
        case "pagination": try await PaginationExample.main()
        case "ping": try await PingExample.main()
        case "progress-and-cancellation": try await ProgressAndCancellationExample.main()
        case "prompts": try await PromptsExample.main()
        case "protected-server": try await ProtectedServerExample.main()
        case "resources": try await ResourcesExample.main()
        case "resumption": try await ResumptionExample.main()
        case "roots": try await RootsExample.main()
        case "sampling": try await SamplingExample.main()
        case "shared-cache": try await SharedCacheExample.main()
        case "stdio": try await StdioExample.main()
        case "streamable-http": try await StreamableHttpExample.main()
        case "subscriptions": try await SubscriptionsExample.main()
        case "tasks": try await TasksExample.main()
        case "testing": try await TestingExample.main()
        case "tools": try await ToolsExample.main()
        case "tracing": try await TracingExample.main()
        case "web-frameworks": try await WebFrameworksExample.main()
        case let other: throw TricornError.misuse("no topic \(other ?? "")")
        }
    }
}
