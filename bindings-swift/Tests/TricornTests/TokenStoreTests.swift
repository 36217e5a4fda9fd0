import Foundation
import Testing

@testable import Tricorn

/// A store of the program's own: whose turn it is, and what comes late.
@Suite(.serialized) struct TokenStoreTests {
    private func options(_ store: any TokenStore) -> ClientOptions {
        var options = ClientOptions()
        options.auth = login(.custom(store))
        return options
    }

    @Test(arguments: ["closed", "let go"])
    func aLoginThatComesAfterTheEndOfItsClientIsKept(how: String) async throws {
        let authority = try Authority(), shelf = Shelf()
        try await listening(protected(authority)) { url in
            let key = TokenKey(issuer: authority.issuer, server: url), answer = DispatchSemaphore(value: 0)
            var closing: Task<Void, Never>?
            do {
                let client = try await connect(url, options(shelf)), begun = Event()
                authority.revokeTokens()
                authority.world.with {
                    $0.beforeToken = {
                        Task { await begun.set() }
                        _ = answer.wait(timeout: .now() + 20)
                    }
                }
                let call = Task { try await client.callTool("whoami").text }
                #expect(await begun.value() != nil)
                if how == "closed" { closing = Task { await client.close() } } else { call.cancel() }
                await #expect(throws: (any Error).self) { try await bounded { try await call.value } }
            }
            #expect(await shelf.logins[key]?.contains("refresh-1") == true)
            answer.signal()
            await closing?.value
            authority.world.with { $0.beforeToken = nil }
            for _ in 0..<1000 where await shelf.logins[key]?.contains("refresh-2") != true {
                try await Task.sleep(for: .milliseconds(10))
            }
            // The refresh token of before was used up.
            let next = try await connect(url, options(shelf))
            #expect(try await next.callTool("whoami").text == "ada blue")
            #expect(authority.opened == 1)
            await next.close()
        }
    }
}
