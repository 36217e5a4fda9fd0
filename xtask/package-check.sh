#!/usr/bin/env bash
# package-check.sh python|node: install the repository as a user would, in a fresh place, and make one call there.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
place="$root/target/package/$1"
rm -rf "$place"
mkdir -p "$place"

case $1 in
python)
    "${PYTHON:-python3}" -m venv "$place/venv"
    "$place/venv/bin/python" -m pip install --quiet "$root"
    cd "$place"
    "$place/venv/bin/python" - <<'PY'
import asyncio
import pathlib

import tricorn

assert "site-packages" in pathlib.Path(tricorn.__file__).parts, tricorn.__file__
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
