// Names of before, which go with the next version.

extension Server {
    /// Shows or hides what has this name, URI or URI template.
    @available(*, deprecated, message: "use setEnabled(_:named:to:)")
    @discardableResult
    public func setEnabled(_ kind: Kind, _ name: String, _ yes: Bool) -> Bool { setEnabled(kind, named: name, to: yes) }

    /// Tells the client that the visit to a page is over.
    @available(*, deprecated, renamed: "completeElicitation(_:)")
    public func elicitationComplete(_ elicitationID: String) { completeElicitation(elicitationID) }

    /// Tells clients that a resource has changed.
    @available(*, deprecated, renamed: "notifyResourceUpdated(_:)")
    public func resourceUpdated(_ uri: String) { notifyResourceUpdated(uri) }

    /// Tells clients that a list has changed.
    @available(*, deprecated, renamed: "notifyListChanged(_:)")
    public func listChanged(_ kind: Kind) { notifyListChanged(kind) }

    /// Says whose a request is.
    @available(*, deprecated, renamed: "setPrincipal(_:)")
    public func principal(_ of: @escaping @Sendable (_ context: Context) async throws -> String?) { setPrincipal(of) }
}

extension Context {
    /// Shows or hides what has this name, URI or URI template from this client alone.
    @available(*, deprecated, message: "use setEnabled(_:named:to:)")
    @discardableResult
    public func setEnabled(_ kind: Server.Kind, _ name: String, _ yes: Bool) throws -> Bool {
        try setEnabled(kind, named: name, to: yes)
    }

    /// Tells the client that the visit to a page is over.
    @available(*, deprecated, renamed: "completeElicitation(_:)")
    public func elicitationComplete(_ elicitationID: String) throws { try completeElicitation(elicitationID) }
}
