// swift-tools-version: 6.0
import Foundation
import PackageDescription

// The Rust half is a static library, `libtricorn_swift.a`. Where the linker finds it:
//   - in a checkout of the repository: target/release, from `cargo build --release -p tricorn-swift`
//   - TRICORN_LIBRARY_DIR: in that folder
//   - as a dependency by version: on LIBRARY_PATH, or with `swift build -Xlinker -L<folder>`
// Only the first two use unsafe flags, which SwiftPM refuses in dependencies by version.
let folder = Context.packageDirectory
let isDependencyByVersion = folder.contains("/checkouts/") || folder.contains("/registry/downloads/")
let given = Context.environment["TRICORN_LIBRARY_DIR"]

let libraryPath = (Context.environment["LIBRARY_PATH"] ?? "").split(separator: ":").map(String.init)
let isOnLibraryPath = (libraryPath + ["/usr/local/lib", "/usr/lib"]).contains {
    FileManager.default.fileExists(atPath: "\($0)/libtricorn_swift.a")
}

let coreSettings: [SwiftSetting]
let linkerSettings: [LinkerSetting]
if let given {
    coreSettings = []
    linkerSettings = [.unsafeFlags(["-L\(given)"])]
} else if isDependencyByVersion {
    // Compiling takes minutes, and what the linker says at the end is no help: Sources/TricornCore/MissingLibrary.swift.
    coreSettings = isOnLibraryPath ? [] : [.define("TRICORN_LIBRARY_NOT_FOUND")]
    linkerSettings = []
} else {
    // Turns a missing library into an error that says how to build it: Sources/CTricornCore/library.h.
    coreSettings = [.unsafeFlags(["-Xcc", "-DTRICORN_IN_CHECKOUT"])]
    linkerSettings = [.unsafeFlags(["-L\(folder)/target/release"])]
}

// What the Rust half needs of the system: the keychain, on macOS.
let system: [LinkerSetting] = [
    .linkedFramework("Security", .when(platforms: [.macOS])),
    .linkedFramework("CoreFoundation", .when(platforms: [.macOS])),
    .linkedLibrary("iconv", .when(platforms: [.macOS])),
]

// With TRICORN_STRICT, which `cargo xtask` sets, the library has no warnings, and a release build of it can be tested.
// Programs and tests use what the specification has deprecated; from 6.1 on, Swift can tell that from other warnings.
let isStrict = Context.environment["TRICORN_STRICT"] != nil
let librarySettings: [SwiftSetting] = isStrict ? [.unsafeFlags(["-warnings-as-errors", "-enable-testing"])] : []
#if compiler(>=6.1)
let userFlags = ["-warnings-as-errors", "-Wwarning", "DeprecatedDeclaration"]
let userSettings: [SwiftSetting] = isStrict ? [.unsafeFlags(userFlags)] : []
#else
let userSettings: [SwiftSetting] = []
#endif

// Optimization of tests takes longer than running them.
let unoptimized: [SwiftSetting] = isStrict ? [.unsafeFlags(["-Onone"])] : []
let testSettings: [SwiftSetting] = userSettings + unoptimized

// In this package, not in ones of their own: one build makes them all.
let programs = [
    ("quickstart-server", "examples/quickstart/swift/server"),
    ("quickstart-client", "examples/quickstart/swift/client"),
    ("everything", "examples/everything/swift/Sources"),
    ("conformance-client", "examples/conformance-client/swift/Sources"),
    ("guides", "examples/guides/swift/Sources"),
    ("bench", "examples/bench/swift/Sources"), ("bench-client", "examples/bench-client/swift/Sources"),
    ("interop-client", "tests/interop/ours/swift/Sources"), ("case-runner", "tests/cases/runners/swift"),
    ("hostile-victim", "tests/hostile/victims/swift"),
]

let package = Package(
    name: "tricorn",
    platforms: [.macOS(.v13)],
    products: [
        .library(name: "Tricorn", targets: ["Tricorn"]),
        .library(name: "TricornURLSession", targets: ["TricornURLSession"]),
    ]
        + programs.map { .executable(name: $0.0, targets: [$0.0]) },
    targets: [
        .systemLibrary(name: "CTricornCore", path: "bindings-swift/Sources/CTricornCore"),
        .target(
            name: "TricornCore", dependencies: ["CTricornCore"], path: "bindings-swift/Sources/TricornCore",
            swiftSettings: coreSettings + librarySettings, linkerSettings: linkerSettings + system),
        .target(
            name: "Tricorn", dependencies: ["TricornCore"], path: "bindings-swift/Sources/Tricorn",
            swiftSettings: librarySettings),
        .target(
            name: "TricornURLSession", dependencies: ["Tricorn"], path: "bindings-swift/Sources/TricornURLSession",
            swiftSettings: librarySettings),
        .target(name: "AppNames", path: "bindings-swift/Tests/AppNames"),
        .testTarget(
            name: "TricornTests", dependencies: ["Tricorn", "TricornCore", "TricornURLSession", "AppNames"],
            path: "bindings-swift/Tests/TricornTests",
            swiftSettings: testSettings),
    ]
        + programs.map {
            .executableTarget(
                name: $0.0, dependencies: ["Tricorn"], path: $0.1,
                exclude: ["case-runner", "hostile-victim"].contains($0.0) ? ["run"] : [], swiftSettings: userSettings)
        }
)
