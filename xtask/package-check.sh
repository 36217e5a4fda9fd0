#!/usr/bin/env bash
# package-check.sh python|node: pack the repository as for a user, install that in a fresh place, and make one call there.
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
    "$tools/python" -m venv --without-pip "$place/venv"
    "$tools/python" -m pip --python "$place/venv/bin/python" install --quiet "$place"/tricorn-*.whl
    cd "$place"
    "$place/venv/bin/python" - <<'PY'
import asyncio
import importlib.metadata
import pathlib

import tricorn

here = pathlib.Path(tricorn.__file__)
assert "site-packages" in here.parts, here
assert (here.parent / "py.typed").is_file()
facts = importlib.metadata.metadata("tricorn")
assert facts["License-Expression"] == "MIT OR Apache-2.0", facts
assert sorted(facts.get_all("License-File")) == ["LICENSE-APACHE", "LICENSE-MIT"], facts
assert sorted(facts.get_all("Provides-Extra")) == ["otel", "pydantic"], facts
app = tricorn.Server("demo")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def main() -> None:
    async with tricorn.connect(app) as client:
        print("add(1, 2) =", (await client.call_tool("add", {"a": 1, "b": 2})).text)


asyncio.run(main())
PY
    ;;
node)
    cd "$root"
    npm pack --silent --pack-destination "$place" > /dev/null
    cd "$place"
    npm init --yes > /dev/null
    npm install --silent --no-audit --no-fund "$place"/tricorn-*.tgz
    cat > check.mjs <<'JS'
import { connect, Server } from "tricorn";

const app = new Server("demo");
app.tool("ping", { description: "Answer" }, () => "pong");
const client = await connect(app);
console.log("ping() =", (await client.callTool("ping", {})).text);
await client.close();
JS
    node check.mjs
    ;;
*)
    echo "package-check.sh python|node" >&2
    exit 2
    ;;
esac
