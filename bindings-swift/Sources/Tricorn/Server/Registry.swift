internal import TricornCore

/// A place to add tools, resources and prompts: a `Server`, for everybody, or `SessionOffers`, for one client.
public protocol Offering: Sendable {
    /// Takes what is added. Of no use to programs.
    var _place: _OfferPlace { get }
}

/// Takes what is added to a server or a session. Of no use to programs.
public struct _OfferPlace: Sendable {
    let add: @Sendable (Server.Kind, String, () throws -> Offer, @escaping Body) -> Void
}

extension Offering {
    func add(_ kind: Server.Kind, _ name: String, _ make: () throws -> Offer, run: @escaping Body) {
        _place.add(kind, name, make, run)
    }
}

/// Additions to a server that may be running; see `Server.add`.
public final class ServerOffers: Offering {
    private let server: Server
    private let failed = Locked<TricornError?>(nil)

    fileprivate init(_ server: Server) { self.server = server }

    fileprivate func check() throws { if let failure = failed.with({ $0 }) { throw failure } }

    /// Adds to the server.
    public var _place: _OfferPlace {
        _OfferPlace { [self] kind, name, make, run in
            do { try server.enter(kind, name, make, run: run) } catch {
                let failure = TricornError.from(error).about("\(kind.word) \"\(name)\"")
                failed.with { $0 = $0 ?? failure }
            }
        }
    }
}

extension Server {
    /// Adds tools, resources and prompts, and throws the first error at once: for a server that runs already.
    ///
    /// ```swift
    /// try app.add { $0.tool("clock") { Date.now.formatted() } }
    /// ```
    /// What could be added stays.
    public func add(_ build: (ServerOffers) throws -> Void) throws {
        let offers = ServerOffers(self)
        try build(offers)
        try offers.check()
    }
}

extension Offer {
    /// Enters the handler and the completers into the handler table, and hands the core the rest; gives their numbers.
    @discardableResult
    func register(
        _ text: String, _ run: @escaping Body, _ enter: (_ what: String, _ run: @escaping Body) -> UInt32,
        add: (_ definition: String, _ options: String, _ handler: UInt32) throws -> Void
    ) throws -> [UInt32] {
        let handler = enter(text, run)
        var numbers = [handler]
        var completions = OptionsText()
        for (argument, complete) in completers {
            let number = enter("the completion of \(text)", Self.completing(complete))
            numbers.append(number)
            completions.set(argument, number: Int(number))
        }
        var options = OptionsText()
        options.set("parameters", parameters)
        if !completions.members.isEmpty { options.set("completions", completions.json) }
        if !enabled { options.set("enabled", false) }
        if replacing { options.set("replace", true) }
        if !scopes.isEmpty { options.set("scopes", texts: scopes) }
        options.set("timeout", duration: timeout)
        options.set("cache", cache?.json)
        do {
            try add(definition.checkedText, options.json.checkedText, handler)
        } catch {
            Host.shared.removeHandlers(numbers)
            throw error
        }
        return numbers
    }
}
