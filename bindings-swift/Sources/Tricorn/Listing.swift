/// What a server lists, page by page as it is asked for. Iterating again asks again.
public struct Listing<Element: Sendable>: AsyncSequence, Sendable {
    let client: Client
    let method: String
    /// Where a page has its entries.
    let member: String
    let options: RequestOptions
    let entry: @Sendable (JSONValue) -> Element

    /// From the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(listing: self) }

    /// All of it; as many requests as the listing has pages.
    public func collect() async throws -> [Element] {
        var all: [Element] = []
        for try await element in self { all.append(element) }
        return all
    }

    /// Goes through the pages.
    public struct Iterator: AsyncIteratorProtocol {
        private let listing: Listing
        private var pages: Pages
        private var page: ArraySlice<JSONValue> = []
        private var cursor: String?
        private var ended = false

        init(listing: Listing) {
            self.listing = listing
            pages = Pages(listing.method)
        }

        /// The next entry, of the page that is there or the next one.
        public mutating func next() async throws -> Element? {
            while page.isEmpty, !ended {
                let result = try await listing.client.page(listing.method, cursor, listing.options)
                page = (result[listing.member]?.arrayValue ?? [])[...]
                cursor = try pages.next(result["nextCursor"]?.stringValue)
                ended = cursor == nil
            }
            return page.popFirst().map(listing.entry)
        }
    }
}

/// Follows the pages of a listing, of which a peer could make no end.
struct Pages {
    static let most = 1000
    private let method: String
    private var seen = Set<String>()

    init(_ method: String) { self.method = method }

    /// Where to go on after a page that names `cursor`; nil after the last.
    mutating func next(_ cursor: String?) throws -> String? {
        guard let cursor else { return nil }
        guard seen.insert(cursor).inserted else {
            throw TricornError.peerMisbehaved("\(method) never ends: the cursor \"\(cursor)\" came twice")
        }
        guard seen.count < Self.most else {
            throw TricornError.peerMisbehaved("\(method) never ends: there are more than \(Self.most) pages")
        }
        return cursor
    }
}

extension Client {
    /// One page of a listing.
    func page(_ method: String, _ cursor: String?, _ options: RequestOptions) async throws -> JSONValue {
        let writer = JSONWriter()
        if let cursor { writer.append(["cursor": .string(cursor)]) }
        return JSONValue(try await perform(method, writer, options), 0)
    }
}
