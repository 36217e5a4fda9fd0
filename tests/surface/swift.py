"""Prints the public surface of the Swift package, as the compiler's symbol graph has it.

`swift.py [--check | --write] GRAPH`: GRAPH is the file `Tricorn.symbols.json` that `swift symbolgraph-extract
-module-name Tricorn -minimum-access-level public` makes. One declaration a line. The text is that of one version of the
compiler, which stands in the first line; a graph of another one is not compared.
"""

import json
import re
import sys
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("swift.txt")


def surface(graph: Path) -> list[str]:
    """All lines, with the compiler's version as the first."""
    data = json.loads(graph.read_text(encoding="utf-8"))
    version = re.search(r"Swift version ([\d.]+)", data["metadata"]["generator"])
    lines = set()
    for symbol in data["symbols"]:
        path = symbol["pathComponents"]
        # Types made from the schema are checked against it, names with an underscore are no surface, and what protocols
        # give by themselves is written nowhere.
        synthesized = "::SYNTHESIZED::" in symbol["identifier"]["precise"]
        if path[0] == "Types" or synthesized or any(part.startswith("_") for part in path):
            continue
        said = "".join(part["spelling"] for part in symbol.get("declarationFragments", []))
        lines.add(f"{'.'.join(path)} {' '.join(said.split())}")
    return [f"swift {version[1] if version else '?'}", *sorted(lines)]


def main() -> None:
    """Prints, writes or compares."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not words or not Path(words[0]).is_file():
        sys.exit("swift.py [--check | --write] Tricorn.symbols.json")
    lines = surface(Path(words[0]))
    if "--write" in sys.argv:
        SNAPSHOT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif "--check" in sys.argv:
        known = SNAPSHOT.read_text(encoding="utf-8").splitlines()
        if known[0] != lines[0]:
            print(f"skipped: {lines[0]}, and swift.txt is of {known[0]}")
            return
        gone, new = sorted(set(known) - set(lines)), sorted(set(lines) - set(known))
        print("\n".join([f"- {line}" for line in gone] + [f"+ {line}" for line in new]))
        if gone or new:
            sys.exit("the surface of the Swift package has changed: cargo xtask surface --write")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
