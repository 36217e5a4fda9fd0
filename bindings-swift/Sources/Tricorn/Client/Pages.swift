/// A listing of a server, page by page as it is asked for. Iterating again asks again.
public struct Listing<Element: Sendable>: AsyncSequence, Sendable {
    let client: Client
    let method: String
    /// The member of a page that has its entries.
    let member: String
    let options: RequestOptions
    let entry: @Sendable (JSONValue) -> Element

    /// From the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(listing: self) }

    /// All of it; as many requests as the listing has pages.
    public func collect() async throws -> [Element] {
        var pages = Pages(method), all: [Element] = [], cursor: String?
        while true {
            do {
                let result = try await client.page(method, cursor, options)
                all += (result[member]?.arrayValue ?? []).map(entry)
                cursor = try pages.next(result["nextCursor"]?.stringValue)
            } catch let error as TricornError where pages.beginsAnew(at: cursor, error) {
                (all, cursor) = ([], nil)
                continue
            }
            if cursor == nil { return all }
        }
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
                do {
                    let result = try await listing.client.page(listing.method, cursor, listing.options)
                    page = pages.unknown(result[listing.member]?.arrayValue ?? [])[...]
                    cursor = try pages.next(result["nextCursor"]?.stringValue)
                    ended = cursor == nil
                } catch let error as TricornError where pages.beginsAnew(at: cursor, error) {
                    cursor = nil
                }
            }
            return page.popFirst().map(listing.entry)
        }
    }
}

/// Follows the pages of a listing, of which a peer could make no end. A cursor that the server refuses may be of a page
/// that was kept, and of a list that is another one now: then all pages are asked for once more from the first.
struct Pages {
    static let most = 1000
    private let method: String
    private var seen = Set<String>()
    /// Names that were given before the list began anew.
    private var given = Set<String>()
    private var isAnew = false

    init(_ method: String) { self.method = method }

    /// True if the list is to be asked for from its first page, because the page at `cursor` was refused. Once.
    mutating func beginsAnew(at cursor: String?, _ error: TricornError) -> Bool {
        guard cursor != nil, !isAnew, case .rpc(let code, _, _) = error, code == -32602 else { return false }
        isAnew = true
        seen = []
        return true
    }

    /// The entries without those that were given before the list began anew.
    mutating func unknown(_ entries: [JSONValue]) -> [JSONValue] {
        let keys = ["resources/list": "uri", "resources/templates/list": "uriTemplate", "tasks/list": "taskId"]
        let key = keys[method] ?? "name"
        guard isAnew else {
            given.formUnion(entries.compactMap { $0[key]?.stringValue })
            return entries
        }
        return entries.filter { entry in entry[key]?.stringValue.map { !given.contains($0) } ?? true }
    }

    /// The cursor to go on with after a page that names `cursor`; nil after the last.
    mutating func next(_ cursor: String?) throws -> String? {
        guard let cursor else { return nil }
        guard seen.insert(cursor).inserted else {
            // An empty cursor is one like any other, but one that comes again is the end of a server that has none.
            if cursor.isEmpty { return nil }
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
