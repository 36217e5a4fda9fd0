#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
internal import TricornCore

/// One block of a tool's result. A handler may return one, or an array of them, instead of a plain value.
public enum ContentBlock: Sendable, Hashable {
    /// Text for the model.
    case text(String, Extras = .init())
    /// The picture's bytes, not their base64.
    case image(Data, mimeType: String, Extras = .init())
    /// A recording's bytes, not their base64.
    case audio(Data, mimeType: String, Extras = .init())
    /// A resource to be read by its URI.
    case resourceLink(ResourceLink)
    /// A resource and what it holds.
    case resource(EmbeddedResource, Extras = .init())
    /// A block of a type that this version does not know, as it came.
    case other(JSONValue)

    /// Members that every block may carry besides its content.
    public struct Extras: Sendable, Hashable {
        /// `audience`, `priority` and `lastModified`.
        public var annotations: JSONValue?
        /// The block's `_meta`.
        public var meta: JSONValue?

        /// Makes one; nil is not sent.
        public init(annotations: JSONValue? = nil, meta: JSONValue? = nil) {
            self.annotations = annotations
            self.meta = meta
        }
    }

    /// A resource that can be read by its URI; it need not be listed.
    public struct ResourceLink: Sendable, Hashable {
        /// The URI it can be read by.
        public var uri: String
        /// Its name.
        public var name: String
        /// The name for people.
        public var title: String?
        /// A description for the model.
        public var description: String?
        /// Such as `text/plain`, when known.
        public var mimeType: String?
        /// Bytes.
        public var size: Int?
        /// Annotations and `_meta`.
        public var extras: Extras

        /// Makes one; nil is not sent.
        public init(
            uri: String, name: String, title: String? = nil, description: String? = nil, mimeType: String? = nil,
            size: Int? = nil, extras: Extras = .init()
        ) {
            self.uri = uri
            self.name = name
            self.title = title
            self.description = description
            self.mimeType = mimeType
            self.size = size
            self.extras = extras
        }
    }

    /// A resource together with what it holds.
    public struct EmbeddedResource: Sendable, Hashable {
        /// The content of a resource.
        public enum Body: Sendable, Hashable {
            /// Text, as it is.
            case text(String)
            /// Bytes, not their base64.
            case blob(Data)
        }

        /// The URI it can be read by.
        public var uri: String
        /// Such as `text/plain`, when known.
        public var mimeType: String?
        /// Its content.
        public var body: Body
        /// The resource's own `_meta`, not that of the block.
        public var meta: JSONValue?

        /// A resource of text.
        public init(uri: String, mimeType: String? = nil, text: String, meta: JSONValue? = nil) {
            self.init(uri: uri, mimeType: mimeType, body: .text(text), meta: meta)
        }

        /// A resource of bytes.
        public init(uri: String, mimeType: String? = nil, blob: Data, meta: JSONValue? = nil) {
            self.init(uri: uri, mimeType: mimeType, body: .blob(blob), meta: meta)
        }

        init(uri: String, mimeType: String?, body: Body, meta: JSONValue?) {
            self.uri = uri
            self.mimeType = mimeType
            self.body = body
            self.meta = meta
        }
    }

    /// The text of a text block.
    public var text: String? { if case .text(let text, _) = self { text } else { nil } }
}

// MARK: - as JSON

extension ContentBlock {
    /// The block as the wire has it.
    public var json: JSONValue {
        var block = OptionsText()
        switch self {
        case .text(let text, let extras):
            block.set("type", text: "text")
            block.set("text", text: text)
            extras.add(to: &block)
        case .image(let data, let mimeType, let extras):
            block.set("type", text: "image")
            block.set("data", text: data.base64EncodedString())
            block.set("mimeType", text: mimeType)
            extras.add(to: &block)
        case .audio(let data, let mimeType, let extras):
            block.set("type", text: "audio")
            block.set("data", text: data.base64EncodedString())
            block.set("mimeType", text: mimeType)
            extras.add(to: &block)
        case .resourceLink(let link):
            block.set("type", text: "resource_link")
            block.set("uri", text: link.uri)
            block.set("name", text: link.name)
            block.set("title", text: link.title)
            block.set("description", text: link.description)
            block.set("mimeType", text: link.mimeType)
            block.set("size", number: link.size)
            link.extras.add(to: &block)
        case .resource(let resource, let extras):
            block.set("type", text: "resource")
            block.set("resource", resource.json)
            extras.add(to: &block)
        case .other(let value): return value
        }
        return block.json
    }

