// Tools: a server that has some, and a client that calls them.
import Foundation
import Tricorn

private let png = Data(
    base64Encoded:
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")!
private let wav = Data(base64Encoded: "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")!

private struct Add: Codable { var a: Int32, b: Int32 }
private struct Divide: Codable, DescribedProperties {
    var a: Double
    var b: Double

    static let propertyDescriptions = ["a": "The dividend", "b": "The divisor"]
}
private struct Place: Codable { var city: String }
private struct Weather: Codable {
    var city: String
    var celsius: Double
}

private func server() -> Server {
    let app = Server("tools")
    app.tool("add", "Add two numbers") { (input: Add) in Int(input.a) + Int(input.b) }
    app.tool("divide", "Divide one number by another") { (input: Divide) in
        if input.b == 0 { throw ToolError("cannot divide by zero") }
        return input.a / input.b
    }
    app.tool("weather", "Today's weather", annotations: .init(readOnlyHint: true)) { (place: Place) in
        Weather(city: place.city, celsius: 22.5)
    }
    app.tool("picture", "Draw a dot") { ContentBlock.image(png, mimeType: "image/png") }
    app.tool("sound", "Record silence") { ContentBlock.audio(wav, mimeType: "audio/wav") }
    app.tool("manual", "The manual") {
        ContentBlock.resource(.init(uri: "manual://radio", mimeType: "text/plain", text: "Turn it off and on again."))
    }
    app.tool("report", "A text with a picture") {
        [
            ContentBlock.text("This is the dot."),
            .image(png, mimeType: "image/png"),
            .resourceLink(.init(uri: "manual://radio", name: "manual")),
        ]
    }
    return app
}

enum ToolsExample {
    static func main() async throws {
        let client = try await connect(to: server())

        for tool in try await client.listTools() { print("\(tool.name): \(tool.description ?? "")") }

        let sum = try await client.callTool("add", ["a": 1, "b": 2])
        print("add: \(try sum.decode(as: Int.self))")

        let weather: Weather = try await client.callTool("weather", Place(city: "Rome")).decode()
        print("weather: \(weather.celsius) °C in \(weather.city)")

        let failed = try await client.callTool("divide", ["a": 1, "b": 0])
        print("divide: is_error=\(failed.isError), \(failed.text)")
        let wrong = try await client.callTool("divide", ["a": "one", "b": 2])
        print("divide: is_error=\(wrong.isError), \(wrong.text)")
        do {
            _ = try await client.callTool("multiply")
        } catch TricornError.rpc(let code, _, _) {
            print("multiply: error \(code)")
        }

        for name in ["picture", "sound", "manual", "report"] {
            for block in try await client.callTool(name).content {
                switch block {
                case .text(let text, _): print("\(name): text \(text)")
                case .image(_, let mimeType, _): print("\(name): image \(mimeType)")
                case .audio(_, let mimeType, _): print("\(name): audio \(mimeType)")
                case .resource(let resource, _):
                    if case .text(let text) = resource.body { print("\(name): resource \(text)") }
                case .resourceLink(let link): print("\(name): resource_link \(link.uri)")
                case .other: print("\(name): a block that this version does not know")
                }
            }
        }
        await client.close()
    }
}
