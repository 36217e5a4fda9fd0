#!/bin/sh
# Regenerates the Swift and C sources of the Rust library's interface, or only compares them.
#
#   regen.sh            build the library and the generator, rewrite Sources/TricornCore and Sources/CTricornCore
#   regen.sh --check    exit 1, with a diff, when the checked-in files are not what the library says
set -eu

cd "${0%/*}/.."
cargo build --release --quiet -p tricorn-swift
cargo build --release --quiet -p tricorn-bindgen
target=${CARGO_TARGET_DIR:-target}
made=$target/swift-generated
rm -rf "$made"
"$target/release/tricorn-bindgen" --config bindings-swift/bindgen.toml --swift-sources --headers \
    "$target/release/libtricorn_swift.a" "$made"

# FoundationEssentials instead of all of Foundation: half the start-up time and 6 MB less memory on Linux.
# NSLock, the one thing it lacks, is in Sources/TricornCore/NSLock.swift. And a plain import of the C module: behind
# canImport, an error in its header would hide as a thousand unknown types.
swift=$made/TricornCore.swift
sed -e 's|^import Foundation$|#if canImport(FoundationEssentials)\nimport FoundationEssentials\n#else\nimport Foundation\n#endif|' \
    -e '/^#if canImport(CTricornCore)$/,/^#endif$/{/^import/!d;}' -e 's|, Foundation\.LocalizedError||' -e 's|// TODO: |// |' -e 's|[[:space:]]*$||' "$swift" > "$swift.tmp"
mv "$swift.tmp" "$swift"
sed -i.bak -e 's|[[:space:]]*$||' "$made/CTricornCore.h" && rm -f "$made/CTricornCore.h.bak"

status=0
place() {
    if [ "${1-}" = --check ]; then
        diff -u "$3" "$2" || status=1
    else
        cmp -s "$2" "$3" || cp "$2" "$3"
    fi
}
place "${1-}" "$swift" bindings-swift/Sources/TricornCore/TricornCore.swift
place "${1-}" "$made/CTricornCore.h" bindings-swift/Sources/CTricornCore/CTricornCore.h
[ $status = 0 ] || echo "regen.sh: the generated sources are stale; run bindings-swift/regen.sh" >&2
exit $status