    init(_ text: JSONText, _ index: Int) {
        // Text is nearly all there is: read it without a detour.
        if let type = text.member("type", of: index), text.string(type, equals: "text"),
            let body = text.member("text", of: index), text.member("annotations", of: index) == nil,
            text.member("_meta", of: index) == nil,
            let text = try? JSONReader(text: text, index: body, path: nil).decode(String.self)
        {
            self = .text(text)
            return
        }
        let value = JSONValue(text, index)
        self = ContentBlock(known: value) ?? .other(value)
    }

    private init?(known value: JSONValue) {
        let extras = Extras(annotations: value["annotations"], meta: value["_meta"])
        let mimeType = value["mimeType"]?.stringValue
        let data = value["data"]?.stringValue.flatMap { Data(lenient: $0) }
        switch value["type"]?.stringValue {
        case "text":
            guard let text = value["text"]?.stringValue else { return nil }
            self = .text(text, extras)
        case "image":
            guard let data, let mimeType else { return nil }
            self = .image(data, mimeType: mimeType, extras)
        case "audio":
            guard let data, let mimeType else { return nil }
            self = .audio(data, mimeType: mimeType, extras)
        case "resource_link":
            guard let uri = value["uri"]?.stringValue, let name = value["name"]?.stringValue else { return nil }
            self = .resourceLink(
                ResourceLink(
                    uri: uri, name: name, title: value["title"]?.stringValue,
                    description: value["description"]?.stringValue, mimeType: mimeType,
                    size: value["size"]?.intValue, extras: extras))
        case "resource":
            guard let resource = value["resource"].flatMap(EmbeddedResource.init(known:)) else { return nil }
            self = .resource(resource, extras)
        default: return nil
        }
    }
}

extension ContentBlock.Extras {
    fileprivate func add(to block: inout OptionsText) {
        block.set("annotations", annotations)
        block.set("_meta", meta)
    }
}

extension ContentBlock.EmbeddedResource {
    init?(known value: JSONValue) {
        guard let uri = value["uri"]?.stringValue else { return nil }
        let mimeType = value["mimeType"]?.stringValue, meta = value["_meta"]
        if let text = value["text"]?.stringValue {
            self.init(uri: uri, mimeType: mimeType, text: text, meta: meta)
        } else if let blob = value["blob"]?.stringValue.flatMap({ Data(lenient: $0) }) {
            self.init(uri: uri, mimeType: mimeType, blob: blob, meta: meta)
        } else {
            return nil
        }
    }

    var json: JSONValue {
        var resource = OptionsText()
        resource.set("uri", text: uri)
        resource.set("mimeType", text: mimeType)
        switch body {
        case .text(let text): resource.set("text", text: text)
        case .blob(let data): resource.set("blob", text: data.base64EncodedString())
        }
        resource.set("_meta", meta)
        return resource.json
    }
}

extension Data {
    /// From base64 as peers write it: with or without padding, of either alphabet, broken into lines.
    init?(lenient text: String) {
        if let data = Data(base64Encoded: text) {
            self = data
            return
        }
        var plain: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"): plain.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): plain.append(UInt8(ascii: "/"))
            case UInt8(ascii: "="), 0x09, 0x0A, 0x0D, 0x20: continue
            default: plain.append(byte)
            }
        }
        guard plain.count % 4 != 1 else { return nil }
        while plain.count % 4 != 0 { plain.append(UInt8(ascii: "=")) }
        self.init(base64Encoded: Data(plain))
    }
}

extension ContentBlock: Codable {
    /// From what is on the wire; a block of an unknown type becomes `.other`.
    public init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        self = ContentBlock(known: value) ?? .other(value)
    }

    /// As on the wire.
    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

/// True if a client may load an icon's `src`: an `https:` URL with a host, or `data:image/…`. It says nothing of the rest
/// of a client's duties: no credentials, no redirects elsewhere, a limit of size, no scripts in an SVG.
public func isSafeIcon(_ src: String) -> Bool {
    (try? coreIsSafeIcon(src: src)) ?? false
}
