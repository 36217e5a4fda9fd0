import Testing
import Tricorn

@testable import {{type}}

@Test func adds() async throws {
    try await withClient(of: server()) { client in
        let sum: Int = try await client.callTool("add", ["a": 1, "b": 2]).decode()
        #expect(sum == 3)
    }
}

@Test func saysWhatIsWrongWithArguments() async throws {
    try await withClient(of: server()) { client in
        let result = try await client.callTool("add", ["a": "one", "b": 2])
        #expect(result.isError)
        #expect(result.text.contains("expected integer"))
    }
}
