#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The sender of a request, as its access token says: known before anything of the request runs, and on its context as
/// `Context.principal`. A `ServerAuth.verifier` makes one.
///
/// Sessions, tasks and the state between rounds of questions belong to issuer and subject: a new token of the same subject,
/// with other scopes, is the same principal.
public struct Principal: Sendable, Hashable {
    /// The token's `sub`: a user, or a client that acts for itself. Where a token has none it is the client's id.
    public var subject: String
    /// The issuer of the token (`iss`).
    public var issuer: String?
    /// The client that the token was issued to (`client_id`).
    public var clientID: String?
    /// The scopes that the token was granted. `hasScope` knows what follows from it, too.
    public var scopes: [String]
    /// All that the token or its introspection says. The token itself is not in it.
    public var claims: JSONObject
    /// The time at which the token expires; nil: nobody says so.
    public var expiresAt: Date?
    /// Scopes that the granted ones imply, besides themselves.
    private var implied: [String] = []

    /// The principal called `subject`: a name that its issuer gives to nobody else.
    public init(
        subject: String, issuer: String? = nil, clientID: String? = nil, scopes: [String] = [],
        claims: JSONObject = [:], expiresAt: Date? = nil
    ) {
        self.subject = subject
        self.issuer = issuer
        self.clientID = clientID
        self.scopes = scopes
        self.claims = claims
        self.expiresAt = expiresAt
    }

    /// True if a scope was granted, or follows from one that was (`ServerAuth.scopeImplies`).
    public func hasScope(_ scope: String) -> Bool { scopes.contains(scope) || implied.contains(scope) }

    /// As the core writes it.
    init(json: JSONValue) {
        func texts(_ name: String) -> [String] { (json[name]?.arrayValue ?? []).compactMap(\.stringValue) }
        self.init(
            subject: json["subject"]?.stringValue ?? "", issuer: json["issuer"]?.stringValue,
            clientID: json["clientId"]?.stringValue, scopes: texts("scopes"),
            claims: json["claims"]?.objectValue ?? [:],
            expiresAt: json["expiresAt"]?.doubleValue.map { Date(timeIntervalSince1970: $0) })
        implied = texts("impliedScopes")
    }

    /// As the core reads it.
    var json: JSONValue {
        var principal = OptionsText()
        principal.set("subject", text: subject)
        principal.set("issuer", text: issuer)
        principal.set("clientId", text: clientID)
        principal.set("scopes", texts: scopes)
        principal.set("claims", .object(claims))
        principal.set("expiresAt", decimal: expiresAt?.timeIntervalSince1970)
        return principal.json
    }
}

extension Principal: Guarded {
    /// Without the claims, which are nobody's business.
    var shown: KeyValuePairs<String, Any> {
        ["subject": subject, "issuer": issuer as Any, "clientID": clientID as Any, "scopes": scopes]
    }
}

extension Context {
    /// The principal that sent the request, of a server with `auth`; nil over a transport that has no access tokens,
    /// and when the call is over.
    public var principal: Principal? { request?.principal }
}

extension RequestInfo {
    /// The principal that sent it, of a server with `auth`; nil over a transport that has no access tokens.
    public var principal: Principal? {
        json["principal"].flatMap { $0.isNull ? nil : Principal(json: $0) }
    }
}

/// Shown without what is secret, however it is shown.
protocol Guarded: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var shown: KeyValuePairs<String, Any> { get }
}

extension Guarded {
    /// Its type and what is not secret.
    public var description: String {
        let members = shown.compactMap { name, value -> String? in
            // What is not there is not said.
            let optional = Mirror(reflecting: value)
            guard optional.displayStyle == .optional else { return "\(name): \(String(reflecting: value))" }
            return optional.children.first.map { "\(name): \(String(reflecting: $0.value))" }
        }
        return "\(Self.self)(\(members.joined(separator: ", ")))"
    }

    /// The same.
    public var debugDescription: String { description }

    /// The same, for `dump`.
    public var customMirror: Mirror { Mirror(self, children: shown, displayStyle: .struct) }
}
