// Names that apps import from frameworks of the system, or give to their own types. SwiftUI itself is not on Linux.

/// As others have it.
public struct Form {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Content {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Extension {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Target {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Root {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Change {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct StandardError {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct OfferPlace {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct WireFields {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Transport {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Metrics {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Icon {
    /// An empty one.
    public init() {}
}

/// As others have it.
public struct Implementation {
    /// An empty one.
    public init() {}
}
