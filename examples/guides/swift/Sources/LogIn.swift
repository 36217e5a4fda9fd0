// A client of a protected server, whose user logs in with the browser: swift run Program URL [--no-browser]
//
// The login is kept for the next time: where logins of this user are by default, or in the directory that LOGINS names.
import Foundation
import Tricorn

private func call(_ url: String, _ auth: ClientAuth) async throws {
    var options = ClientOptions()
    options.auth = auth
    let client = try await connect(url, options)
    print("logged in:", try await client.callTool("whoami").text)
    // This needs a scope that the token does not have yet, so the user is asked once more.
    print(try await client.callTool("delete_file", ["name": "draft.txt"]).text)
    await client.close()
}

enum LogInExample {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard let url = arguments.first(where: { $0.hasPrefix("http") }) else {
            throw TricornError.misuse("which URL?")
        }
        var auth = ClientAuth()
        // What the page where the user consents calls this program.
        auth.clientName = "Log in"
        auth.noBrowser = arguments.contains("--no-browser")
        auth.store = ProcessInfo.processInfo.environment["LOGINS"].map { .directory($0) }
        do {
            try await call(url, auth)
        } catch {
            print("failed:", error)
            for step in auth.trace {
                let asked = [step.step, step.url, step.status.map(String.init)].compactMap { $0 }
                print("  \(asked.joined(separator: " ")): \(step.decision)")
            }
            exit(1)
        }
    }
}
