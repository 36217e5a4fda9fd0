// How the client gets in where the suite's servers are protected, and the user that it needs for that.
import Foundation
import Tricorn

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What the suite knows as this program; nobody fetches it.
private let document = "https://conformance-test.local/client-metadata.json"

/// The option that a scenario is to be passed with.
func auth(_ scenario: String, _ context: JSONValue) -> ClientAuth {
    func text(_ name: String) -> String { context[name]?.stringValue ?? "" }
    var auth: ClientAuth
    switch scenario {
    case "auth/client-credentials-basic": auth = .clientCredentials(text("client_id"), text("client_secret"))
    case "auth/client-credentials-jwt":
        auth = .privateKeyJWT(text("client_id"), text("private_key_pem"), text("signing_algorithm"))
    case "auth/enterprise-managed-authorization":
        let identity = ClientAuth.Identity(
            tokenEndpoint: text("idp_token_endpoint"), clientID: text("idp_client_id"), token: text("idp_id_token"))
        auth = .identityAssertion(identity, clientID: text("client_id"), clientSecret: text("client_secret"))
    case "auth/wif-jwt-bearer":
        let assertion = text("valid_jwt")
        auth = .workload(text("client_id")) { _ in assertion }
    case "auth/pre-registration": auth = ClientAuth(clientID: text("client_id"), clientSecret: text("client_secret"))
    default:
        auth = ClientAuth(clientMetadataURL: document)
        auth.dpop = scenario.hasPrefix("auth/dpop")
    }
    auth.store = .memory
    // Consents to everything at once, and comes back.
    auth.browser = { url in
        guard let page = URL(string: url) else { throw ToolError("no page: \(url)") }
        // In a task of its own: on Linux, one that is cancelled as it ends may hang.
        let (_, answer) = try await Task { try await URLSession.shared.data(from: page) }.value
        guard let answer = answer as? HTTPURLResponse, answer.statusCode == 200 else {
            throw ToolError("the page does not lead back: \(answer)")
        }
    }
    return auth
}
