#!/bin/sh
# Regenerates the Swift and C sources of the Rust library's interface, or only compares them.
#
#   regen.sh            build the library and the generator, rewrite Sources/TricornCore and Sources/CTricornCore
#   regen.sh --check    exit 1, with a diff, when the checked-in files are not what the library says
#   regen.sh --stamp    exit 1 when they, or what they are made from, have changed since they were made; builds nothing
set -eu

cd "${0%/*}/.."
stamp=bindings-swift/regen.sum

# The sources, the generator, its settings and version, and what was made of them.
sums() {
    files="bindings-swift/regen.sh bindings-swift/bindgen.toml bindings-swift/uniffi.toml bindings-swift/Cargo.toml
        bindings-swift/bindgen/Cargo.toml bindings-swift/Sources/TricornCore/TricornCore.swift
        bindings-swift/Sources/CTricornCore/CTricornCore.h"
    for file in $files $(find bindings-swift/src bindings-swift/bindgen/src -name '*.rs' | LC_ALL=C sort); do
        cksum "$file"
    done
    grep -A 1 '^name = "uniffi' Cargo.lock
}

if [ "${1-}" = --stamp ]; then
    sums | cmp -s - "$stamp" && exit 0
    sums | diff -u "$stamp" - || true
    echo "regen.sh: the generated sources are stale, or were changed by hand; run bindings-swift/regen.sh" >&2
    exit 1
fi

cargo build --release --quiet -p tricorn-swift --features workspace
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
[ "${1-}" = --check ] || sums > "$stamp"
[ $status = 0 ] || echo "regen.sh: the generated sources are stale; run bindings-swift/regen.sh" >&2
exit $status
