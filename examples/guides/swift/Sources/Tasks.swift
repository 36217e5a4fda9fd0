// Tasks: tool calls that go on after their answer.
import Tricorn

private struct Bake: Codable { var what: String }

private func server(_ steps: AsyncStream<Void>) -> Server {
    let app = Server("bakery", tasks: TaskOptions())
    app.tool("bake", "Bake something", taskSupport: .optional) { (input: Bake, context) in
        var step = steps.makeAsyncIterator()
        context.setStatus("kneading")
        _ = await step.next()
        context.setStatus("in the oven")
        _ = await step.next()
        return "one \(input.what)"
    }
    app.tool("cater", "Food for everybody, which takes days", taskSupport: .required) { "a feast" }
    app.tool("price", "What it costs") { "3 euros" }
    return app
}

enum TasksExample {
    static func main() async throws {
        let (steps, step) = AsyncStream.makeStream(of: Void.self)
        let app = server(steps)
        let client = try await connect(to: app, ClientOptions(revision: .v20251125))
        for tool in try await client.listTools() {
            print("\(tool.name): \(tool.json["execution"]?["taskSupport"]?.stringValue ?? "forbidden")")
        }

        let task = try await client.callToolTask("bake", ["what": "cake"], ttl: .seconds(600))
        print("task:", try await task.status().status.rawValue)
        for try await now in task.changes() {
            guard now.status == .working, let message = now.statusMessage else { continue }
            print("\(now.status.rawValue): \(message)")
            step.yield()
        }
        print("over:", try await task.status().status.rawValue)
        // The id is all it takes to come back.
        print("result:", try await client.task(task.id).result().text)

        print("cater:", try await client.callTool("cater").text)

        let other = try await client.callToolTask("bake", ["what": "bread"])
        print("cancelled:", try await other.cancel().status.rawValue)
        print("all:", try await client.listTasks().map(\.status.rawValue).joined(separator: ", "))

        do {
            _ = try await client.callTool("price", [:], RequestOptions(task: TaskRequest()))
        } catch TricornError.unsupported {
            print("price: not as a task")
        }
        await client.close()

        var options = ClientOptions(revision: .v20260728)
        options.tasks = TaskOptions()
        let modern = try await connect(to: app, options)
        print("2026-07-28:", try await modern.callTool("cater").text)
        await modern.close()
    }
}
