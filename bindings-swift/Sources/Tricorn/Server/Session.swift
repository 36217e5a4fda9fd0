internal import TricornCore

/// Things that one client alone is offered, for as long as its session lives; see `Context.addToSession`.
public final class SessionOffers: Offering {
    private let call: Call
    private let failed = Locked<TricornError?>(nil)

    fileprivate init(_ call: Call) { self.call = call }

    fileprivate func check() throws { if let failure = failed.with({ $0 }) { throw failure } }

    /// Adds to the session.
    public var _place: _OfferPlace {
        _OfferPlace { [self] kind, name, make, run in
            let text = "\(kind.word) \"\(name)\"", call = self.call
            do {
                try make().register(text, run) { what, run in
                    var subject = call.subject
                    (subject.name, subject.text, subject.passesOn, subject.isMiddleware) = (name, what, false, false)
                    return Host.shared.add(subject, .server) { params, call in try await run(params, Context(call)) }
                } add: { definition, options, handler in
                    // The core says when the handlers can be forgotten, after an error, too.
                    try core {
                        try Host.shared.bridge.sessionAdd(
                            key: call.key, kind: kind.rawValue, definition: definition, options: options,
                            handler: handler)
                    }
                }
            } catch {
                let failure = TricornError.from(error).about(text)
                failed.with { $0 = $0 ?? failure }
            }
        }
    }
}

extension Context {
    /// Adds tools, resources and prompts for this client alone, for as long as its session lives.
    ///
    /// ```swift
    /// try context.addToSession { session in
    ///     session.tool("cancel_booking") { (booking: Booking, _) in … }
    /// }
    /// ```
    /// Throws the first error: `TricornError.unsupported` in revisions without sessions, and for resources and prompts
    /// when the client was not told of such as it connected (`Server(capabilities:)`).
    public func addToSession(_ build: (SessionOffers) throws -> Void) throws {
        let offers = SessionOffers(call)
        try build(offers)
        try offers.check()
    }

    /// Removes what was added for this client alone. False when there was nothing of that name, URI or URI template.
    @discardableResult
    public func removeFromSession(_ kind: Server.Kind, _ name: String) throws -> Bool {
        try core { try Host.shared.bridge.sessionRemove(key: key, kind: kind.rawValue, name: name) }
    }
}
