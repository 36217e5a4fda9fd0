#!/usr/bin/env bash
# package-check.sh python|node: pack the repository as it is published, install that as users do, and make calls there.
# Python: then an environment for the package's own tests stands at target/package/python/venv.
# After `cargo xtask setup`, whose tools and compiled library it uses.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
place="$root/target/package/$1"
rm -rf "$place"
mkdir -p "$place"

case $1 in
python)
    tools="$root/target/venv/bin"
    export PATH="$tools:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1
    "$tools/maturin" build --quiet --release --features workspace --manifest-path "$root/bindings-python/Cargo.toml" --out "$place"
    # The tests of the package run against what is installed, with what they need beside it from the tools' environment.
    "$tools/python" -m venv --without-pip "$place/venv"
    "$tools/python" -m pip --python "$place/venv/bin/python" install --quiet --no-deps "$place"/tricorn-*.whl
    site='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$tools/python" -c "$site" > "$("$place/venv/bin/python" -c "$site")/tools.pth"
    "$tools/python" "$root/tests/packages/python.py" "$place"
    ;;
node)
    cd "$root"
    node bindings-node/scripts/pack.mjs --out "$place"
    node tests/packages/node.mjs "$place" --quick
    node tests/packages/node-types.mjs "$place"
    ;;
*)
    echo "package-check.sh python|node" >&2
    exit 2
    ;;
esac
