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

    /// A request of the core to a store, which it has reserved for so long.
    private func asked(_ op: String, wait: JSONValue = 60, server: JSONValue = "s") -> JSONValue {
        ["op": .string(op), "issuer": "i", "server": server, "wait": wait]
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

    @Test func clientsOfOneStoreRefreshOnce() async throws {
        let authority = try Authority(), shelf = Shelf()
        try await listening(protected(authority)) { url in
            let first = try await connect(url, options(shelf)), second = try await connect(url, options(shelf))
            #expect(authority.opened == 1)
            for round in 1...3 {
                authority.revokeTokens()
                let asked = Locked(0), both = DispatchSemaphore(value: 0)
                authority.world.with { world in
                    world.beforeToken = {
                        let isFirst = asked.with { asked in
                            asked += 1
                            return asked == 1
                        }
                        // The other one has time to come, too.
                        if isFirst { _ = both.wait(timeout: .now() + 0.3) } else { both.signal() }
                    }
                }
                async let one = first.callTool("whoami").text
                async let other = second.callTool("whoami").text
                let texts = try await [one, other]
                #expect(texts == ["ada blue", "ada blue"])
                #expect(authority.grants.filter { $0 == "refresh_token" }.count == round)
            }
            // Nobody has lost the login.
            #expect(authority.opened == 1)
            await first.close()
            await second.close()
        }
    }

    @Test func clientsOfOneStoreTakeTurns() async throws {
        let shelf = Shelf(), told = Locked([String]())
        let one = StoreKeeper(shelf, of: AuthTrace()), other = StoreKeeper(shelf, of: AuthTrace())
        _ = try await one.perform(asked("reserve"))
        // Another login, and another store, are nobody's business.
        _ = try await other.perform(asked("reserve", server: "t"))
        _ = try await StoreKeeper(Shelf(), of: AuthTrace()).perform(asked("reserve"))
        do {
            _ = try await other.perform(asked("reserve", wait: 0.05))
            Issue.record("it is another client's turn")
        } catch let error as TricornError {
            #expect(error.kind == "timeout")
        }
        _ = try await other.perform(asked("release"))
        let waiting = Task {
            _ = try await other.perform(asked("reserve"))
            told.with { $0.append("other") }
        }
        let givenUp = Task { try await StoreKeeper(shelf, of: AuthTrace()).perform(asked("reserve")) }
        givenUp.cancel()
        await #expect(throws: CancellationError.self) { try await bounded { try await givenUp.value } }
        told.with { $0.append("one") }
        _ = try await one.perform(asked("release"))
        try await bounded { try await waiting.value }
        #expect(told.with { $0 } == ["one", "other"])
        _ = try await other.perform(asked("release"))
        _ = try await bounded { try await one.perform(self.asked("reserve")) }
        _ = try await one.perform(asked("release"))
    }

    @Test func aStoreThatIsNoObjectIsThatOfItsOption() async throws {
        struct Plain: TokenStore {
            func load(_ key: TokenKey) async -> String? { nil }
            func find(server: String) async -> [(issuer: String, login: String)] { [] }
            func save(_ key: TokenKey, login: String) async {}
            func remove(_ key: TokenKey) async {}
        }
        let auth = AuthTrace()
        let (one, copy, other) = (
            StoreKeeper(Plain(), of: auth), StoreKeeper(Plain(), of: auth), StoreKeeper(Plain(), of: AuthTrace())
        )
        _ = try await one.perform(asked("reserve"))
        _ = try await other.perform(asked("reserve"))
        await #expect(throws: TricornError.self) { try await copy.perform(asked("reserve", wait: 0.05)) }
        _ = try await one.perform(asked("release"))
    }
}
